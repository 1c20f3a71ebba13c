import { ATTIRES, type Attire } from './platforms.ts';
import {
  CLOAK,
  CROWN,
  FIGURE,
  FRAMES,
  type Grade,
  HAT_CROWN,
  HATS,
  HATS_TOP,
  LOOKS,
  type Look,
  MINI,
  SHEET_HEIGHT,
  SHEET_WIDTH,
  SPECK,
} from './sheet.ts';
import sheetAddress from './sprites.png';

/** Pictures of one grade in one size, ready to be copied. */
export type Atlas = ReturnType<typeof cutAtlas>;

/** Attires of a grey room come after the others. */
export const GREY = ATTIRES.length;

/** A phase shows in the cloak, too: amber while it waits to be resumed, dull while it sleeps or leaves. */
const TINTS: Partial<Record<Look, readonly [colour: string, part: number]>> = {
  resume_pending: ['#f0921f', 0.75],
  suspended: ['#7f8fa8', 0.7],
  ending: ['#8d8798', 0.45],
};

type Rgb = readonly [number, number, number];

const rgb = (colour: string): Rgb => [1, 3, 5].map((at) => Number.parseInt(colour.slice(at, at + 2), 16)) as never;
const keyOf = ([red, green, blue]: Rgb): number => (red << 16) | (green << 8) | blue;
const mix = (from: Rgb, to: Rgb, part: number): Rgb =>
  from.map((value, at) => Math.round(value + ((to[at] ?? 0) - value) * part)) as never;

const CROWN_KEY = keyOf(rgb(CROWN));

function newCanvas(
  width: number,
  height: number,
  willReadFrequently = false,
): [HTMLCanvasElement, CanvasRenderingContext2D] {
  const canvas = document.createElement('canvas');
  canvas.width = width;
  canvas.height = height;
  const context = canvas.getContext('2d', { willReadFrequently }) as CanvasRenderingContext2D;
  context.imageSmoothingEnabled = false;
  return [canvas, context];
}

/** Which colours take the place of the cloak's own, for each row of looks. */
function dye({ cloak }: Attire): Map<number, Rgb>[] {
  return LOOKS.map((look) => {
    const [colour, part] = TINTS[look] ?? ['#000000', 0];
    return new Map(CLOAK.map((own, at) => [keyOf(rgb(own)), mix(rgb(cloak[at] as string), rgb(colour), part)]));
  });
}

/** Which row of looks a pixel of the sheet belongs to, whichever grade it is drawn in. */
function rowAt(x: number, y: number): number {
  const grade = [FIGURE, MINI, SPECK].findLast(({ left }) => x >= left) ?? FIGURE;
  return Math.min(LOOKS.length - 1, Math.floor(y / grade.cell));
}

/** Recolours a copy of the sheet. Returns where hats belong. */
function wear(pixels: ImageData, attire: Attire): [x: number, y: number][] {
  const { data } = pixels;
  const dyes = dye(attire);
  const crowns: [number, number][] = [];
  for (let at = 0; at < data.length; at += 4) {
    if (data[at + 3] === 0) continue;
    const x = (at / 4) % SHEET_WIDTH;
    const y = Math.floor(at / 4 / SHEET_WIDTH);
    const key = keyOf([data[at] as number, data[at + 1] as number, data[at + 2] as number]);
    if (key === CROWN_KEY) {
      crowns.push([x, y]);
      data.set(rgb('#2a2340'), at);
      continue;
    }
    const colour = dyes[rowAt(x, y)]?.get(key);
    if (colour !== undefined) data.set(colour, at);
  }
  return crowns;
}

/** Not by a filter of the canvas, which Safari does not have. */
function fade(data: ImageDataArray): void {
  for (let at = 0; at < data.length; at += 4) {
    const [red = 0, green = 0, blue = 0, alpha = 0] = data.subarray(at, at + 4);
    const grey = 0.3 * red + 0.59 * green + 0.11 * blue;
    data.set([grey, grey, grey, alpha * 0.7], at);
  }
}

/**
 * Every figure in every attire; after the attires of rooms that live, those of rooms of which nothing is heard. Scenes of
 * any size are made of it.
 */
export async function loadWardrobe(): Promise<HTMLCanvasElement> {
  const sheet = new Image();
  sheet.src = sheetAddress;
  await sheet.decode();
  const [canvas, context] = newCanvas(SHEET_WIDTH, HATS_TOP * ATTIRES.length * 2);
  const [, copy] = newCanvas(SHEET_WIDTH, SHEET_HEIGHT, true);
  ATTIRES.forEach((attire, variant) => {
    copy.clearRect(0, 0, SHEET_WIDTH, SHEET_HEIGHT);
    copy.drawImage(sheet, 0, 0);
    const pixels = copy.getImageData(0, 0, SHEET_WIDTH, HATS_TOP);
    const crowns = wear(pixels, attire);
    const top = variant * HATS_TOP;
    context.putImageData(pixels, 0, top);
    const hat = HATS.indexOf(attire.hat) * FIGURE.cell;
    for (const [x, y] of crowns) {
      const row = Math.floor(y / FIGURE.cell) * FIGURE.cell;
      // A hat that stands out of its cell would hang over the feet of the figure above.
      const cut = Math.max(0, row - (y - HAT_CROWN.y));
      const size = FIGURE.cell - cut;
      const [toX, toY] = [x - HAT_CROWN.x, top + y - HAT_CROWN.y + cut];
      context.drawImage(sheet, hat, HATS_TOP + cut, FIGURE.cell, size, toX, toY, FIGURE.cell, size);
    }
  });
  const living = context.getImageData(0, 0, SHEET_WIDTH, HATS_TOP * ATTIRES.length);
  fade(living.data);
  context.putImageData(living, 0, living.height);
  return canvas;
}

/** Larger ones are few, and are scaled when they are drawn. */
const LARGEST_KEPT = 3;
/** Telephones refuse canvases that are very long. */
const COLUMNS = 4;

/** Pictures in one size. Copies of equal size cost a fraction of scaled ones. */
export function cutAtlas(wardrobe: HTMLCanvasElement, grade: Grade, scale: number) {
  if (scale > LARGEST_KEPT)
    return { canvas: wardrobe, left: grade.left, cell: grade.cell, columns: 1, strideX: 0, strideY: HATS_TOP };
  const width = FRAMES * grade.cell;
  const height = LOOKS.length * grade.cell;
  const strideX = width * scale;
  const strideY = height * scale;
  const variants = ATTIRES.length * 2;
  const [canvas, context] = newCanvas(strideX * COLUMNS, strideY * Math.ceil(variants / COLUMNS));
  for (let variant = 0; variant < variants; variant++) {
    const x = (variant % COLUMNS) * strideX;
    const y = Math.floor(variant / COLUMNS) * strideY;
    context.drawImage(wardrobe, grade.left, variant * HATS_TOP, width, height, x, y, strideX, strideY);
  }
  // `cell` is one side of a picture; attires stand side by side in columns, a stride from one to the next.
  return { canvas, left: 0, cell: grade.cell * scale, columns: COLUMNS, strideX, strideY };
}

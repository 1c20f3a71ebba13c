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
  SHEET_HEIGHT,
  SHEET_WIDTH,
} from './sheet.ts';
import sheetAddress from './sprites.png';

/** Everybody in every attire; after the attires of the living, those of rooms of which nothing is heard. */
export interface Wardrobe {
  readonly canvas: HTMLCanvasElement;
}

/** Pictures of one grade in one size, ready to be copied. */
export interface Atlas {
  readonly canvas: HTMLCanvasElement;
  readonly left: number;
  /** One side of a picture in the atlas. */
  readonly cell: number;
  /** From one attire to the next. */
  readonly stride: number;
}

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
function rowAt(x: number, y: number, grades: readonly Grade[]): number {
  const grade = grades.findLast(({ left }) => x >= left) ?? FIGURE;
  return Math.min(LOOKS.length - 1, Math.floor(y / grade.cell));
}

/** Recolours a copy of the sheet. Returns where hats belong. */
function wear(pixels: ImageData, attire: Attire, grades: readonly Grade[]): [x: number, y: number][] {
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
    const colour = dyes[rowAt(x, y, grades)]?.get(key);
    if (colour !== undefined) data.set(colour, at);
  }
  return crowns;
}

/** Dresses everybody once; scenes of any size are made of the result. */
export function openWardrobe(sheet: CanvasImageSource, grades: readonly Grade[]): Wardrobe {
  const [canvas, context] = newCanvas(SHEET_WIDTH, HATS_TOP * ATTIRES.length * 2);
  const [, copy] = newCanvas(SHEET_WIDTH, SHEET_HEIGHT, true);
  ATTIRES.forEach((attire, variant) => {
    copy.clearRect(0, 0, SHEET_WIDTH, SHEET_HEIGHT);
    copy.drawImage(sheet, 0, 0);
    const pixels = copy.getImageData(0, 0, SHEET_WIDTH, HATS_TOP);
    const crowns = wear(pixels, attire, grades);
    const top = variant * HATS_TOP;
    context.putImageData(pixels, 0, top);
    const hat = HATS.indexOf(attire.hat) * FIGURE.cell;
    for (const [x, y] of crowns) {
      const row = Math.floor(y / FIGURE.cell) * FIGURE.cell;
      // A hat that stands out of its cell would hang over somebody else's feet.
      const cut = Math.max(0, row - (y - HAT_CROWN.y));
      const size = FIGURE.cell - cut;
      context.drawImage(
        sheet,
        hat,
        HATS_TOP + cut,
        FIGURE.cell,
        size,
        x - HAT_CROWN.x,
        top + y - HAT_CROWN.y + cut,
        FIGURE.cell,
        size,
      );
    }
  });
  const living = HATS_TOP * ATTIRES.length;
  context.filter = 'grayscale(1) opacity(0.7)';
  context.drawImage(canvas, 0, 0, SHEET_WIDTH, living, 0, living, SHEET_WIDTH, living);
  return { canvas };
}

/** Larger ones are few, and are scaled when they are drawn. */
const LARGEST_KEPT = 3;

/** Pictures in one size. Copies of equal size cost a fraction of scaled ones. */
export function cutAtlas({ canvas: wardrobe }: Wardrobe, grade: Grade, scale: number): Atlas {
  if (scale > LARGEST_KEPT) return { canvas: wardrobe, left: grade.left, cell: grade.cell, stride: HATS_TOP };
  const width = FRAMES * grade.cell;
  const height = LOOKS.length * grade.cell;
  const variants = ATTIRES.length * 2;
  const [canvas, context] = newCanvas(width * scale, height * scale * variants);
  for (let variant = 0; variant < variants; variant++)
    context.drawImage(
      ...([wardrobe, grade.left, variant * HATS_TOP, width, height] as const),
      ...([0, variant * height * scale, width * scale, height * scale] as const),
    );
  return { canvas, left: 0, cell: grade.cell * scale, stride: height * scale };
}

export async function loadSheet(): Promise<HTMLImageElement> {
  const image = new Image();
  image.src = sheetAddress;
  await image.decode();
  return image;
}

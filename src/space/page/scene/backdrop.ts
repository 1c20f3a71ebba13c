import { paintBubble } from './bubble.ts';
import type { Actor } from './cast.ts';
import { type Measures, plainText } from './labels.ts';
import { AREA_HEADING, type Box, inset, ROOM_HEADING } from './layout.ts';
import { FIGURE } from './sheet.ts';
import { type Chamber, cellOf, eachWithin, figureOf, type Ground, type Stage } from './stage.ts';
import type { Theme } from './theme.ts';

const FONT = 'system-ui, -apple-system, "Segoe UI", sans-serif';
export const fontOf = (size: number, unit: number, weight = ''): string => `${weight} ${size * unit}px ${FONT}`.trim();

const NAME_LENGTH = 48;
/** How much of the text's colour is in the floor of a room, and of one that is grey. */
const FLOOR_TINT = 0.05;
const GREY_TINT = 0.09;

/** All that does not move, painted once on a canvas that is not shown: figures are drawn over copies of it. */
export class Backdrop {
  readonly canvas = document.createElement('canvas');
  readonly #context = this.canvas.getContext('2d', { alpha: false }) as CanvasRenderingContext2D;
  readonly #stage: Stage;
  readonly #measures: Measures;
  #theme: Theme;
  #weave: CanvasPattern | null = null;
  #hatch: CanvasPattern | null = null;

  constructor(stage: Stage, measures: Measures, theme: Theme) {
    this.#stage = stage;
    this.#measures = measures;
    this.#theme = theme;
  }

  paint(theme: Theme): void {
    const { width, height, chambers } = this.#stage;
    if (this.canvas.width !== width || this.canvas.height !== height) Object.assign(this.canvas, { width, height });
    this.#theme = theme;
    this.#weave = this.#pattern(WEAVE, theme.text);
    this.#hatch = this.#pattern(HATCH, theme.text);
    const context = this.#context;
    context.direction = 'ltr';
    context.fillStyle = theme.wall;
    context.fillRect(0, 0, width, height);
    for (const chamber of chambers) this.#paintChamber(chamber);
    if (chambers.length === 0) this.#say('No gateway has been heard of yet', { x: 0, y: 0, width, height });
  }

  /** The name of a room and the words under it. Returns where they stand. */
  paintHeading({ room, box }: Chamber): Box {
    const { unit } = this.#stage;
    const { text, muted, floor } = this.#theme;
    const heading = { x: box.x, y: box.y, width: box.width, height: ROOM_HEADING * unit };
    const inner = { ...heading, x: box.x + 2 * unit, y: box.y + 2 * unit, width: box.width - 4 * unit };
    this.#fill(floor, { ...inner, height: heading.height - 2 * unit });
    const line = { x: box.x + 10 * unit, width: box.width - 20 * unit, height: 0 };
    const [name, note] = [plainText(room.info.name, 120), plainText(room.info.note, 120)];
    this.#write(name, fontOf(14, unit, '600'), text, { ...line, y: box.y + 14 * unit }, 'left');
    this.#write(note, fontOf(11.5, unit), muted, { ...line, y: box.y + 30 * unit }, 'left');
    return heading;
  }

  /** The name of an actor, and its tool. Returns the whole cell, which must be copied anew. */
  paintActor(ground: Ground, actor: Actor): Box {
    const cell = cellOf(ground, actor.seat);
    this.clear(ground, actor.seat);
    this.#paintName(ground, actor, cell);
    return cell;
  }

  clear(ground: Ground, seat: number): Box {
    const cell = cellOf(ground, seat);
    this.#paintFloor(cell, ground.area.room.info.live, this.plainFloor(ground) !== null);
    return cell;
  }

  #paintChamber(chamber: Chamber): void {
    const { room, box, grounds } = chamber;
    const { unit } = this.#stage;
    paintBubble(this.#context, roundBox(box), 2 * unit, this.#theme.floor, this.#mixed(0.25));
    this.paintHeading(chamber);
    if (grounds.some(({ area }) => area.seats.count > 0)) {
      for (const ground of grounds) this.#paintGround(ground);
      return;
    }
    const below = ROOM_HEADING * unit;
    const inside = inset({ ...box, y: box.y + below, height: box.height - below }, 3.5 * unit);
    this.#paintFloor(roundBox(inside), room.info.live);
    this.#say(room.info.live ? 'All quiet: no thread is being spun' : 'Nobody was here', inside);
  }

  #paintGround(ground: Ground): void {
    const { unit } = this.#stage;
    const { area, box, lines } = ground;
    this.#paintFloor(roundBox(inset(box, 1.5 * unit)), area.room.info.live, this.plainFloor(ground) !== null);
    const y = box.y + (AREA_HEADING / 2 + 1) * unit;
    const line = { x: box.x + 6 * unit, y, width: box.width - 12 * unit, height: 0 };
    this.#write(plainText(area.platform, NAME_LENGTH), fontOf(11, unit, '600'), this.#theme.muted, line, 'left');
    if (lines.below === 0) return;
    const { width, height } = this.#stage;
    eachWithin(ground, { x: 0, y: 0, width, height }, (actor) =>
      this.#paintName(ground, actor, cellOf(ground, actor.seat)),
    );
  }

  #paintName(ground: Ground, { session, gone, seat }: Actor, cell: Box): void {
    const { above, below } = ground.lines;
    if (below === 0) return;
    const { unit } = this.#stage;
    const { text, muted, floor, accent } = this.#theme;
    const figure = figureOf(ground, seat);
    const space = cell.width - 4 * unit;
    const under = { x: cell.x + 2 * unit, y: figure.y + figure.height, width: space, height: below };
    const working = gone === null && session.phase === 'tool' && session.tool !== null;
    const { live } = ground.area.room.info;
    const tool = working ? plainText(session.tool ?? '', NAME_LENGTH) : '';
    // Where there is one line only, the tool says more than the name, which a hover tells.
    if (above > 0 || tool === '')
      this.#write(plainText(session.label, NAME_LENGTH), fontOf(11, unit), live ? text : muted, under);
    if (tool === '') return;
    const small = fontOf(10, unit, '600');
    const words = this.#measures.fit(tool, small, space - 10 * unit);
    const width = Math.round(this.#measures.width(words, small) + 10 * unit);
    const line = above > 0 ? { y: figure.y - above, height: above - 2 * unit } : under;
    const pill = {
      x: Math.round(cell.x + (cell.width - width) / 2),
      y: Math.round(line.y),
      width,
      height: Math.round(line.height),
    };
    paintBubble(this.#context, pill, unit, live ? accent : muted, live ? accent : muted);
    this.#write(words, small, floor, pill);
  }

  /** The one colour under the figures of a crowd, where cloth could not be seen; null where the floor has a pattern. */
  plainFloor({ area, fit }: Ground): string | null {
    return area.room.info.live && fit.grade !== FIGURE ? this.#mixed(FLOOR_TINT) : null;
  }

  #paintFloor(box: Box, live: boolean, plain = false): void {
    this.#fill(this.#mixed(live ? FLOOR_TINT : GREY_TINT), box);
    if (plain) return;
    this.#context.globalAlpha = live ? 0.06 : 0.16;
    this.#fill((live ? this.#weave : this.#hatch) ?? 'transparent', box);
    this.#context.globalAlpha = 1;
  }

  #say(words: string, box: Box): void {
    const inside = { ...box, x: box.x + 8, width: box.width - 16 };
    this.#write(words, fontOf(13, this.#stage.unit, 'italic'), this.#theme.muted, inside);
  }

  /** As much of the words as fits into a box, in the middle of its height, whatever direction its letters run. */
  #write(words: string, font: string, colour: string, box: Box, align: 'left' | 'center' = 'center'): void {
    const context = this.#context;
    context.font = font;
    context.fillStyle = colour;
    context.textAlign = align;
    context.textBaseline = 'middle';
    const x = align === 'left' ? box.x : box.x + box.width / 2;
    const shown = this.#measures.fit(words, font, box.width);
    context.fillText(shown, Math.round(x), Math.round(box.y + box.height / 2));
  }

  #fill(style: string | CanvasPattern, { x, y, width, height }: Box): void {
    this.#context.fillStyle = style;
    this.#context.fillRect(x, y, width, height);
  }

  /** A line between wall and text: colours come in any notation, so the canvas has to mix them. */
  #mixed(part: number): string {
    const percent = Math.round(part * 100);
    return `color-mix(in srgb, ${this.#theme.text} ${percent}%, ${this.#theme.floor})`;
  }

  #pattern(drawing: readonly string[], colour: string): CanvasPattern | null {
    const pixel = Math.max(1, Math.round(this.#stage.unit));
    const tile = document.createElement('canvas');
    tile.width = tile.height = drawing.length * pixel;
    const context = tile.getContext('2d') as CanvasRenderingContext2D;
    context.fillStyle = colour;
    drawing.forEach((line, y) => {
      [...line].forEach((char, x) => {
        if (char === '#') context.fillRect(x * pixel, y * pixel, pixel, pixel);
      });
    });
    return this.#context.createPattern(tile, 'repeat');
  }
}

/** Cloth on the floor of a room; lines over one that is grey. */
const WEAVE = ['##......', '........', '........', '........', '....##..', '........', '........', '........'];
const HATCH = ['#.......', '.#......', '..#.....', '...#....', '....#...', '.....#..', '......#.', '.......#'];

const roundBox = (box: Box): Box => {
  const x = Math.round(box.x);
  const y = Math.round(box.y);
  return { x, y, width: Math.round(box.x + box.width) - x, height: Math.round(box.y + box.height) - y };
};

import { Backdrop } from './backdrop.ts';
import type { Actor, Cast, Changes } from './cast.ts';
import { Cache, Measures } from './labels.ts';
import type { Box } from './layout.ts';
import { frameAt, partingFrame, presence, stillFrame } from './motion.ts';
import { type Attention, type Overlay, Overlays } from './overlays.ts';
import { FIGURE, FRAMES } from './sheet.ts';
import { type Atlas, cutAtlas, GREY } from './sprites.ts';
import { cellOf, eachWithin, figureOf, type Ground, isSeated, meets, Stage } from './stage.ts';
import { readTheme, type Theme } from './theme.ts';
import type { View } from './view.ts';

const KEPT_ATLASES = 6;
/** Milliseconds of one frame for those who only move: on a slow machine they move less often, the page stays quick. */
const BUDGET = 10;
/** In a crowd all figures move more slowly: it is calmer to look at, and half the work. */
const CROWD_PACE = 0.5;

/** Puts the cast on the canvas, and of it only what looks different than before. */
export class Picture {
  readonly stage = new Stage();
  readonly #context: CanvasRenderingContext2D;
  readonly #canvas: HTMLCanvasElement;
  readonly #backdrop: Backdrop;
  readonly #overlays: Overlays;
  readonly #atlases = new Cache<Atlas>(KEPT_ATLASES);
  #theme: Theme;
  #wardrobe: HTMLCanvasElement | null = null;
  #lying: readonly Overlay[] = [];
  #lyingKey = '';
  /** Something under an overlay was painted anew, and part of the overlay went with it. */
  #torn = false;
  /** Some figures still look as before, as the frame had no more time. */
  unfinished = false;
  /** What has to be done before the next figure is drawn. */
  #due: 'nothing' | 'everything' | 'layout' = 'layout';

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
    this.#context = canvas.getContext('2d', { alpha: false }) as CanvasRenderingContext2D;
    this.#theme = readTheme(canvas);
    const measures = new Measures((text, font) => {
      this.#context.font = font;
      return this.#context.measureText(text).width;
    });
    this.#backdrop = new Backdrop(this.stage, measures, this.#theme);
    this.#overlays = new Overlays(this.stage, measures);
  }

  resize(width: number, height: number, unit: number): void {
    Object.assign(this.stage, { width, height, unit });
    this.#canvas.width = width;
    this.#canvas.height = height;
    this.#due = 'layout';
  }

  dress(wardrobe: HTMLCanvasElement): void {
    this.#wardrobe = wardrobe;
    this.#atlases.clear();
    this.moved();
  }

  recolour(): void {
    this.#theme = readTheme(this.#canvas);
    this.moved();
  }

  /** Something that everything depends on is different. */
  moved(): void {
    if (this.#due === 'nothing') this.#due = 'everything';
  }

  /** Draws what has changed. `attention` is called when it is known where every actor stands. */
  paint(cast: Cast, view: View, attention: () => Attention, now: number, still: boolean): void {
    const changes = cast.takeChanges();
    if (changes.layout) this.#due = 'layout';
    if (changes.repaint) this.moved();
    const afresh = this.#due !== 'nothing';
    if (afresh) this.#begin(cast, view);
    else this.#repaintStatic(changes);
    const stale = this.#stale(now, still);
    const overlays = this.#overlays.list(cast, attention(), still ? 0 : Math.floor(now / 500) % 2);
    const key = overlays.map((overlay) => overlay.key).join('\n');
    const touched = afresh || changes.vacated.length > 0 || changes.headings || stale.length > 0;
    if (!touched && key === this.#lyingKey) return;
    const lifted = afresh ? [] : this.#lift(overlays);
    let covered = afresh || this.#torn || lifted.length > 0 || key !== this.#lyingKey;
    this.#torn = false;
    for (const actor of lifted) this.#draw(actor, now, still);
    const begun = performance.now();
    this.unfinished = false;
    // Other figures are left for the next frame each time.
    const first = Math.floor(stale.length * ((now / 1000) % 1));
    for (let at = 0; at < stale.length; at++) {
      if (!afresh && at % 64 === 63 && performance.now() - begun > BUDGET) {
        this.unfinished = true;
        break;
      }
      const actor = stale[(first + at) % stale.length] as Actor;
      const over = afresh ? undefined : this.#lyingOver(actor, overlays);
      // In a crowd nobody sees that those under the edge of a bubble do not move, and words are dear to paint. Who has
      // changed, and not only moved, is drawn all the same.
      if (over?.solid && actor.drawn >= 0 && isCrowded(this.stage.groundOf(actor.area))) continue;
      if (over !== undefined) covered = true;
      this.#draw(actor, now, still);
    }
    if (covered) for (const overlay of overlays) overlay.paint(this.#context, this.#theme);
    this.#lying = overlays;
    this.#lyingKey = key;
  }

  /** The whole backdrop, without any figure yet. */
  #begin(cast: Cast, view: View): void {
    if (this.#due === 'layout') this.stage.plan(cast);
    this.#due = 'nothing';
    this.stage.behold(cast, view);
    this.#backdrop.paint(this.#theme);
    this.#context.imageSmoothingEnabled = false;
    this.#context.direction = 'ltr';
    this.#context.globalAlpha = 1;
    this.#context.drawImage(this.#backdrop.canvas, 0, 0);
    for (const actor of cast.actors.values()) actor.drawn = -1;
  }

  #repaintStatic(changes: Changes): void {
    for (const { area, seat } of changes.vacated) {
      const ground = this.stage.groundOf(area);
      if (ground === undefined || !isSeated(ground, seat)) continue;
      // Every stroke on the backdrop makes the browser copy all of it before the next figure is drawn over it.
      this.#wipe(ground.lines.below > 0 ? this.#backdrop.clear(ground, seat) : cellOf(ground, seat));
    }
    // An actor may have taken the seat of one that left: vacated seats are painted first.
    for (const actor of changes.actors) {
      const ground = this.stage.groundOf(actor.area);
      if (ground !== undefined && ground.lines.below > 0 && isSeated(ground, actor.seat))
        this.#wipe(this.#backdrop.paintActor(ground, actor));
    }
    if (changes.headings) for (const chamber of this.stage.chambers) this.#wipe(this.#backdrop.paintHeading(chamber));
  }

  /** Those who look different than they are drawn. */
  #stale(now: number, still: boolean): Actor[] {
    const stale: Actor[] = [];
    const whole = { x: 0, y: 0, width: this.stage.width, height: this.stage.height };
    for (const { room, box, grounds } of this.stage.chambers) {
      if (!meets(box, whole)) continue;
      const frozen = still || !room.info.live;
      for (const ground of grounds)
        if (meets(ground.box, whole))
          eachWithin(ground, whole, (actor) => {
            if (
              actor.drawn !== pictureOf(actor, ground, now, frozen) ||
              (!frozen && presence(actor.born, actor.gone, now) < 1)
            )
              stale.push(actor);
          });
    }
    return stale;
  }

  /**
   * Takes away what lies over the figures no more. Returns those under it, who have to be drawn again. What stays is
   * opaque, and is painted once more over the figures that have moved under it.
   */
  #lift(staying: readonly Overlay[]): Actor[] {
    const keys = new Set(staying.map(({ key }) => key));
    const uncovered = new Set<Actor>();
    for (const { key, box } of this.#lying) {
      if (keys.has(key)) continue;
      this.#copy(box);
      for (const { grounds } of this.stage.chambers)
        for (const ground of grounds)
          if (meets(ground.box, box)) eachWithin(ground, box, (actor) => void uncovered.add(actor));
    }
    return [...uncovered];
  }

  #lyingOver({ area, seat }: Actor, overlays: readonly Overlay[]): Overlay | undefined {
    const ground = this.stage.groundOf(area);
    if (ground === undefined || overlays.length === 0) return undefined;
    const figure = figureOf(ground, seat);
    return overlays.find(({ box }) => meets(box, figure));
  }

  #draw(actor: Actor, now: number, still: boolean): void {
    const { area, seat } = actor;
    const ground = this.stage.groundOf(area);
    const wardrobe = this.#wardrobe;
    if (ground === undefined || wardrobe === null) return;
    const frozen = still || !area.room.info.live;
    const picture = pictureOf(actor, ground, now, frozen);
    const box = figureOf(ground, seat);
    const plain = this.#backdrop.plainFloor(ground);
    // One colour is a quarter cheaper than a copy, which counts among ten thousand.
    if (plain === null) this.#copy(box);
    else {
      this.#context.fillStyle = plain;
      this.#context.fillRect(box.x, box.y, box.width, box.height);
    }
    const { grade, scale } = ground.fit;
    const atlas = this.#atlases.get(`${grade.cell} ${scale}`, () => cutAtlas(wardrobe, grade, scale));
    const variant = area.variant + (area.room.info.live ? 0 : GREY);
    const x = atlas.left + (variant % atlas.columns) * atlas.strideX + (picture % FRAMES) * atlas.cell;
    const y = Math.floor(variant / atlas.columns) * atlas.strideY + Math.floor(picture / FRAMES) * atlas.cell;
    const { cell } = atlas;
    const there = frozen ? 1 : presence(actor.born, actor.gone, now);
    if (there < 1) this.#context.globalAlpha = there;
    this.#context.drawImage(atlas.canvas, x, y, cell, cell, box.x, box.y, box.width, box.height);
    if (there < 1) this.#context.globalAlpha = 1;
    actor.drawn = picture;
  }

  #wipe(box: Box): void {
    this.#copy(box);
    this.#torn ||= this.#lying.some((overlay) => meets(overlay.box, box));
  }

  #copy(box: Box): void {
    const x = Math.max(0, Math.floor(box.x));
    const y = Math.max(0, Math.floor(box.y));
    const width = Math.min(this.stage.width, Math.ceil(box.x + box.width)) - x;
    const height = Math.min(this.stage.height, Math.ceil(box.y + box.height)) - y;
    if (width <= 0 || height <= 0) return;
    this.#context.drawImage(this.#backdrop.canvas, x, y, width, height, x, y, width, height);
  }
}

/** A picture is its row and its place in the row, in one number that is quick to compare. */
function pictureOf(actor: Actor, ground: Ground, now: number, frozen: boolean): number {
  const { row } = actor;
  if (frozen) return row * FRAMES + stillFrame(row);
  if (actor.gone !== null) return row * FRAMES + partingFrame(now - actor.parted);
  return row * FRAMES + frameAt(row, isCrowded(ground) ? now * CROWD_PACE : now, actor.offset);
}

/** Figures so small that one of them is no more than a thread in the cloth. */
const isCrowded = (ground: Ground | undefined): boolean => ground !== undefined && ground.fit.grade !== FIGURE;

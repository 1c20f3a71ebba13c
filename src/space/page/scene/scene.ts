import { type Actor, Cast, isInhabited } from './cast.ts';
import { type Gestures, listen } from './gestures.ts';
import { actorAt, type Direction, neighbour } from './hit-test.ts';
import { Picture } from './picture.ts';
import type { SceneFarewell, SceneWorld } from './port.ts';
import { loadWardrobe } from './sprites.ts';
import { cellOf } from './stage.ts';
import { watchTheme } from './theme.ts';
import { View } from './view.ts';

/**
 * The picture on a canvas, one figure for every session. It draws what it was last shown, and keeps no other truth. The
 * canvas must have its size from the page's styles.
 */
export class Scene {
  readonly #canvas: HTMLCanvasElement;
  readonly #onPick: (id: string | null) => void;
  readonly #cast = new Cast();
  readonly #picture: Picture;
  readonly #view = new View();
  readonly #disposal = new AbortController();
  #selected: string | null = null;
  #pointer: readonly [x: number, y: number] | null = null;
  #still = false;
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(canvas: HTMLCanvasElement, onPick: (id: string | null) => void) {
    this.#canvas = canvas;
    this.#onPick = onPick;
    this.#picture = new Picture(canvas);
    this.#watchSize();
    const { signal } = this.#disposal;
    listen(canvas, this.#gestures(), signal);
    const recolour = (): void => {
      this.#picture.recolour();
      this.#wake();
    };
    watchTheme(recolour, signal);
    document.addEventListener('visibilitychange', () => this.#wake(), { signal });
    void this.#dress();
  }

  /** May be called many times a second with ten thousand sessions: what is the same object as before has not changed. */
  show(world: SceneWorld): void {
    this.#cast.show(world, performance.now());
    this.#wake();
  }

  farewell(ended: readonly SceneFarewell[]): void {
    const now = performance.now();
    for (const one of ended) this.#cast.farewell(one, now);
    this.#wake();
  }

  select(id: string | null): void {
    this.#selected = id;
    this.#wake();
  }

  /** Moves the selection as an arrow key says. Returns which session is selected then; null when there is none. */
  step(direction: Direction): string | null {
    // Keys may come before the first frame: where every actor stands has to be known.
    this.#paint(performance.now());
    const from = this.#selectedActor();
    const to = neighbour(this.#picture.stage, from, direction);
    this.#selected = to?.session.id ?? null;
    if (to !== null) this.#bringIntoView(to);
    this.#wake();
    return this.#selected;
  }

  /** Nothing moves: for people who asked their system for that. */
  setStill(still: boolean): void {
    if (still === this.#still) return;
    this.#still = still;
    this.#picture.moved();
    this.#wake();
  }

  dispose(): void {
    this.#disposal.abort();
    cancelAnimationFrame(this.#frame);
    clearTimeout(this.#timer);
  }

  async #dress(): Promise<void> {
    try {
      this.#picture.dress(await loadWardrobe());
      this.#wake();
    } catch {
      // Without its drawings the scene still shows rooms, names and bubbles; the table has the rest.
    }
  }

  #watchSize(): void {
    const observer = new ResizeObserver(([entry]) => {
      const unit = Math.max(1, devicePixelRatio);
      const exact = entry?.devicePixelContentBoxSize?.[0];
      const width = pixels(entry?.contentRect.width, exact?.inlineSize, unit);
      const height = pixels(entry?.contentRect.height, exact?.blockSize, unit);
      this.#picture.resize(width, height, unit);
      this.#view.reset();
      // At once: a canvas that was given a size is empty, and would be shown so.
      this.#paint(performance.now());
      this.#wake();
    });
    try {
      observer.observe(this.#canvas, { box: 'device-pixel-content-box' });
    } catch {
      // Safari does not know the box; its pixels are then reckoned.
      observer.observe(this.#canvas);
    }
    this.#disposal.signal.addEventListener('abort', () => observer.disconnect());
  }

  #gestures(): Gestures {
    const { stage } = this.#picture;
    const moved = (whether: boolean): boolean => {
      if (!whether) return false;
      this.#picture.moved();
      // With the whole house in view a finger scrolls the page; closer it drags the house.
      this.#canvas.style.touchAction = this.#view.zoom === 1 ? 'pan-x pan-y' : 'none';
      this.#wake();
      return true;
    };
    this.#canvas.style.touchAction = 'pan-x pan-y';
    return {
      hover: (x, y) => {
        this.#pointer = [x, y];
        this.#canvas.style.cursor = actorAt(stage, x, y) === null ? '' : 'pointer';
        this.#wake();
      },
      leave: () => {
        this.#pointer = null;
        this.#wake();
      },
      tap: (x, y) => {
        const id = actorAt(stage, x, y)?.session.id ?? null;
        this.select(id);
        this.#onPick(id);
      },
      drag: (dx, dy) => moved(this.#view.moveBy(dx, dy, stage.width, stage.height)),
      zoom: (factor, x, y) => moved(this.#view.zoomAt(factor, x, y, stage.width, stage.height)),
      reset: () => void moved(this.#view.reset()),
    };
  }

  #selectedActor(): Actor | null {
    return this.#selected === null ? null : (this.#cast.actors.get(this.#selected) ?? null);
  }

  /** An actor chosen by key may stand outside of what is looked at. */
  #bringIntoView(actor: Actor): void {
    const { stage } = this.#picture;
    const ground = stage.groundOf(actor.area);
    if (ground === undefined) return;
    const { x, y, width, height } = cellOf(ground, actor.seat);
    const dx = Math.max(0, -x) + Math.min(0, stage.width - x - width);
    const dy = Math.max(0, -y) + Math.min(0, stage.height - y - height);
    if (this.#view.moveBy(dx, dy, stage.width, stage.height)) this.#picture.moved();
  }

  #wake(): void {
    if (this.#frame !== 0 || this.#disposal.signal.aborted || document.hidden) return;
    clearTimeout(this.#timer);
    this.#frame = requestAnimationFrame((now) => this.#tick(now));
  }

  #tick(now: number): void {
    this.#frame = 0;
    if (this.#disposal.signal.aborted || document.hidden) return;
    this.#cast.dismiss(now);
    this.#cast.closeEmptyAreas(now);
    this.#paint(now);
    if (this.#picture.unfinished || (!this.#still && this.#anybodyMoves())) this.#wake();
    else this.#wakeForNextDeparture(now);
  }

  #paint(now: number): void {
    const { stage } = this.#picture;
    const attention = () => ({
      hovered: this.#pointer === null ? null : actorAt(stage, ...this.#pointer),
      selected: this.#selectedActor(),
    });
    this.#picture.paint(this.#cast, this.#view, attention, now, this.#still);
  }

  #anybodyMoves(): boolean {
    if (this.#cast.leaving.size > 0) return true;
    return this.#cast.rooms.some((room) => room.info.live && isInhabited(room));
  }

  #wakeForNextDeparture(now: number): void {
    let next = Number.POSITIVE_INFINITY;
    for (const { gone } of this.#cast.leaving) next = Math.min(next, gone ?? next);
    clearTimeout(this.#timer);
    if (next < Number.POSITIVE_INFINITY) this.#timer = setTimeout(() => this.#wake(), Math.max(0, next - now) + 1);
  }
}

/** The exact number where it is one: a browser that only pretends to have a finer screen tells that of the real one. */
function pixels(length = 1, exact = 0, unit = 1): number {
  const reckoned = length * unit;
  return Math.max(1, Math.abs(exact - reckoned) < 1 ? exact : Math.round(reckoned));
}

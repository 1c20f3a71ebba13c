import type { Box } from './layout.ts';

const FARTHEST = 16;

/** What part of the house is looked at. */
export class View {
  zoom = 1;
  #x = 0;
  #y = 0;

  toScreen(box: Box): Box {
    const { zoom } = this;
    return { x: box.x * zoom - this.#x, y: box.y * zoom - this.#y, width: box.width * zoom, height: box.height * zoom };
  }

  /** Comes closer by a factor, around a point that stays where it is. Returns whether anything moved. */
  zoomAt(factor: number, x: number, y: number, width: number, height: number): boolean {
    const zoom = Math.min(FARTHEST, Math.max(1, this.zoom * factor));
    if (zoom === this.zoom) return false;
    this.#x = ((this.#x + x) / this.zoom) * zoom - x;
    this.#y = ((this.#y + y) / this.zoom) * zoom - y;
    this.zoom = zoom;
    this.moveBy(0, 0, width, height);
    return true;
  }

  /** Drags the house, never past its walls. Returns whether anything moved. */
  moveBy(dx: number, dy: number, width: number, height: number): boolean {
    const x = Math.min(Math.max(0, this.#x - dx), width * (this.zoom - 1));
    const y = Math.min(Math.max(0, this.#y - dy), height * (this.zoom - 1));
    const moved = x !== this.#x || y !== this.#y;
    this.#x = x;
    this.#y = y;
    return moved;
  }

  reset(): boolean {
    const moved = this.zoom !== 1;
    this.zoom = 1;
    this.#x = 0;
    this.#y = 0;
    return moved;
  }
}

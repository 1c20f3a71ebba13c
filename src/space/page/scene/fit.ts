import { FIGURE, type Grade, MINI, SPECK } from './sheet.ts';

/** How the figures of a room are drawn: by how much space a cell has. */
export interface Fit {
  readonly grade: Grade;
  /** Whole, so that every pixel of the drawing is as large as the others. */
  readonly scale: number;
  /** The height of the line over a figure, for what it works with; 0 when there is none. */
  readonly above: number;
  /** The height of the line under a figure, for its name; 0 when there is none. */
  readonly below: number;
}

/** Lines of text, and the narrowest cell in which a name says anything, in pixels of the page. */
export const ABOVE = 17;
export const BELOW = 15;
const NAMED_WIDTH = 58;
const LARGEST = 6;

/** The largest way to draw figures in cells of this size. Names come before size: who it is says more than how large. */
export function chooseFit(width: number, height: number, unit: number): Fit {
  const named = width >= NAMED_WIDTH * unit;
  const largest = Math.ceil(LARGEST * unit);
  const smallestNamed = Math.ceil(2 * unit);
  const lines: readonly [number, number][] = named
    ? [
        [ABOVE * unit, BELOW * unit],
        [0, BELOW * unit],
      ]
    : [];
  for (const [above, below] of lines) {
    const scale = Math.min(largest, Math.floor(Math.min(width / FIGURE.cell, (height - above - below) / FIGURE.cell)));
    if (scale >= smallestNamed) return { grade: FIGURE, scale, above, below };
  }
  const side = Math.min(width, height) - 1;
  for (const grade of [FIGURE, MINI]) {
    const scale = Math.min(largest, Math.floor(side / grade.cell));
    if (scale >= 1) return { grade, scale, above: 0, below: 0 };
  }
  return { grade: SPECK, scale: 1, above: 0, below: 0 };
}

import { FIGURE, type Grade, MINI, SPECK } from './sheet.ts';

/** How large figures are drawn. */
export interface Fit {
  readonly grade: Grade;
  /** Whole, so that every pixel of the drawing is as large as the others. */
  readonly scale: number;
}

/** Lines of text, and the narrowest cell in which a name says anything, in pixels of the page. */
const ABOVE = 16;
const BELOW = 14;
const NAMED_WIDTH = 54;
/** The smallest figure under which a name stands, and the largest of all. */
const NAMED_SCALE = 2;
const LARGEST_SCALE = 6;

/** The largest way to draw figures in cells of this size. A name comes before size: who it is says more. */
export function chooseFit(width: number, height: number, unit: number): Fit {
  const largest = Math.ceil(LARGEST_SCALE * unit);
  const named = Math.ceil(NAMED_SCALE * unit);
  for (const lines of width >= NAMED_WIDTH * unit ? [ABOVE + BELOW, BELOW] : []) {
    const scale = Math.floor(Math.min(width, height - lines * unit) / FIGURE.cell);
    if (scale >= named) return { grade: FIGURE, scale: Math.min(largest, scale) };
  }
  // Half a pixel between neighbours is enough to tell them apart.
  const side = Math.min(width, height) - 0.5;
  for (const grade of [FIGURE, MINI]) {
    const scale = Math.floor(side / grade.cell);
    if (scale >= 1) return { grade, scale: Math.min(largest, scale) };
  }
  return { grade: SPECK, scale: 1 };
}

/** The heights of the lines over a figure, for what it works with, and under it, for its name; 0 when there is none. */
export function linesIn(width: number, height: number, { grade, scale }: Fit, unit: number) {
  const free = height - grade.cell * scale;
  if (grade !== FIGURE || scale < NAMED_SCALE * unit || width < NAMED_WIDTH * unit || free < BELOW * unit)
    return { above: 0, below: 0 };
  return { above: free >= (ABOVE + BELOW) * unit ? ABOVE * unit : 0, below: BELOW * unit };
}

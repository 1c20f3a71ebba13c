import type { Box } from './layout.ts';
import type { Theme } from './theme.ts';

/** A box with its corners bitten off, as everything here is made of pixels. */
export function paintBubble(
  context: CanvasRenderingContext2D,
  box: Box,
  unit: number,
  fill: string,
  edge: string,
): void {
  const { x, y, width, height } = box;
  const line = Math.max(1, Math.round(unit));
  context.fillStyle = edge;
  context.fillRect(x + line, y, width - 2 * line, height);
  context.fillRect(x, y + line, width, height - 2 * line);
  context.fillStyle = fill;
  context.fillRect(x + line, y + line, width - 2 * line, height - 2 * line);
}

/** The little beak under a bubble; with a `step` of -1 over it. */
export function paintBeak(
  context: CanvasRenderingContext2D,
  x: number,
  y: number,
  unit: number,
  step: 1 | -1,
  { floor, text }: Theme,
): void {
  const line = Math.max(1, Math.round(unit));
  const top = (row: number): number => (step === 1 ? y + row * line : y - (row + 1) * line);
  for (let row = -1; row < 3; row++) {
    context.fillStyle = text;
    context.fillRect(x - (3 - row) * line, top(row), (7 - 2 * row) * line, line);
    context.fillStyle = floor;
    if (row < 2) context.fillRect(x - (2 - row) * line, top(row), (5 - 2 * row) * line, line);
  }
}

import { PHASES, type Phase } from '../protocol.ts';

/** What a figure can look like: its phase, or that its thread has been cut. */
export type Look = Phase | 'ending';

/** The rows of the sheet, top to bottom. */
export const LOOKS: readonly Look[] = [...PHASES, 'ending'];

/** Every look has this many pictures, left to right. */
export const FRAMES = 4;

/** A size in which every figure is drawn by hand: what tells phases apart does not survive being shrunk. */
export interface Grade {
  /** Pixels of one side of its cell. */
  readonly cell: number;
  /** Where its columns start in the sheet. */
  readonly left: number;
}

export const FIGURE: Grade = { cell: 24, left: 0 };
export const MINI: Grade = { cell: 8, left: 96 };
export const SPECK: Grade = { cell: 4, left: 128 };

/** What is worn on the head stands in one more row, under the figures. */
export const HATS = ['none', 'plume', 'visor', 'antenna', 'clock', 'bow'] as const;
export const HATS_TOP = LOOKS.length * FIGURE.cell;
/** Where the crown of the head is in the cell of a hat. */
export const HAT_CROWN = { x: 12, y: 8 };
export const SHEET_WIDTH = 144;
export const SHEET_HEIGHT = HATS_TOP + FIGURE.cell;

/** The colours of a cloak in the sheet, light, middle and dark: replaced by those of the platform. */
export const CLOAK: readonly [string, string, string] = ['#b79cf0', '#8f6fd6', '#64489f'];

/** Marks where a hat sits; it is never shown. */
export const CROWN = '#ff00ff';

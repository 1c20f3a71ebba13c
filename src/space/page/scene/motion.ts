import { FRAMES, LOOKS, type Look } from './sheet.ts';

/** How long one picture of a look stays, in milliseconds. */
const PERIODS: Readonly<Record<Look, number>> = {
  idle: 900,
  queued: 420,
  thinking: 260,
  tool: 190,
  replying: 300,
  resume_pending: 650,
  suspended: 1100,
  ending: 350,
};
const PERIOD_OF_ROW = LOOKS.map((look) => PERIODS[look]);

/** The picture that says most, for people who want nothing to move. */
const STILL_FRAME = 2;

/** How long an actor takes to appear, and to leave with and without a reason. */
const APPEARING = 500;
export const FAREWELL = 4000;
export const VANISHING = 700;
const FADING = 1300;

export const rowOf = (look: Look): number => LOOKS.indexOf(look);
const ENDING_ROW = rowOf('ending');

/** Which picture of a row is shown. `offset` keeps neighbours from moving as one. */
export function frameAt(row: number, now: number, offset: number): number {
  return Math.floor((now + offset) / (PERIOD_OF_ROW[row] ?? 1000)) % FRAMES;
}

/** The thread is cut once, and stays cut. */
export const partingFrame = (since: number): number => Math.min(FRAMES - 1, Math.floor(since / PERIODS.ending));

export const stillFrame = (row: number): number => (row === ENDING_ROW ? FRAMES - 1 : STILL_FRAME);

/** How opaque an actor is, 0 to 1, that came at `born` and, when leaving, is gone at `gone`. */
export function presence(born: number, gone: number | null, now: number): number {
  if (gone !== null) return Math.max(0, Math.min(1, (gone - now) / FADING));
  return Math.max(0, Math.min(1, (now - born) / APPEARING));
}

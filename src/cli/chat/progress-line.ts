import type { TurnEvent } from '../../turns/turn-event.ts';
import { printable, shorten } from '../print.ts';

const SHOWN = 120;

/** What a tool begins or ended, in a line; null for what is no tool's. */
export function progressLine(event: TurnEvent): string | null {
  if (event.type !== 'tool') return null;
  if (event.state === 'start') return shorten(`· ${printable(event.name)} ${argsText(event.args)}`, SHOWN);
  return `· ${printable(event.name)} ${event.ok ? 'done' : 'failed'}`;
}

function argsText(args: unknown): string {
  return printable(typeof args === 'string' ? args : (JSON.stringify(args) ?? ''));
}

import type { Progress } from '../../agent/runner.ts';
import { printable, shorten } from '../print.ts';

const SHOWN = 120;

/** What a tool begins or ended, in a line; null for what is no tool's. */
export function progressLine(progress: Progress): string | null {
  if (progress.type === 'tool_start') return shorten(`· ${printable(progress.name)} ${argsText(progress.args)}`, SHOWN);
  if (progress.type === 'tool_end') return `· ${printable(progress.name)} ${progress.ok ? 'done' : 'failed'}`;
  return null;
}

function argsText(args: unknown): string {
  return printable(typeof args === 'string' ? args : (JSON.stringify(args) ?? ''));
}

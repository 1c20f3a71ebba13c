import { printable } from './print.ts';

/** A message for people: its further lines are indented, so that none can pass for another message. */
export function indentedText(heading: string, text: string): string {
  const lines = text.split(/\r?\n/).map(printable);
  return `${printable(heading)}: ${lines.join('\n    ')}`;
}

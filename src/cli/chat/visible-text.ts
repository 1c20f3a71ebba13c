import { printable } from '../print.ts';

/** Text of unknown origin as people may see it: its lines and tabs stay, everything else that acts on a terminal shows. */
export function visibleText(text: string): string {
  return text.replaceAll('\r\n', '\n').replace(/[^\n\t]+/g, printable);
}

/** The same for text that comes in pieces: half a character, or half a line break, waits for its other half. */
export class VisibleStream {
  #held = '';

  piece(text: string): string {
    const whole = this.#held + text;
    this.#held = /[\r\ud800-\udbff]$/.exec(whole)?.[0] ?? '';
    return visibleText(whole.slice(0, whole.length - this.#held.length));
  }

  /** What still waits when nothing more will come. */
  rest(): string {
    const held = this.#held;
    this.#held = '';
    return visibleText(held);
  }
}

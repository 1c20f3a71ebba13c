import type { TurnResultRow } from '../../store/transactions/turns.ts';
import type { TurnEvent } from '../../turns/turn-event.ts';
import { printable, shorten } from '../print.ts';
import type { Screen } from './screen.ts';
import { VisibleStream, visibleText } from './visible-text.ts';

/** Colours, where they are wanted. */
export interface Style {
  dim(text: string): string;
  alarm(text: string): string;
}

export function styleFor(terminal: boolean, env: Readonly<Record<string, string | undefined>>): Style {
  const coloured = terminal && !env.NO_COLOR && env.TERM !== 'dumb';
  const paint =
    (code: number) =>
    (text: string): string =>
      coloured ? `\u001b[${code}m${text}\u001b[0m` : text;
  return { dim: paint(2), alarm: paint(31) };
}

/** One turn as it is seen: its text while it comes, its tools in lines between. */
export class TurnView {
  readonly #screen: Screen;
  readonly #style: Style;
  readonly #reasoning: boolean;
  #text = new VisibleStream();
  #shown = '';
  #thinking = false;

  constructor(screen: Screen, style: Style, reasoning: boolean) {
    this.#screen = screen;
    this.#style = style;
    this.#reasoning = reasoning;
  }

  show(event: TurnEvent): void {
    if (event.type === 'text') this.#tell(event.text);
    else if (event.type === 'reasoning') this.#think(event.text);
    else if (event.type === 'tool' || event.type === 'step') this.#mention(event);
  }

  /** Tells what is left to be told; null when this process leaves before the turn is over. */
  finish(turn: TurnResultRow | null): void {
    this.#endText();
    if (turn === null) return;
    const { outcome, response, model } = turn;
    const text = visibleText(response ?? `The turn ended: ${outcome}.`).trimEnd();
    if (outcome === 'failed' || outcome === 'timeout') this.#screen.line(this.#style.alarm(text));
    // No model: it was stopped, or taken into another turn, and this is what the gateway says about it.
    else if (model === null) this.#screen.line(this.#style.dim(text));
    else if (!this.#shown.endsWith(response ?? '')) this.#screen.line(text);
  }

  #tell(text: string): void {
    if (this.#thinking) this.#endText();
    this.#shown += text;
    this.#screen.say(this.#text.piece(text));
  }

  #think(text: string): void {
    if (!this.#reasoning) return;
    if (!this.#thinking) this.#endText();
    this.#thinking = true;
    this.#screen.say(this.#style.dim(this.#text.piece(text)));
  }

  #mention(event: TurnEvent): void {
    this.#endText();
    const line = progressLine(event);
    if (line !== null) this.#screen.line(this.#style.dim(line));
  }

  #endText(): void {
    this.#screen.say(this.#text.rest());
    this.#screen.endLine();
    this.#thinking = false;
  }
}

const PROGRESS_CHARS = 120;

/** What a tool begins or ended, in a line; null for what is no tool's. */
export function progressLine(event: TurnEvent): string | null {
  if (event.type !== 'tool') return null;
  if (event.state === 'start') return shorten(`· ${printable(event.name)} ${argsText(event.args)}`, PROGRESS_CHARS);
  return `· ${printable(event.name)} ${event.ok ? 'done' : 'failed'}`;
}

function argsText(args: unknown): string {
  return printable(typeof args === 'string' ? args : (JSON.stringify(args) ?? ''));
}

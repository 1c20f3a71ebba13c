import { fontOf } from './backdrop.ts';
import { paintBeak, paintBubble } from './bubble.ts';
import type { Actor, Cast } from './cast.ts';
import { type Measures, plainText } from './labels.ts';
import type { Box } from './layout.ts';
import { meets, type Stage } from './stage.ts';
import type { Theme } from './theme.ts';

/** Something that lies over the figures. */
export interface Overlay {
  /** All that it covers. */
  readonly box: Box;
  /** The same as long as it looks the same. */
  readonly key: string;
  /** Nothing can be seen through it. */
  readonly solid: boolean;
  paint(context: CanvasRenderingContext2D, theme: Theme): void;
}

/** So much of the picture one farewell needs to be read; of more, only the threads are seen to be cut. */
const FAREWELL_SPACE = 40_000;
const MOST_FAREWELLS = 24;
const PHASE_WORDS: Readonly<Record<string, string>> = { resume_pending: 'waits to be resumed', tool: 'works' };

export interface Attention {
  readonly hovered: Actor | null;
  readonly selected: Actor | null;
}

export class Overlays {
  readonly #stage: Stage;
  readonly #measures: Measures;

  constructor(stage: Stage, measures: Measures) {
    this.#stage = stage;
    this.#measures = measures;
  }

  /** What lies over the figures now, lowest first. `beat` moves what may move. */
  list(cast: Cast, { hovered, selected }: Attention, beat: number): Overlay[] {
    const overlays: (Overlay | null)[] = [];
    if (selected !== null) overlays.push(this.#brackets(selected, beat));
    const { width, height, unit } = this.#stage;
    const most = Math.min(MOST_FAREWELLS, Math.ceil((width * height) / (FAREWELL_SPACE * unit * unit)));
    const parting = [...cast.leaving].filter((actor) => actor.reason !== null).slice(-most);
    for (const actor of parting) overlays.push(this.#bubble(actor, [plainText(actor.reason ?? '', 60)]));
    if (hovered !== null && hovered.reason === null) overlays.push(this.#bubble(hovered, describe(hovered)));
    return overlays.filter((overlay) => overlay !== null);
  }

  /** Four corners around an actor, larger than its figure, so that it is found in a crowd. */
  #brackets(actor: Actor, beat: number): Overlay | null {
    const figure = this.#stage.figureOf(actor);
    if (figure === null) return null;
    const line = Math.max(2, Math.round(2 * this.#stage.unit));
    const out = line + beat * line;
    const x = figure.x - out - line;
    const y = figure.y - out - line;
    const side = figure.width + 2 * (out + line);
    const arm = Math.max(line * 2, Math.round(side / 4));
    return {
      box: { x, y, width: side, height: side },
      key: `[${actor.session.id}${beat}`,
      solid: false,
      paint(context, { accent }) {
        context.fillStyle = accent;
        for (const right of [0, 1])
          for (const low of [0, 1]) {
            context.fillRect(x + right * (side - arm), y + low * (side - line), arm, line);
            context.fillRect(x + right * (side - line), y + low * (side - arm), line, arm);
          }
      },
    };
  }

  /** Words over a figure, or under it where there is no space over it. */
  #bubble(actor: Actor, lines: readonly string[]): Overlay | null {
    const { unit, width: wide, height: high } = this.#stage;
    const figure = this.#stage.figureOf(actor);
    // Words of an actor that is out of sight would hang at the edge, over another one.
    if (figure === null || !meets(figure, { x: 0, y: 0, width: wide, height: high })) return null;
    const fonts = [fontOf(12, unit, '600'), fontOf(11, unit)];
    const most = Math.min(wide - 24 * unit, 280 * unit);
    const fontAt = (index: number): string => fonts[index === 0 ? 0 : 1] as string;
    const shown = lines.map((line, index) => this.#measures.fit(line, fontAt(index), most));
    const widest = Math.max(...shown.map((line, index) => this.#measures.width(line, fontAt(index))));
    const width = Math.round(widest + 16 * unit);
    const height = Math.round((shown.length * 15 + 8) * unit);
    const beak = Math.ceil(4 * unit);
    const middle = figure.x + figure.width / 2;
    const above = figure.y - height - beak >= 0;
    const x = Math.round(Math.min(Math.max(2 * unit, middle - width / 2), wide - width - 2 * unit));
    const y = Math.round(above ? figure.y - height - beak : Math.min(figure.y + figure.height + beak, high - height));
    return {
      box: { x, y: y - beak, width, height: height + 2 * beak },
      key: `"${actor.session.id}${shown.join('\n')}${x},${y}`,
      solid: true,
      paint(context, theme) {
        const box = { x, y, width, height };
        paintBubble(context, box, unit, theme.floor, theme.text);
        const tip = Math.round(Math.min(Math.max(middle, x + 6 * unit), x + width - 6 * unit));
        paintBeak(context, tip, above ? y + height : y, unit, above ? 1 : -1, theme);
        context.textAlign = 'left';
        context.textBaseline = 'middle';
        shown.forEach((line, index) => {
          context.font = fontAt(index);
          context.fillStyle = index === 0 ? theme.text : theme.muted;
          context.fillText(line, x + 8 * unit, Math.round(y + (4 + 15 * index + 8) * unit));
        });
      },
    };
  }
}

function describe({ session, gone }: Actor): string[] {
  const phase = PHASE_WORDS[session.phase] ?? session.phase;
  const doing =
    session.phase === 'tool' && session.tool !== null ? `${phase} with ${plainText(session.tool, 40)}` : phase;
  return [
    plainText(session.label, 60) || 'without a name',
    `${plainText(session.platform, 24)} · ${gone === null ? doing : 'has ended'}`,
  ];
}

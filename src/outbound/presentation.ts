import type { Session } from '../lifecycle/session.ts';
import type { Logger } from '../log/logger.ts';
import { sanitize } from '../platforms/outside-text.ts';
import type { Incoming, Place, Platform, ReactionSign } from '../platforms/platform.ts';
import type { Timers } from '../queue/timers.ts';
import type { TurnEvent } from '../turns/turn-event.ts';
import type { TurnRun } from '../turns/turn-run.ts';
import type { Display } from './display.ts';
import type { EditPace } from './edit-pace.ts';
import { LiveReply } from './live-reply.ts';

export interface PresentationDeps {
  /** The platform of a session, as long as it can be reached. */
  readonly platformOf: (session: Session) => Platform | null;
  readonly displayOf: (platform: Platform) => Display;
  readonly timers: Timers;
  readonly pace: EditPace;
  readonly log: Logger;
}

interface Shown {
  readonly platform: Platform;
  readonly place: Place;
  readonly display: Display;
  readonly live: LiveReply | null;
  text: string;
  tools: string[];
  stopTyping: () => void;
}

const TYPING_MS = 4000;
const CALL_MS = 5000;
const MAX_WATCHED = 1000;

/**
 * What people on a chat platform see while a turn runs: typing, a sign at their message, a reply that grows, the tools
 * that work. None of it is kept and none of it can fail a turn.
 */
export class Presentation {
  readonly #deps: PresentationDeps;
  readonly #shown = new Map<string, Shown>();
  /** The messages that turns answer, for the sign at them. */
  readonly #asked = new Map<string, { readonly place: Place; readonly messageId: string }>();

  constructor(deps: PresentationDeps) {
    this.#deps = deps;
  }

  /** A message was taken in: its turn answers it. */
  taken({ place, messageId }: Incoming, turnId: string): void {
    if (this.#asked.size >= MAX_WATCHED) this.#asked.delete(this.#asked.keys().next().value ?? '');
    this.#asked.set(turnId, { place, messageId });
  }

  /** A turn begins: shows it to the people of its session until it is over. */
  started(run: TurnRun): void {
    const platform = this.#deps.platformOf(run.session);
    const place = run.session.origin as Place | null;
    if (platform === null || place === null) return;
    const display = this.#deps.displayOf(platform);
    const live = display.streaming ? new LiveReply(platform, place, this.#deps.timers, this.#deps.pace) : null;
    const shown: Shown = { platform, place, display, live, text: '', tools: [], stopTyping: () => undefined };
    this.#shown.set(run.turn.id, shown);
    if (display.typing) this.#keepTyping(shown);
    this.#react(run.turn.id, shown, 'seen');
    run.channel.subscribe((event) => this.#show(shown, event));
    run.channel.onEnd(() => this.#over(run, run.outcome === 'done' ? 'done' : 'failed'));
  }

  #show(shown: Shown, event: TurnEvent): void {
    if (shown.live === null) return;
    if (event.type === 'text') shown.text += event.text;
    else if (event.type === 'tool' && event.state === 'start' && shown.display.toolProgress !== 'off') {
      shown.tools.push(toolLine(event.name, shown.display.toolProgress === 'all' ? event.args : undefined));
    } else if (event.type === 'step' && event.tools.length > 0) {
      // What is said before tools is not the answer: the next words begin anew.
      shown.text = '';
      return;
    } else return;
    shown.live.show([...shown.tools.slice(-MOST_TOOLS), shown.text].filter((part) => part !== '').join('\n'));
  }

  /** The reply is complete: the message that it takes the place of, if one was shown. */
  async replaced(run: TurnRun): Promise<string | null> {
    const live = this.#shown.get(run.turn.id)?.live ?? null;
    return live === null ? null : live.close();
  }

  #over(run: TurnRun, outcome: 'done' | 'failed'): void {
    const shown = this.#shown.get(run.turn.id);
    if (shown === undefined) return;
    shown.stopTyping();
    this.#shown.delete(run.turn.id);
    this.#react(run.turn.id, shown, outcome);
    this.#asked.delete(run.turn.id);
    // A turn that was cut leaves what was shown so far; the next process answers in a message of its own.
    void shown.live?.close();
  }

  #keepTyping(shown: Shown): void {
    const again = (): void => {
      this.#try(shown, (signal) => shown.platform.showTyping?.(shown.place, signal));
      shown.stopTyping = this.#deps.timers.after(TYPING_MS, again);
    };
    again();
  }

  #react(turnId: string, shown: Shown, sign: ReactionSign): void {
    const asked = this.#asked.get(turnId);
    if (!shown.display.reactions || asked === undefined) return;
    this.#try(shown, (signal) => shown.platform.react?.(asked.place, asked.messageId, sign, signal));
  }

  #try({ platform }: Shown, call: (signal: AbortSignal) => Promise<void> | undefined): void {
    call(AbortSignal.timeout(CALL_MS))?.catch((error: unknown) => {
      this.#deps.log.debug('a sign was not shown', { platform: platform.name, error });
    });
  }
}

const MOST_TOOLS = 5;
const MAX_ARGS = 80;

function toolLine(name: string, args: unknown): string {
  const shown = args === undefined ? '' : ` ${sanitize(JSON.stringify(args) ?? '', MAX_ARGS)}`;
  return `⚙ ${sanitize(name)}${shown}`;
}

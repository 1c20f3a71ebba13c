import type { Session } from '../lifecycle/session.ts';
import type { Logger } from '../log/logger.ts';
import { abilitiesAt } from '../platforms/abilities.ts';
import { sanitize } from '../platforms/outside-text.ts';
import type { Abilities, Detail, Place, Platform, ReactionSign, ReplyContext } from '../platforms/platform.ts';
import type { Timers } from '../queue/timers.ts';
import type { TurnEvent } from '../turns/turn-event.ts';
import type { TurnRun } from '../turns/turn-run.ts';
import type { Display } from './display.ts';
import type { EditPace } from './edit-pace.ts';
import { LiveReply } from './live-reply.ts';
import type { LiveHandle } from './live-reply-store.ts';
import type { ReplyShape } from './reply-shape.ts';

export interface PresentationDeps {
  /** The platform of a session, as long as it can be reached. */
  readonly platformOf: (session: Session) => Platform | null;
  readonly displayOf: (platform: Platform, place: Place) => Display;
  /** The message that a turn answers, as it was kept with it; null for none. */
  readonly replyOf: (turnId: string) => Promise<ReplyContext | null>;
  readonly liveReplies: LiveReplyMemory;
  readonly timers: Timers;
  readonly pace: EditPace;
  readonly log: Logger;
}

/** What the next process has to know of replies that grow. */
export interface LiveReplyMemory {
  find(turnId: string): Promise<LiveHandle | null>;
  keep(turnId: string, platform: string, place: Place, handle: LiveHandle): Promise<void>;
  /** The turn is over and nothing of it is sent: what people watched growing gets its last words. */
  abandon(turnId: string, platform: Platform, place: Place, handle: LiveHandle, text: string): Promise<void>;
}

/** What is shown of one turn. */
interface Shown {
  readonly platform: Platform;
  readonly place: Place;
  readonly display: Display;
  readonly reply: ReplyContext | null;
  readonly live: LiveReply | null;
  /** What a process before this one has shown of the reply. */
  readonly kept: LiveHandle | null;
  text: string;
  tools: string[];
  outputs: Detail[];
  /** The reply takes the place of what was shown. */
  replaced: boolean;
  stopTyping: () => void;
  /** One after the other: the last one stays. */
  signs: Promise<void>;
}

const TYPING_MS = 4000;
const CALL_MS = 5000;

/**
 * What people on a chat platform see while a turn runs: typing, a sign at their message, a reply that grows, the tools
 * that work. None of it can fail a turn. Where a reply grows is kept: the process that goes on with the turn goes on there.
 */
export class Presentation {
  readonly #deps: PresentationDeps;
  readonly #shown = new Map<string, Promise<Shown | null>>();

  constructor(deps: PresentationDeps) {
    this.#deps = deps;
  }

  /** A turn begins: shows it to the people of its session until it is over. */
  started(run: TurnRun): void {
    const platform = this.#deps.platformOf(run.session);
    const place = run.session.origin as Place | null;
    if (platform === null || place === null) return;
    const { log } = this.#deps;
    let isOver = false;
    const preparing = this.#prepare(run, platform, place).then(
      (shown) => {
        if (!isOver) this.#begin(run, shown);
        return shown;
      },
      (error: unknown) => {
        log.warn('a turn is not shown to its people', { turn: run.turn.id, platform: platform.name, error });
        return null;
      },
    );
    this.#shown.set(run.turn.id, preparing);
    run.channel.onEnd(() => {
      isOver = true;
      void preparing.then((shown) => this.#over(run, shown));
    });
  }

  #begin(run: TurnRun, shown: Shown): void {
    if (shown.display.typing) this.#keepTyping(shown, abilitiesAt(shown.platform, shown.place));
    this.#react(shown, 'seen');
    run.channel.subscribe((event) => this.#show(shown, event));
  }

  async #prepare(run: TurnRun, platform: Platform, place: Place): Promise<Shown> {
    const { displayOf, replyOf, liveReplies, timers, pace } = this.#deps;
    const display = displayOf(platform, place);
    const turnId = run.turn.id;
    const reply = await replyOf(turnId);
    // A turn that was never interrupted has nothing to go on with.
    const kept = run.turn.cuts === 0 ? null : await liveReplies.find(turnId);
    const live = display.streaming
      ? new LiveReply({
          ...{ platform, place, timers, pace, reply, kept },
          key: `${turnId}:live`,
          replyTo: quotedBy(place, reply),
          keep: (handle) => liveReplies.keep(turnId, platform.name, place, handle),
        })
      : null;
    return {
      ...{ platform, place, display, reply, live, kept },
      ...{ text: '', tools: [], outputs: [], replaced: false, stopTyping: () => undefined },
      signs: Promise.resolve(),
    };
  }

  #show(shown: Shown, event: TurnEvent): void {
    const { display, live } = shown;
    if (live === null) return;
    if (event.type === 'text') shown.text += event.text;
    else if (event.type === 'tool' && display.toolProgress !== 'off') this.#showTool(shown, event);
    else if (event.type === 'step' && event.tools.length > 0) {
      // What is said before tools is not the answer: the next words begin anew.
      shown.text = '';
      return;
    } else return;
    live.show([...shown.tools.slice(-MOST_TOOLS), shown.text].filter((part) => part !== '').join('\n'));
  }

  #showTool({ tools, outputs, display }: Shown, event: Extract<TurnEvent, { type: 'tool' }>): void {
    const isAll = display.toolProgress === 'all';
    if (event.state === 'start') tools.push(toolLine(event.name, isAll ? event.args : undefined));
    else if (isAll && event.output) outputs.push({ title: sanitize(event.name), text: event.output });
  }

  /** The reply is complete: what it is beside its text, and what it takes the place of. */
  async shapeOf(run: TurnRun): Promise<ReplyShape> {
    const shown = await this.#shown.get(run.turn.id);
    const place = run.session.origin as Place | null;
    const reply = shown == null ? await this.#deps.replyOf(run.turn.id) : shown.reply;
    const live = (await shown?.live?.close()) ?? shown?.kept ?? null;
    if (shown != null) shown.replaced = true;
    const replyTo = place === null ? null : quotedBy(place, reply);
    const outputs = shown?.outputs.slice(-MOST_TOOLS) ?? [];
    return {
      ...live,
      ...(reply === null ? {} : { reply }),
      ...(replyTo === null ? {} : { replyTo }),
      ...(outputs.length === 0 ? {} : { details: outputs }),
    };
  }

  async #over(run: TurnRun, shown: Shown | null): Promise<void> {
    const { outcome } = run;
    this.#shown.delete(run.turn.id);
    if (shown === null) return;
    shown.stopTyping();
    this.#react(shown, outcome === 'done' ? 'done' : 'failed');
    const handle = (await shown.live?.close()) ?? shown.kept;
    // One that was cut goes on in the next process, and one with a reply is finished by it.
    if (handle === null || outcome === null || shown.replaced) return;
    const { platform, place, text } = shown;
    await this.#deps.liveReplies
      .abandon(run.turn.id, platform, place, handle, [text, run.finished?.response].find(isSaid) ?? '')
      .catch((error: unknown) => this.#deps.log.warn('a growing reply was not ended', { turn: run.turn.id, error }));
  }

  #keepTyping(shown: Shown, { typingEveryMs = TYPING_MS }: Abilities): void {
    const again = (): void => {
      const { platform, place, reply } = shown;
      void this.#try(shown, (signal) => platform.showTyping?.(place, signal, reply ?? undefined));
      shown.stopTyping = this.#deps.timers.after(typingEveryMs, again);
    };
    again();
  }

  #react(shown: Shown, sign: ReactionSign): void {
    const { platform, place, reply, display } = shown;
    if (!display.reactions || reply === null) return;
    shown.signs = shown.signs.then(() =>
      this.#try(shown, (signal) => platform.react?.(place, reply.messageId, sign, signal)),
    );
  }

  async #try({ platform }: Shown, call: (signal: AbortSignal) => Promise<void> | undefined): Promise<void> {
    try {
      await call(AbortSignal.timeout(CALL_MS));
    } catch (error) {
      this.#deps.log.debug('a sign was not shown', { platform: platform.name, error });
    }
  }
}

/** Where several people talk at once, an answer shows which message it is for. */
function quotedBy({ type }: Place, reply: ReplyContext | null): string | null {
  return reply !== null && (type === 'group' || type === 'channel') ? reply.messageId : null;
}

function isSaid(text: string | null | undefined): text is string {
  return text != null && text.trim() !== '';
}

const MOST_TOOLS = 5;
const MAX_ARGS = 80;

function toolLine(name: string, args: unknown): string {
  const shown = args === undefined ? '' : ` ${sanitize(JSON.stringify(args) ?? '', MAX_ARGS)}`;
  return `⚙ ${sanitize(name)}${shown}`;
}

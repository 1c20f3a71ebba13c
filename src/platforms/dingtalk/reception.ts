import { ChatQueues } from '../chat-queues.ts';
import { pause } from '../deadline.ts';
import type { Inbox, Press } from '../platform.ts';
import type { DingtalkApi } from './api.ts';
import { type Cards, settledButtons } from './cards.ts';
import { acknowledge, type Frame, postpone } from './frames.ts';
import { type Parsed, parseFrame } from './parse.ts';

const RETRY_BASE_MS = 1000;
const RETRY_CAP_MS = 30_000;
/** Whoever pressed a button sees a clock until it is answered, and not for long. */
const PRESS_MS = 2500;
const GRACE_MS = 2000;
const SHOW_MS = 10_000;
/** So much is taken from the network before the inbox has to take some of it. */
const MOST_UNDER_WAY = 500;

/** What answers a frame, over the connection that brought it. */
export type Answer = (text: string) => void;

/** A frame, as often as it was brought. */
interface Brought {
  readonly frame: Frame;
  readonly answer: Answer;
}

/**
 * Brings what people say to the inbox, one at a time per chat and in order, and acknowledges it then. What the inbox cannot
 * take now is tried again here, and what the same chat said later waits for it; DingTalk brings it again meanwhile.
 */
export class Reception {
  readonly #api: DingtalkApi;
  readonly #inbox: Inbox;
  readonly #cards: Cards | null;
  readonly #queues = new ChatQueues();
  readonly #underWay = new Map<string, Brought[]>();
  readonly #presses = new Set<Promise<void>>();
  readonly #stopped = new AbortController();
  readonly #abandoned = new AbortController();
  #waiting: (() => void)[] = [];

  constructor(api: DingtalkApi, inbox: Inbox, cards: Cards | null) {
    this.#api = api;
    this.#inbox = inbox;
    this.#cards = cards;
  }

  get isFull(): boolean {
    return this.#underWay.size >= MOST_UNDER_WAY;
  }

  /** Calls back once when there is room again. */
  onRoom(callback: () => void): void {
    this.#waiting.push(callback);
  }

  /** Takes a message, a press or an event; it is answered when the inbox has it. After `settle` nothing is taken. */
  take(frame: Frame, answer: Answer): void {
    if (this.#stopped.signal.aborted) return;
    const parsed = parseFrame(frame, this.#api.app.robotCode);
    // Nobody wants it: it should not come again.
    if (parsed === null) {
      answer(acknowledge(frame));
      return;
    }
    const id = idOf(parsed);
    const before = this.#underWay.get(id);
    if (before !== undefined) {
      before.push({ frame, answer });
      return;
    }
    const brought = [{ frame, answer }];
    this.#underWay.set(id, brought);
    const taking =
      parsed.kind === 'press'
        ? this.#takePress(parsed.press, brought)
        : this.#queues.run(laneOf(parsed), () => this.#bring(parsed, brought));
    const done: Promise<void> = taking.catch(this.#warn).finally(() => {
      this.#underWay.delete(id);
      this.#presses.delete(done);
      if (!this.isFull) for (const callback of this.#waiting.splice(0)) callback();
    });
    if (parsed.kind === 'press') this.#presses.add(done);
  }

  /** Lets the inbox finish what it has; what waits behind that stays with DingTalk. */
  async settle(): Promise<void> {
    this.#stopped.abort();
    const cancel = this.#api.app.runtime.after(GRACE_MS, () => this.#abandoned.abort());
    await Promise.all([this.#queues.settle(), ...this.#presses]);
    cancel();
  }

  async #bring(parsed: Exclude<Parsed, { kind: 'press' }>, brought: readonly Brought[]): Promise<void> {
    const { signal } = this.#stopped;
    const { runtime } = this.#api.app;
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        await this.#hand(parsed);
        for (const { frame, answer } of brought) answer(acknowledge(frame));
        return;
      } catch (thrown) {
        this.#warn(thrown);
        // DingTalk can be asked to bring an event later; nothing waits for it.
        if (parsed.kind === 'events') for (const { frame, answer } of brought) answer(postpone(frame));
        if (parsed.kind === 'events') return;
        const full = Math.min(RETRY_BASE_MS * 2 ** failures, RETRY_CAP_MS);
        await pause(runtime, full * (0.5 + runtime.random() / 2), signal);
      }
    }
  }

  async #hand(parsed: Exclude<Parsed, { kind: 'press' }>): Promise<void> {
    if (parsed.kind === 'message') return await this.#inbox.receive(parsed.message);
    for (const event of parsed.events) await this.#inbox.happened(event);
  }

  /** Answered in time: what the inbox says later is shown on the card when it does. */
  async #takePress(press: Press, brought: readonly Brought[]): Promise<void> {
    const { runtime } = this.#api.app;
    const pressed = this.#inbox.press(press);
    const inTime = new AbortController();
    const late = pause(runtime, PRESS_MS, inTime.signal).then(() => LATE);
    const shown = await Promise.race([pressed, late]).finally(() => inTime.abort());
    const response = typeof shown === 'string' ? settledButtons(press.place, shown) : {};
    for (const { frame, answer } of brought) answer(acknowledge(frame, response));
    if (shown !== LATE) return;
    const said = await pressed;
    if (said !== null) await this.#showLate(press, said);
  }

  async #showLate({ messageId, place, from }: Press, shown: string): Promise<void> {
    const signal = AbortSignal.any([this.#abandoned.signal, AbortSignal.timeout(SHOW_MS)]);
    await this.#cards?.settle(messageId, place, from.id ?? '', shown, signal);
  }

  readonly #warn = (thrown: unknown): void => {
    const error = this.#api.redact(String(thrown));
    this.#api.app.runtime.warn('what came from DingTalk was not taken yet', { error });
  };
}

const LATE = Symbol('late');

/** The same again while it is under way is the same. */
function idOf(parsed: Parsed): string {
  if (parsed.kind === 'message') return parsed.message.id;
  return parsed.kind === 'press' ? parsed.press.id : parsed.id;
}

function laneOf(parsed: Exclude<Parsed, { kind: 'press' }>): string {
  return parsed.kind === 'message' ? parsed.message.place.chat : parsed.events[0].place.chat;
}

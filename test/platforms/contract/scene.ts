import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type {
  Abilities,
  Inbox,
  Incoming,
  Place,
  Platform,
  PlatformEvent,
  PlatformRuntime,
  Press,
  Submission,
  SubmissionReceipt,
  WebhookRequest,
} from '../../../src/platforms/platform.ts';
import { patience } from '../../support/patience.ts';

/** Where something is said: the driver knows which chat that is. */
export type Where = 'dm' | 'group' | 'thread';

export interface UserMessage {
  readonly text: string;
  readonly where?: Where;
  readonly file?: { readonly name: string; readonly mime: string; readonly bytes: Uint8Array };
  /** The message it answers. */
  readonly repliesTo?: string;
}

/** A message of the platform as people see it. */
export interface Shown {
  readonly messageId: string;
  /** As it is read, without markup. */
  readonly text: string;
  readonly thread: string | null;
  readonly repliesTo: string | null;
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  /** The labels of its buttons. */
  readonly buttons: readonly string[];
}

/**
 * Plays the server of a platform and the people there. What a platform has no such thing of is left out, and `plays` of
 * the contract says so.
 */
export interface Driver extends AsyncDisposable {
  readonly platform: Platform;
  /** What the platform told that no caller hears of. */
  readonly warnings: readonly string[];
  place(where: Where): Place;
  /** Somebody says something; returns the id of the message. */
  say(said: UserMessage): Promise<string>;
  /** What we have sent and people see now, oldest first. */
  shown(): readonly Shown[];
  /** How a text looks there that could turn a line around; as it is unless said. */
  visible?(text: string): string;
  /** How many messages the server keeps because nobody acknowledged them. */
  unacknowledged?(): number;
  /** Somebody changes what he said. */
  change?(messageId: string, text: string): Promise<void>;
  /** The server tells us what we said ourselves. */
  echo?(text: string): Promise<void>;
  /** Brings the last message again, as after an acknowledgement that was lost. */
  bringAgain?(): Promise<void>;
  /** Somebody presses a button; returns what he is shown. */
  press?(messageId: string, data: string): Promise<string | null>;
  typed?(): number;
  reactions?(messageId: string): readonly string[];
  /** The next call is refused: come again in `ms`. */
  limitRate?(ms: number): void;
  /** The next call fails in a way that passes. */
  stumble?(): void;
  /** Cuts every connection. */
  cut?(): void;
  /** The same account, as the next process has it. */
  restart?(): Promise<Platform>;
}

/** What there is on the platform besides its abilities; each goes with the driver's means to play it. */
export interface Plays {
  /** Messages are kept until they are acknowledged: `unacknowledged`, `restart`. */
  readonly acknowledgement: boolean;
  readonly changes: boolean;
  readonly echoes: boolean;
  /** The same message may come twice: `bringAgain`. */
  readonly repetition: boolean;
  readonly groups: boolean;
  /** The way to the platform can fail: `limitRate`, `stumble`. */
  readonly refusals: boolean;
  /** There is a connection: `cut`. */
  readonly cuts: boolean;
}

export interface PlatformUnderTest {
  readonly abilities: Abilities;
  readonly plays: Plays;
  makeDriver(): Promise<Driver>;
}

export const never = new AbortController().signal;

/** An inbox that remembers, and can be told to be slow or to refuse. */
export class TestInbox implements Inbox {
  readonly received: Incoming[] = [];
  /** Every try, also those refused. */
  readonly tried: Incoming[] = [];
  readonly presses: Press[] = [];
  readonly moves: string[] = [];
  readonly events: PlatformEvent[] = [];
  readonly submissions: Submission[] = [];
  changes = 0;
  answer: string | null = null;
  #refusals = 0;
  #gate: Promise<void> = Promise.resolve();

  get texts(): string[] {
    return this.received.map(({ text }) => text);
  }

  refuseNext(times = 1): void {
    this.#refusals = times;
  }

  /** Takes nothing until the returned function is called. */
  hold(): () => void {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#gate = promise;
    return resolve;
  }

  async receive(message: Incoming): Promise<void> {
    this.tried.push(message);
    await this.#gate;
    if (this.#refusals > 0) {
      this.#refusals -= 1;
      throw new RangeError('the inbox cannot take it now');
    }
    this.received.push(message);
  }

  async press(press: Press): Promise<string | null> {
    await this.#gate;
    this.presses.push(press);
    return this.answer;
  }

  async moved(from: string, to: string): Promise<void> {
    await this.#gate;
    this.moves.push(`${from} -> ${to}`);
  }

  async happened(event: PlatformEvent): Promise<void> {
    await this.#gate;
    this.events.push(event);
  }

  async submit(submission: Submission): Promise<SubmissionReceipt> {
    await this.#gate;
    if (this.#refusals > 0) {
      this.#refusals -= 1;
      throw new RangeError('the inbox cannot take it now');
    }
    const { route, id, agent } = submission;
    const duplicate = this.submissions.some((other) => other.route === route && other.id === id);
    if (!duplicate) this.submissions.push(submission);
    return { sessionId: `ses_${route}_${id}`, turnId: agent ? `trn_${route}_${id}` : null, duplicate };
  }

  changed(): void {
    this.changes += 1;
  }
}

/** What a platform keeps: processes that follow each other have the same. */
export type KeptState = Map<string, string>;

/** A runtime whose time runs `speed` times as fast. */
export function testRuntime(
  name: string,
  speed = 100,
  state: KeptState = new Map(),
): PlatformRuntime & { readonly warnings: string[]; readonly state: KeptState } {
  const warnings: string[] = [];
  const started = Date.now();
  return {
    warnings,
    state,
    name,
    keep: async (key, value) => void (value === null ? state.delete(key) : state.set(key, value)),
    recall: async (key) => state.get(key) ?? null,
    now: () => started + (Date.now() - started) * speed,
    after: (ms, callback) => {
      const timer = setTimeout(callback, ms / speed);
      return () => clearTimeout(timer);
    },
    random: Math.random,
    warn: (message, fields) => warnings.push(`${message} ${JSON.stringify(fields ?? {})}`),
  };
}

/** A request as the owner of the port hands it on. */
export function webhookRequest(request: IncomingMessage, body: Uint8Array): WebhookRequest {
  const url = new URL(request.url ?? '/', 'http://gateway.test');
  const headers = Object.entries(request.headers).flatMap(([name, value]) =>
    typeof value === 'string' ? [[name, value] as const] : [],
  );
  const [, , path = ''] = url.pathname.split('/').slice(1);
  return { method: request.method ?? 'GET', path, query: url.searchParams, headers: Object.fromEntries(headers), body };
}

/** Resolves when the condition holds. */
export async function until(condition: () => boolean, what: string, ms = 10_000): Promise<void> {
  const deadline = performance.now() + patience(ms);
  while (!condition()) {
    if (performance.now() > deadline) throw new RangeError(`not seen: ${what}`);
    await sleep(5);
  }
}

/** A driver whose platform has been started. */
export async function openStarted(under: PlatformUnderTest) {
  const driver = await under.makeDriver();
  const inbox = new TestInbox();
  await driver.platform.start(inbox);
  await until(() => driver.platform.state.phase === 'connected', 'connected');
  return { driver, inbox, platform: driver.platform, [Symbol.asyncDispose]: () => close(driver) };
}

async function close(driver: Driver): Promise<void> {
  await driver.platform.stop();
  await driver[Symbol.asyncDispose]();
}

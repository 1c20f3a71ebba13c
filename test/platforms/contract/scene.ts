import type { IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type {
  Abilities,
  Inbox,
  Incoming,
  Outgoing,
  Place,
  Platform,
  PlatformEvent,
  PlatformRuntime,
  Press,
  ReplyContext,
  SentMessage,
  Submission,
  SubmissionReceipt,
  WebhookRequest,
} from '../../../src/platforms/platform.ts';
import { patience } from '../../support/patience.ts';

/** Where something is said: the world knows which chat that is. */
export type Where = 'dm' | 'group' | 'thread';

export interface UserMessage {
  readonly text: string;
  readonly where?: Where;
  /** Who says it; the first one unless said. Everybody has a direct chat of their own. */
  readonly person?: number;
  readonly file?: { readonly name: string; readonly mime: string; readonly bytes: Uint8Array };
  /** The message it answers. */
  readonly repliesTo?: string;
}

/** A message of the platform as people see it. */
export interface Shown {
  readonly messageId: string;
  /** As places name it; left out where there is one chat only. */
  readonly chat?: string;
  /** As it is read, without markup. */
  readonly text: string;
  readonly thread: string | null;
  readonly repliesTo: string | null;
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  /** The labels of its buttons. */
  readonly buttons: readonly string[];
  /** Of a message that the platform itself shows growing. */
  readonly stream?: 'open' | 'finished';
}

/** How a request can be none of the platform's. */
export type Forgery = 'unsigned' | 'forged' | 'stale';

/** Something that happens beside messages. */
export type Happening = 'added' | 'removed' | 'deleted' | 'reaction' | 'joined';

/**
 * The server of a platform and the people there, on loopback. What a platform has no such thing of is left out, and
 * `plays` of the contract says so.
 */
export interface World extends AsyncDisposable {
  /** What stands under `platforms.<name>`, so that the platform finds this server. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** What must be in no warning and no problem. */
  readonly secrets: readonly string[];
  /** What time it is for the platform, for worlds that sign with it; that of the machine until then. */
  setClock?(now: () => number): void;
  place(where: Where, person?: number): Place;
  /** Somebody says something; returns the id of the message. */
  say(said: UserMessage): Promise<string>;
  /** What we have sent and people see now, oldest first. */
  shown(): readonly Shown[];
  /** How a text looks there that could turn a line around; as it is unless said. */
  visible?(text: string): string;
  /** How many messages the server keeps because nobody acknowledged them. */
  unacknowledged?(): number;
  /** Somebody changes what they said. */
  change?(messageId: string, text: string): Promise<void>;
  /** The server tells us what we said ourselves. */
  echo?(text: string): Promise<void>;
  /** Brings the last message again, as after an acknowledgement that was lost. */
  bringAgain?(): Promise<void>;
  /** Somebody presses a button; returns what they are shown. */
  press?(messageId: string, data: string, person?: number): Promise<string | null>;
  typed?(): number;
  reactions?(messageId: string): readonly string[];
  /** The next call is refused: come again in `ms`. */
  limitRate?(ms: number): void;
  /** The next call fails in a way that passes. */
  stumble?(): void;
  /** Cuts every connection. */
  cut?(): void;
  /** The server has forgotten the connection that could be resumed; what was said meanwhile it gives only when asked. */
  invalidate?(): void;
  /** The server does not know our credential any more. */
  revoke?(): void;
  /** Where what the server brings is taken, such as `http://host/platforms/telegram`; null while nobody is there. */
  bringTo?(url: string | null): void;
  /** Calls back when the server has taken a message of ours, before it answers. */
  onTaken(callback: (() => void) | null): void;
  /** The server takes the next message and cuts the connection instead of answering. */
  loseAnswer?(): void;
  /** Something happens beside messages, in the group; `messageId` is the message it is about. */
  happen?(what: Happening, messageId: string): Promise<void>;
  /** Brings a message that is none of the platform's; returns the status it is answered with. */
  forge?(how: Forgery): Promise<number>;
  /** From now on people may not be answered until they write again. */
  closeWindow?(): void;
  /** Brings a payload as it is, over the same way as all others. */
  push(payload: Record<string, unknown>): void | Promise<void>;
}

/** A world, and a platform in it. */
export interface Driver extends Omit<World, 'settings' | 'secrets' | 'push' | 'onTaken'> {
  readonly platform: Platform;
  /** What the platform told that no caller hears of. */
  readonly warnings: readonly string[];
  readonly secrets?: readonly string[];
  /** The same account, as the next process has it. */
  restart?(): Promise<Platform>;
}

/** What there is on the platform besides its abilities; each goes with the world's means to play it. */
export interface Plays {
  /** Messages are kept until they are acknowledged: `unacknowledged`, `restart`. */
  readonly acknowledgement: boolean;
  readonly changes: boolean;
  readonly echoes: boolean;
  /** Its library shows by itself, at each message, that an answer is being made. */
  readonly typesByItself?: boolean;
  /** The same message may come twice: `bringAgain`. */
  readonly repetition: boolean;
  readonly groups: boolean;
  /** The way to the platform can fail: `limitRate`, `stumble`. */
  readonly refusals: boolean;
  /** There is a connection: `cut`. */
  readonly cuts: boolean;
  /** What was said behind a gap has to be asked for: `invalidate`. */
  readonly backfill?: boolean;
  /** A credential can be taken back: `revoke`. */
  readonly credential?: boolean;
  /** The answer to a message can get lost: `loseAnswer`. */
  readonly lostAnswers?: boolean;
  /** What was sent can be looked for by its key: `findSent`. */
  readonly searched?: boolean;
  /** What happens beside messages: `happen`. */
  readonly happenings?: readonly Happening[];
  /** The server brings messages, and others may try: `forge`. */
  readonly forgeries?: readonly Forgery[];
  /** Answers can come too late: `closeWindow`. */
  readonly window?: boolean;
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
  const scene = { driver, inbox, platform: driver.platform };
  /** Sends as the gateway does: where only answers are taken, somebody has written before. */
  const send = async (place: Place, message: Outgoing, signal: AbortSignal = never): Promise<SentMessage> => {
    const { needsReply } = driver.platform.abilitiesAt?.(place) ?? driver.platform.abilities;
    const isAnswer = needsReply === undefined || message.reply !== undefined;
    const answered = isAnswer ? {} : await answerable(scene, whereOf(place));
    return driver.platform.send(place, { ...answered, ...message }, signal);
  };
  return { ...scene, send, [Symbol.asyncDispose]: () => close(driver) };
}

function whereOf({ type, thread }: Place): Where {
  if (type === 'thread' || thread !== undefined) return 'thread';
  return type === 'dm' ? 'dm' : 'group';
}

/** Somebody writes, so that what is sent answers them; the inbox forgets it. */
export async function answerable(
  { driver, inbox }: { driver: Driver; inbox: TestInbox },
  where: Where = 'dm',
): Promise<{ reply: ReplyContext }> {
  const messageId = await driver.say({ text: 'may be answered', where });
  const arrived = (): Incoming | undefined => inbox.received.find((each) => each.messageId === messageId);
  await until(() => arrived() !== undefined, 'what is answered');
  const { reply } = arrived()!;
  inbox.received.splice(inbox.received.indexOf(arrived()!), 1);
  inbox.tried.splice(0);
  return { reply: { messageId, data: reply?.data ?? {}, until: reply?.until ?? null } };
}

async function close(driver: Driver): Promise<void> {
  await driver.platform.stop();
  await driver[Symbol.asyncDispose]();
}

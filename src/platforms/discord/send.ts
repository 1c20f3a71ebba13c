import { pause } from '../deadline.ts';
import { FloodGate } from '../flood-gate.ts';
import { type Outgoing, type Place, type ReactionSign, SendFailure, type SentMessage } from '../platform.ts';
import type { ApiCall, DiscordApi } from './api.ts';
import { codeOf, sendFailureOf } from './failures.ts';
import { findPost, openPost } from './forum.ts';
import { type Interactions, sentMessage } from './interactions.ts';
import { attachmentsOf, bodyOf, fileNameOf, filesOf, nonceOf, referenceOf, uploadsOf } from './message-body.ts';
import { Openings } from './openings.ts';
import type { Self } from './parse.ts';
import { snowflakeOf } from './snowflake.ts';

const UPLOAD_MS = 300_000;
const MORE_TRIES = 3;
const SIGNS = { seen: '👀', done: '✅', failed: '❌' } as const satisfies Record<ReactionSign, string>;
const MOST_NOTED = 1000;
/** Signs may be put about four times in a second. */
const PATIENT_MS = 5000;
const [UNKNOWN_MESSAGE, UNKNOWN_EMOJI] = [10008, 10014];

type Kind = 'send' | 'edit' | 'remove' | 'type';

/** Calls that concern one channel. */
export class Sending {
  readonly #api: DiscordApi;
  readonly #interactions: Interactions;
  readonly #self: () => Self | null;
  readonly #gate: FloodGate;
  /** The sign that stands at a message. */
  readonly #signs = new Map<string, ReactionSign | null>();
  readonly #openings: Openings;

  constructor(api: DiscordApi, interactions: Interactions, self: () => Self | null) {
    this.#api = api;
    this.#interactions = interactions;
    this.#self = self;
    this.#gate = new FloodGate(api.runtime);
    this.#openings = new Openings(api.runtime);
  }

  /** Sends a message, which may become several; returns the last. */
  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    const [files = [], ...more] = uploadsOf(message.files ?? []);
    const first = await this.#sendFirst(place, message, files, signal);
    let last = first;
    // What is there cannot be taken back, so a failure must not make the caller send all of it again.
    for (const [n, upload] of more.entries()) {
      const key = message.key === undefined ? {} : { key: `${message.key}:files${n + 2}` };
      const rest = { text: '', ...key, files: upload };
      last = (await this.#retry(first.place ?? place, rest, signal)) ?? last;
    }
    return first.place === undefined ? last : { ...last, place: first.place };
  }

  async #sendFirst(
    place: Place,
    message: Outgoing,
    files: NonNullable<Outgoing['files']>,
    signal: AbortSignal,
  ): Promise<SentMessage> {
    const call: ApiCall = {
      body: { ...bodyOf(message), ...(files.length === 0 ? {} : { attachments: attachmentsOf(files) }) },
      files: filesOf(files),
      ...(files.length === 0 ? {} : { ms: UPLOAD_MS }),
    };
    if (place.opens !== undefined) {
      return await this.#guarded('send', place, () => this.#open(place, message.key ?? null, call, signal));
    }
    return await this.#guarded('send', place, async () => {
      const application = this.#self()?.application ?? null;
      const answered = await this.#interactions.answer(application, message, call, signal);
      if (answered !== null) return answered;
      const body = { ...(call.body as object), ...referenceOf(message), ...nonceOf(message.key) };
      const made = await this.#api.raw('POST', `/channels/${channelId(place)}/messages`, { ...call, body }, signal);
      return sentMessage(made);
    });
  }

  /** Discord knows no key for posts: before one is opened again, the one that may be there is looked for. */
  async #open(place: Place, key: string | null, call: ApiCall, signal: AbortSignal): Promise<SentMessage> {
    const since = key === null ? null : await this.#openings.begin(key);
    const found = since === null ? null : await findPost(this.#api, place, since, this.#self()?.id ?? null, signal);
    if (found !== null) return found;
    return await openPost(this.#api, place, call, signal);
  }

  /** Tries some times; says what is missing if nothing helps. */
  async #retry(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage | null> {
    const { runtime, redact } = this.#api;
    const files = message.files ?? [];
    for (let tries = 1; ; tries += 1) {
      try {
        return await this.#sendFirst(place, message, files, signal);
      } catch (thrown) {
        const { retryAfterMs, message: problem } = sendFailureOf(thrown, redact);
        if (retryAfterMs === null || tries > MORE_TRIES || signal.aborted) {
          runtime.warn('a file was not sent', { error: problem });
          break;
        }
        await pause(runtime, retryAfterMs, signal);
      }
    }
    const key = message.key === undefined ? {} : { key: `${message.key}:missing` };
    const notice = { text: `(${files.map(fileNameOf).join(', ')} could not be sent)`, ...key };
    return await this.#sendFirst(place, notice, [], signal).catch(() => null);
  }

  async edit(place: Place, messageId: string, message: Outgoing, signal: AbortSignal): Promise<void> {
    const route = this.#route(place, messageId);
    await this.#guarded('edit', place, () => this.#api.raw('PATCH', route, { body: bodyOf(message) }, signal));
  }

  async remove(place: Place, messageId: string, signal: AbortSignal): Promise<void> {
    const route = this.#route(place, messageId);
    await this.#guarded('remove', place, () => unless(this.#api.raw('DELETE', route, {}, signal), UNKNOWN_MESSAGE));
  }

  async showTyping(place: Place, signal: AbortSignal): Promise<void> {
    await this.#guarded('type', place, () => this.#api.raw('POST', `/channels/${channelId(place)}/typing`, {}, signal));
  }

  async react(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    // A command is no message that a sign could be put at.
    if (snowflakeOf(messageId) === null) return;
    const before = this.#signs.get(messageId);
    const route = (each: ReactionSign) =>
      `${this.#route(place, messageId)}/reactions/${encodeURIComponent(SIGNS[each])}/@me` as const;
    if (sign !== null) await this.#patiently(() => this.#api.call('PUT', route(sign), {}, signal), signal);
    for (const other of othersBeside(sign, before)) {
      await this.#patiently(() => unless(this.#api.raw('DELETE', route(other), {}, signal), UNKNOWN_EMOJI), signal);
    }
    noteIn(this.#signs, messageId, sign);
  }

  /** Waits for the turn of a sign: nobody else tries it again. */
  async #patiently(call: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
    for (;;) {
      try {
        await call();
        return;
      } catch (thrown) {
        const failure = sendFailureOf(thrown, this.#api.redact);
        const wait = failure.retryAfterMs;
        if (failure.kind !== 'rate_limited' || wait === null || wait > PATIENT_MS || signal.aborted) throw failure;
        await pause(this.#api.runtime, wait, signal);
      }
    }
  }

  /** Sending, changing and typing have limits of their own in each channel. */
  async #guarded<T>(kind: Kind, place: Place, call: () => Promise<T>): Promise<T> {
    const bucket = `${kind}:${channelId(place)}`;
    this.#gate.check(bucket);
    try {
      return await call();
    } catch (thrown) {
      throw this.#gate.note(bucket, sendFailureOf(thrown, this.#api.redact));
    }
  }

  #route(place: Place, messageId: string): `/${string}` {
    return `/channels/${channelId(place)}/messages/${idOf(messageId)}`;
  }
}

function noteIn<T>(map: Map<string, T>, key: string, value: T): void {
  const [oldest] = map.keys();
  if (map.size >= MOST_NOTED && oldest !== undefined) map.delete(oldest);
  map.set(key, value);
}

/** The signs to take away. After a restart nobody knows which stands there; the first one is put where none is. */
function othersBeside(sign: ReactionSign | null, before: ReactionSign | null | undefined): ReactionSign[] {
  if (before !== undefined) return before === null || before === sign ? [] : [before];
  if (sign === 'seen') return [];
  return (Object.keys(SIGNS) as ReactionSign[]).filter((other) => other !== sign);
}

async function unless(call: Promise<unknown>, code: number): Promise<void> {
  try {
    await call;
  } catch (thrown) {
    if (codeOf(thrown) !== code) throw thrown;
  }
}

/** Where messages go: a thread is a channel, too. */
function channelId({ chat, thread }: Place): string {
  return idOf(thread ?? chat);
}

function idOf(text: string): string {
  const id = snowflakeOf(text);
  if (id !== null) return id;
  throw new SendFailure(`${text.slice(0, 32)} is no id of Discord`, null, 'unknown');
}

import { fieldsOf, integerOf, textOf } from '../fields.ts';
import { type Outgoing, type Place, type PlatformRuntime, SendFailure, type SentMessage } from '../platform.ts';
import type { ApiCall, DiscordApi } from './api.ts';
import { sendFailureOf, statusOf } from './failures.ts';
import type { Interaction } from './parse.ts';
import { snowflakeOf } from './snowflake.ts';

const ACKNOWLEDGE_MS = 3000;
const ANSWER_MS = 10_000;
const GRACE_MS = 1000;
/** Kinds of callback: an answer comes later, in a message or by changing nothing. */
const DEFERRED = { command: 5, press: 6 } as const;
const ONLY_FOR_THEM = 1 << 6;
const LOADING = 1 << 7;
const MOST_SHOWN = 2000;
/** A little before Discord itself says that the application did not answer. */
const GIVE_UP_MS = 14 * 60_000;
const MOST_CLAIMS = 1000;

/** Buttons and commands: acknowledged at once, answered when there is an answer. */
export class Interactions {
  readonly #api: DiscordApi;
  readonly #runtime: PlatformRuntime;
  readonly #underWay = new Set<Promise<unknown>>();
  /**
   * Which message has taken the place of the deferred answer, by the token of the command; null while none has. Those of a
   * process before this one are not here.
   */
  readonly #claims = new Map<string, string | null>();
  readonly #givingUp = new Set<() => void>();
  #stopped = new AbortController();

  constructor(api: DiscordApi) {
    this.#api = api;
    this.#runtime = api.runtime;
  }

  start(): void {
    this.#stopped = new AbortController();
  }

  /** Resolves when Discord has been told, or cannot be. */
  async acknowledge({ id, token }: Interaction, kind: 'command' | 'press', application: string): Promise<void> {
    const call = { body: { type: DEFERRED[kind] }, auth: false, ms: ACKNOWLEDGE_MS };
    const isAcknowledged = await this.#try('a command or button was not acknowledged', () =>
      this.#api.raw('POST', `/interactions/${id}/${token}/callback`, call, this.#stopped.signal),
    );
    if (kind !== 'command' || !isAcknowledged) return;
    this.#claim(token, null);
    this.#giveUpLater(application, token);
  }

  /** Shows something to who pressed a button. Nobody waits for it. */
  show({ token }: Interaction, acknowledged: Promise<void>, shown: string | null, application: string): void {
    if (shown === null) return;
    const body = {
      ...{ content: shown.slice(0, MOST_SHOWN).toWellFormed(), flags: ONLY_FOR_THEM },
      allowed_mentions: { parse: [] },
    };
    const call = { body, auth: false, ms: ANSWER_MS };
    this.#track(
      acknowledged.then(() =>
        this.#try('a pressed button was not answered', () =>
          this.#api.raw('POST', `/webhooks/${application}/${token}`, call, this.#stopped.signal),
        ),
      ),
    );
  }

  /**
   * Answers a command in the message that was deferred. Null where that is not possible any more, or where another message
   * has been the answer: then it is a message like any other. Throws `SendFailure`.
   */
  async answer(
    application: string | null,
    message: Outgoing,
    call: ApiCall,
    signal: AbortSignal,
  ): Promise<SentMessage | null> {
    const { reply, key = null } = message;
    const token = textOf(reply?.data.token, 1024);
    if (reply === undefined || application === null || !token || !/^[\w.~-]+$/.test(token)) return null;
    if (reply.until !== null && reply.until <= this.#runtime.now()) return null;
    const claimed = this.#claims.get(token);
    if (typeof claimed === 'string' && (key === null || claimed !== key)) return null;
    const route = `/webhooks/${application}/${token}/messages/@original` as const;
    try {
      if (claimed === undefined) {
        // A process before this one has deferred it, and may have answered: with this, or with something else.
        const original = fieldsOf(await this.#api.raw('GET', route, { auth: false }, signal));
        const id = snowflakeOf(original?.id);
        if (((integerOf(original?.flags) ?? 0) & LOADING) === 0) {
          const isThis = id !== null && wordsIn(original) === wordsIn(call.body);
          this.#claim(token, isThis && key !== null ? key : '');
          return isThis ? { messageId: id } : null;
        }
      }
      this.#claim(token, key ?? '');
      const changed = fieldsOf(await this.#api.raw('PATCH', route, { ...call, auth: false }, signal));
      return sentMessage(changed);
    } catch (thrown) {
      if (statusOf(thrown) === 404 || statusOf(thrown) === 401) return null;
      throw sendFailureOf(thrown, this.#api.redact);
    }
  }

  /** Lets what is on its way arrive. */
  async settle(): Promise<void> {
    for (const cancel of this.#givingUp) cancel();
    this.#givingUp.clear();
    const enough = this.#runtime.after(GRACE_MS, () => this.#stopped.abort());
    await Promise.all(this.#underWay);
    enough();
    this.#stopped.abort();
  }

  #claim(token: string, key: string | null): void {
    const [oldest] = this.#claims.keys();
    if (this.#claims.size >= MOST_CLAIMS && oldest !== undefined) this.#claims.delete(oldest);
    this.#claims.set(token, key);
  }

  /** Nobody answers a command: the place that was kept for the answer goes. */
  withdraw({ token }: Pick<Interaction, 'token'>, application: string): void {
    if (this.#claims.get(token) !== null) return;
    this.#claim(token, '');
    const route = `/webhooks/${application}/${token}/messages/@original` as const;
    this.#track(
      this.#try('a command that nobody answered still waits', () =>
        this.#api.raw('DELETE', route, { auth: false, ms: ANSWER_MS }, this.#stopped.signal),
      ),
    );
  }

  /** An answer that comes later than that is a message of its own. */
  #giveUpLater(application: string, token: string): void {
    const cancel = this.#runtime.after(GIVE_UP_MS, () => {
      this.#givingUp.delete(cancel);
      this.withdraw({ token }, application);
    });
    this.#givingUp.add(cancel);
  }

  #track(work: Promise<unknown>): void {
    const tracked = work.finally(() => this.#underWay.delete(tracked));
    this.#underWay.add(tracked);
  }

  async #try(trouble: string, call: () => Promise<unknown>): Promise<boolean> {
    try {
      await call();
      return true;
    } catch (thrown) {
      this.#runtime.warn(trouble, { error: sendFailureOf(thrown, this.#api.redact).message });
      return false;
    }
  }
}

/** Discord cuts blanks at both ends. */
function wordsIn(message: unknown): string {
  return (textOf(fieldsOf(message)?.content) ?? '').trim();
}

/** What Discord says it made. Throws `SendFailure`. */
export function sentMessage(made: unknown, place?: Place): SentMessage {
  const messageId = snowflakeOf(fieldsOf(made)?.id);
  if (messageId === null) throw new SendFailure("Discord's answer names no message", 1000, 'uncertain');
  return { messageId, ...(place === undefined ? {} : { place }) };
}

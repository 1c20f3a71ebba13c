import { DiscordAPIError, HTTPError, RateLimitError } from '@discordjs/rest';
import type { Trouble } from '../connection.ts';
import { unanswered } from '../http.ts';
import { SendFailure, type SendFailureKind } from '../platform.ts';
import type { Redact } from '../redaction.ts';

const RETRY_MS = 1000;
/** Discord does not know the token any more, but an operator may bring a new one: what is to be sent waits for that. */
const NEW_TOKEN_MS = 60_000;
/** Some of Discord's own guards refuse for a while and give no code. */
const GUARDED_MS = 60_000;

/** The socket was closed, or never came to be. */
export class SocketClosed extends Error {
  readonly code: number;

  constructor(code: number, reason: string) {
    super(reason);
    this.name = 'SocketClosed';
    this.code = code;
  }
}

/** Close codes after which no new try has another end. */
const FINAL_CLOSES: Readonly<Record<number, string>> = {
  4004: 'Discord does not know the token: reset it in the Developer Portal, and give the new one',
  4010: 'Discord refused the shard',
  4011: 'the bot is in more servers than one connection may serve: Discord demands sharding',
  4012: 'Discord does not serve this version of its gateway any more: update Moirai',
  4013: 'Discord does not know an intent that was asked for: update Moirai',
  4014: 'Discord does not grant an intent: turn on Message Content Intent for the bot in the Developer Portal',
};

/** What a failed call or a closed socket says about the connection. */
export function troubleOf(thrown: unknown, redact: Redact): Trouble {
  if (thrown instanceof SocketClosed) {
    const final = FINAL_CLOSES[thrown.code];
    if (final !== undefined) return { phase: 'failed', problem: final, waitMs: 0 };
    return { phase: 'degraded', problem: redact(thrown.message), waitMs: 0 };
  }
  if (statusOf(thrown) === 401) return { phase: 'failed', problem: FINAL_CLOSES[4004] ?? '', waitMs: 0 };
  const { message, retryAfterMs } = sendFailureOf(thrown, redact);
  return { phase: 'degraded', problem: message, waitMs: retryAfterMs ?? 0 };
}

type Rule = readonly [kind: SendFailureKind, retryMs: number | null, words?: string];

/** Discord's own codes: what they say about a message. */
const RULES: Readonly<Record<number, Rule>> = {
  10003: ['gone', null, 'the channel or thread does not exist any more'],
  10004: ['gone', null, 'the bot is not in that server any more'],
  50001: ['gone', null, 'the bot cannot see that channel'],
  50007: ['gone', null, 'that person takes no direct messages from the bot'],
  50278: ['gone', null, 'that person shares no server with the bot'],
  10008: ['unknown', null, 'the message does not exist any more'],
  30046: ['unknown', null, 'Discord lets this message be changed no more'],
  50008: ['bad_format', null, 'nothing can be said in that channel itself: in a forum, open a post with :new=TITLE'],
  40067: ['bad_format', null, 'the forum demands a tag: name one with ;tags=TAG behind the title'],
  50006: ['bad_format', null, 'Discord takes no empty message'],
  50013: ['forbidden', null, 'the bot lacks a permission in that channel'],
  50083: ['forbidden', null, 'the thread is archived'],
  160005: ['forbidden', null, 'the thread is locked: somebody who may manage threads has to unlock it'],
  200000: ['forbidden', null, 'a rule of the server (AutoMod) blocked the message'],
  200001: ['forbidden', null, 'a rule of the server (AutoMod) blocked the title'],
  40005: ['too_large', null, 'the file is larger than Discord takes'],
  20016: ['rate_limited', 5000, 'the channel is in slow mode'],
  20028: ['rate_limited', 5000, 'the channel has reached its limit of messages'],
  20029: ['rate_limited', 5000, 'the server has reached its limit of messages'],
  130000: ['transient', 5000, 'Discord is overloaded'],
};

/** What a failed call says about the message. */
export function sendFailureOf(thrown: unknown, redact: Redact): SendFailure {
  if (thrown instanceof SendFailure) return thrown;
  if (thrown instanceof RateLimitError) {
    const { timeToReset, retryAfter, sublimitTimeout } = thrown;
    const wait = Math.max(timeToReset, retryAfter, sublimitTimeout, 1);
    return new SendFailure('Discord asks for patience', Math.ceil(wait), 'rate_limited');
  }
  if (thrown instanceof HTTPError) {
    return new SendFailure(`Discord answered ${thrown.status}`, RETRY_MS, 'transient');
  }
  if (thrown instanceof DiscordAPIError) return refusalOf(thrown, redact);
  // The answer was none that can be read: the request had arrived.
  if (thrown instanceof SyntaxError || thrown instanceof TypeError) {
    return new SendFailure("Discord's answer cannot be read", RETRY_MS, 'uncertain');
  }
  return unanswered(thrown, redact);
}

function refusalOf(thrown: DiscordAPIError, redact: Redact): SendFailure {
  const { status } = thrown;
  const code = codeOf(thrown);
  const words = redact(thrown.message.slice(0, 500));
  const rule = code === null ? undefined : RULES[code];
  if (rule !== undefined) {
    const [kind, retryMs, meaning] = rule;
    return new SendFailure(`${meaning ?? words} (${code})`, retryMs, kind);
  }
  if (status === 401) return new SendFailure(`Discord does not know the token: ${words}`, NEW_TOKEN_MS, 'forbidden');
  if (status === 413) return new SendFailure(`the files are larger than Discord takes: ${words}`, null, 'too_large');
  if (code === 50035) {
    const kind = /BASE_TYPE_MAX_LENGTH|or fewer in length/.test(words) ? 'too_long' : 'bad_format';
    return new SendFailure(`Discord refused the message: ${words}`, null, kind);
  }
  if (status === 403 && code === null) return new SendFailure(`Discord refused: ${words}`, GUARDED_MS, 'transient');
  return new SendFailure(
    `Discord refused: ${words} (${code ?? status})`,
    null,
    status === 403 ? 'forbidden' : 'unknown',
  );
}

/** Discord's own code of a refusal; null where there is none. */
export function codeOf(thrown: unknown): number | null {
  if (!(thrown instanceof DiscordAPIError)) return null;
  const code = Number(thrown.code);
  return Number.isSafeInteger(code) && code > 0 ? code : null;
}

export function statusOf(thrown: unknown): number | null {
  return thrown instanceof DiscordAPIError || thrown instanceof HTTPError ? thrown.status : null;
}

import { callHttp } from '../http.ts';
import { sendFailureOf } from './failures.ts';
import type { SlackBot } from './slack-client.ts';
import { escapeSigns } from './text.ts';

const ANSWER_MS = 10_000;
const MOST_ANSWER = 3000;

/** Whom an answer is for, and where they are. */
export interface AnswerTo {
  /** The address that came with what they did; null where none came. */
  readonly url: string | null;
  readonly channel: string;
  readonly thread: string | null;
  readonly user: string | null;
}

/** Shows a text only to who pressed or commanded. Never rejects: without it nothing is lost. */
export async function answerPrivately(bot: SlackBot, to: AnswerTo, words: string, signal: AbortSignal): Promise<void> {
  const text = escapeSigns(words.slice(0, MOST_ANSWER).toWellFormed());
  const thread = to.thread === null ? {} : { thread_ts: to.thread };
  try {
    const url = bot.addressOf(to.url);
    if (url !== null)
      await postTo(url, { response_type: 'ephemeral', replace_original: false, text, ...thread }, signal);
    else if (to.user !== null) {
      const args = { channel: to.channel, user: to.user, text, ...thread };
      await bot.call('chat.postEphemeral', args, signal, ANSWER_MS);
    }
  } catch (thrown) {
    const error = sendFailureOf(thrown, bot.redact).message;
    bot.runtime.warn('an answer to a button or a command was not shown', { error });
  }
}

/** Throws `Error` where Slack does not take it. */
export async function postTo(url: URL, json: unknown, signal: AbortSignal): Promise<void> {
  const { status } = await callHttp(url.href, { method: 'POST', json }, ANSWER_MS, signal);
  if (status !== 200) throw new RefusedAnswer(`Slack refused an answer with status ${status}`);
}

/** The address for answers takes no more of them. */
export class RefusedAnswer extends Error {}

import { fieldsOf, listOf, textOf } from '../fields.ts';
import type { Place } from '../platform.ts';
import { timeOf } from './places.ts';
import { METADATA_TYPE, type Sending } from './send.ts';

const PAGE = 200;
/** A channel is read from its end; a thread from its beginning, so that all of it has to be. */
const MOST_PAGES = { channel: 3, thread: 40 };

/** The id of a message that we sent with this key; null when there is none. Throws `SendFailure`. */
export async function findByKey(
  sending: Sending,
  { chat, thread }: Place,
  key: string,
  signal: AbortSignal,
): Promise<string | null> {
  const method = thread === undefined ? 'conversations.history' : 'conversations.replies';
  const where = { channel: chat, ...(thread === undefined ? {} : { ts: thread }) };
  let cursor: string | null = null;
  for (let page = 0; page < MOST_PAGES[thread === undefined ? 'channel' : 'thread']; page += 1) {
    const more = cursor === null ? {} : { cursor };
    const answer = await sending.call(method, { ...where, ...more, include_all_metadata: true, limit: PAGE }, signal);
    for (const message of listOf(answer.messages).map(fieldsOf)) {
      const metadata = fieldsOf(message?.metadata);
      const isIt = metadata?.event_type === METADATA_TYPE && fieldsOf(metadata.event_payload)?.key === key;
      if (isIt) return timeOf(message?.ts);
    }
    cursor = textOf(fieldsOf(answer.response_metadata)?.next_cursor);
    if (!cursor || answer.has_more !== true) return null;
  }
  return null;
}

import { isUndoneBy } from '../agent/transcript.ts';
import type { Store } from '../store/port.ts';
import type { Message } from '../store/transactions/messages.ts';
import type { EndedSession } from './provider.ts';

const PAGE = 500;

/** All a session sees: its own transcript, behind those of the sessions it continues. */
export async function wholeTranscript(store: Store, sessionId: string): Promise<Message[]> {
  const messages: Message[] = [];
  for (const id of await store.read('lineageOf', { sessionId })) {
    for (let after: number | undefined = 0; after !== undefined; ) {
      const page: Message[] = await store.read('listMessages', { sessionId: id, after, limit: PAGE });
      messages.push(...page);
      after = page.at(-1)?.position;
    }
  }
  return messages;
}

/** What people and the agent said, without what was taken back. */
export function spokenIn(messages: readonly Message[]): Message[] {
  let kept: Message[] = [];
  for (const message of messages) {
    const { role, text } = message;
    if (role === 'undo') kept = kept.filter((row) => !isUndoneBy(row, message));
    else if ((role === 'user' || role === 'assistant') && text.trim() !== '') kept.push(message);
  }
  return kept;
}

/** What was said in this session itself: what came before it was sent when those sessions ended. */
export function ownSpeech({ session, messages }: EndedSession): Message[] {
  return spokenIn(messages).filter(({ sessionId }) => sessionId === session.id);
}

/** The texts of an answer's list that are there, as a list for the model; null when there are none. */
export function listOf(texts: readonly (string | undefined)[]): string | null {
  const lines = texts.flatMap((text) => (text === undefined || text.trim() === '' ? [] : [`- ${text.trim()}`]));
  return lines.length === 0 ? null : lines.join('\n');
}

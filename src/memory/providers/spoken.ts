import type { Message } from '../../store/transactions/messages.ts';
import type { EndedSession } from '../provider.ts';
import { spokenIn } from '../transcript.ts';

/** What was said in this session itself: what came before it was sent when those sessions ended. */
export function ownSpeech({ session, messages }: EndedSession): Message[] {
  return spokenIn(messages).filter(({ sessionId }) => sessionId === session.id);
}

/** The texts of an answer's list that are there, as a list for the model; null when there are none. */
export function listOf(texts: readonly (string | undefined)[]): string | null {
  const lines = texts.flatMap((text) => (text === undefined || text.trim() === '' ? [] : [`- ${text.trim()}`]));
  return lines.length === 0 ? null : lines.join('\n');
}

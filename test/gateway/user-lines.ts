import type { RecordedMessage } from '../fakes/http-fake.ts';

/** The last line of what the person wrote: a note, in brackets, may go before it or behind it. */
export function lastUserLine(messages: readonly RecordedMessage[]): string {
  return userLines(messages).at(-1) ?? '';
}

/** All that the person wrote last, without notes. */
export function userLines(messages: readonly RecordedMessage[]): string[] {
  const content = messages.findLast(({ role }) => role === 'user')?.content;
  const text = Array.isArray(content) ? content.map((part) => String(part.text ?? '')).join('\n') : String(content);
  return text.split('\n').filter((line) => line !== '' && !line.startsWith('['));
}

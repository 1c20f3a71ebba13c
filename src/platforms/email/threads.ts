import type { Head } from './head.ts';
import { hashOf, readOwnId } from './own-ids.ts';

/**
 * The thread that a mail belongs to: the first message that it refers to, or itself. A client that names only what it
 * answers is followed through the ids of our own messages. Subjects mean nothing: anybody may write the same.
 */
export function rootOf({ references, inReplyTo, id }: Head, address: string): string {
  const first = references[0] ?? inReplyTo[0];
  if (first === undefined) return placeName(id);
  return placeName(readOwnId(first, address)?.root ?? first);
}

/** What the mail answers, and quotes if it quotes anything. */
export function answeredBy({ references, inReplyTo }: Head): readonly string[] {
  return inReplyTo.length > 0 ? inReplyTo : references.slice(-1);
}

/** Whether the mail refers to something that we said. */
export function answersUs({ references, inReplyTo }: Head, address: string): boolean {
  return [...references, ...inReplyTo].some((id) => readOwnId(id, address) !== null);
}

/** An id as part of a session's key, where not every sign may stand. */
function placeName(id: string): string {
  const isPath = /(?:^|[/\\:])\.\.?(?:[/\\]|$)/.test(id) || /^(?:[/\\]|[A-Za-z]:(?:[/\\]|$))/.test(id);
  return isPath || !/^[\x21-\x7e]{1,250}$/.test(id) ? hashOf(id) : id;
}

/** More than clients show, and less than servers refuse. */
const MOST_REFERENCES = 20;

/** The ids that an answer refers to: of a long thread the first, which names it, and the newest. */
export function referencesOf({ references, inReplyTo, messageId }: Head): string[] {
  const before = references.length > 0 ? references : inReplyTo.slice(0, 1);
  return boundedReferences(messageId === null ? before : [...before, messageId]);
}

export function boundedReferences(ids: readonly string[]): string[] {
  const unique = [...new Set(ids)];
  if (unique.length <= MOST_REFERENCES) return unique;
  return [...unique.slice(0, 1), ...unique.slice(1 - MOST_REFERENCES)];
}

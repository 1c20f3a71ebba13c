import { createHash } from 'node:crypto';
import { domainOf } from './account.ts';

/**
 * The Message-ID of what we send says by which key it was sent and in which thread: a bounce and an answer quote it, and
 * every attempt at the same message has the same.
 */
export interface OwnId {
  readonly key: string;
  readonly root: string;
}

const LONGEST_PART = 180;

export function ownIdOf({ key, root }: OwnId, address: string): string {
  return `moirai.${written(key)}.${written(root)}@${domainOf(address)}`;
}

/** What an id of ours says; null for one that is none. */
export function readOwnId(id: string, address: string): OwnId | null {
  const [, key, root, domain] = /^moirai\.([\w-]{1,250})\.([\w-]{1,250})@(.{1,190})$/.exec(id) ?? [];
  if (key === undefined || root === undefined || domain?.toLowerCase() !== domainOf(address)) return null;
  return { key: read(key), root: read(root) };
}

/** What is too long for a header is named by its hash: then the id is still the same each time. */
function written(text: string): string {
  const short = Buffer.byteLength(text) <= LONGEST_PART ? text : hashOf(text);
  return Buffer.from(short).toString('base64url') || '-';
}

function read(text: string): string {
  return Buffer.from(text, 'base64url').toString('utf8').toWellFormed();
}

export function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('hex')}`;
}

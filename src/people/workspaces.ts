import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import type { Session } from '../lifecycle/session.ts';

const NAME_CHARS = 60;
const HASH_CHARS = 12;

/**
 * The folder in which the tools of a conversation work and what is sent to it is kept. Terminals and BOOT.md are one
 * person's, the operator's, and have one together.
 */
export function workspaceFor(
  { folder, perConversation }: Config['agent']['workspace'],
  { kind, key }: Pick<Session, 'kind' | 'key'>,
): string {
  if (!perConversation) return folder;
  return join(folder, kind === 'cli' || kind === 'batch' ? 'operator' : folderName(key));
}

/** The key as a file system takes it, and a hash, by which no two keys have one name. */
function folderName(key: string): string {
  const readable = key.replaceAll(/[^A-Za-z0-9_-]/g, '-').slice(0, NAME_CHARS);
  return `${readable}-${createHash('sha256').update(key).digest('hex').slice(0, HASH_CHARS)}`;
}

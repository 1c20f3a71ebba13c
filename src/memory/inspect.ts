import type { MemoryProvider } from './provider.ts';

/** Whose memory it is, as an operator sees it. */
export interface MemoryOwner {
  /** As `ownerHash` has it, or `everybody`. */
  readonly owner: string;
  /** A person as `platform:user`, or the key of a conversation; null where only the hash is known. */
  readonly who: string | null;
  readonly entries: number;
}

export interface MemoryEntry {
  readonly text: string;
  /** The file it is in, or its id. */
  readonly where: string;
  readonly at: number | null;
}

/** A memory that can say what it remembers. */
export interface Inspectable {
  owners(): Promise<readonly MemoryOwner[]>;
  entries(owner: string): Promise<readonly MemoryEntry[]>;
}

export function isInspectable(provider: MemoryProvider): provider is MemoryProvider & Inspectable {
  return 'owners' in provider && 'entries' in provider;
}

/** The owner of what every conversation is told. */
export const EVERYBODY = 'everybody';

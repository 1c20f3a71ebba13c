import type { ResetRules } from '../lifecycle/reset-policy.ts';
import type { ReadArgs, ReadName, ReadResult, WriteArgs, WriteName, WriteResult } from './catalogue.ts';
import type { Effects } from './transaction.ts';

/**
 * The one door to what is kept. Both engines implement it, and one contract suite runs on both. A resolved `write` is
 * durable (a claim or an acknowledgement of a lane together with the next write that is neither); a rejected one left nothing behind, except `store_outcome_unknown`, after which the same command id may be
 * repeated safely until 64 other commands have changed the same session. Every later `read` sees every earlier `write`.
 */
export interface Store {
  readonly engine: 'sqlite' | 'postgres';
  /** Where it is, fit to be shown: no password in it. */
  readonly location: string;
  write<N extends WriteName>(name: N, args: WriteArgs<N>): Promise<WriteResult<N>>;
  read<N extends ReadName>(name: N, args: ReadArgs<N>): Promise<ReadResult<N>>;
  /** Calls back after each durable write that left work for somebody: hints, at most once per commit. */
  onCommit(listener: (effects: Effects) => void): () => void;
  /** New rules apply from the next transaction on. */
  useRules(rules: ResetRules): void;
  close(): Promise<void>;
}

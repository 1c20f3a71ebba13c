import type { ColumnKind } from './table.ts';
import type { Query, Tx } from './transaction.ts';

/** All that differs between the engines. Everything else is one text for both. */
export interface Dialect {
  /** Column types. Text compares by code point on both engines, so that listings and cursors agree. */
  readonly integer: string;
  readonly text: string;
  /** The statements that make a vocabulary known, where the engine keeps them by name. */
  vocabulary(name: string, words: readonly string[]): string[];
  /** The type of a column that holds one of a vocabulary's words, with the rule that it does. */
  word(column: string, vocabulary: string, words: readonly string[]): string;
  /** The primary key of a table whose rows are numbered in the order they are written. */
  readonly serialKey: string;
  /** Keeps a table's rows in its primary key, where the engine can: one page to write instead of two. */
  readonly clustered: string;
  /** For a table whose rows change all the time: leaves room beside them, so that a change stays in its page. */
  readonly oftenUpdated: string;
  /** The column of `events` that readers of the whole log follow; see `sequenceEvents`. */
  readonly seqColumn: string;
  /** Rows `value`: the texts of a JSON array, the one parameter. For lists of any length in one statement's text. */
  readonly listed: string;
  /** Locks the selected rows for the rest of the transaction. */
  readonly forUpdate: string;
  /** The same, leaving out rows that others have in hand. */
  readonly skipLocked: string;
  /** Makes all writers of one conversation queue up behind this transaction. Nothing where writes do not overlap. */
  lockKey(key: string): readonly Query[];
  /** The same for the conversation of a session. */
  lockKeyOf(sessionId: string): readonly Query[];
  /** The same for several sessions, without waiting: returns those whose conversation is locked now. */
  tryLockKeysOf(sessionIds: readonly string[]): Tx<readonly string[]>;
  /**
   * Keeps an instance from being declared dead in the middle of its own write, whose outcome no process would settle
   * then: its writers share the lock, and the process that declares it dead takes it alone. Also keeps registrations of
   * subscribers from happening in the middle of it; see `holdWriters`.
   */
  shareInstance(instanceId: string): readonly Query[];
  takeInstance(instanceId: string): Tx<void>;
  /** The same without waiting; false while the instance writes. */
  tryTakeInstance(instanceId: string): Tx<boolean>;
  /**
   * A table `fresh` with these columns, from a JSON array of rows, the one parameter; null where statements cost no
   * round trip, and many rows are as well written one by one.
   */
  readonly freshRows: ((columns: readonly (readonly [name: string, kind: ColumnKind])[]) => string) | null;
  /** Makes registrations of subscribers wait for each other: two that both want the table alone would deadlock. */
  lockRegistration(): Tx<void>;
  /** Waits for the writers in flight, each of which has read the subscribers, and keeps the next ones out. */
  holdWriters(): Tx<void>;
  /** Gives committed events their public numbers, in commit order, at most so many; false when none was left. */
  sequenceEvents(limit: number): Tx<boolean>;
  /** Database rules that need the engine's own language: an ended session never changes its end. */
  readonly endedIsFinal: readonly string[];
  /** Tables and indexes only this engine needs: the full-text index over the transcript among them. */
  readonly ownTables: readonly string[];
  /**
   * Adds the oldest transcript rows that are not in the full-text index yet, at most `?` of them; null when the engine
   * keeps its index by itself. Indexing each message in its own transaction would cost a third of a message's work.
   */
  readonly indexMessages: string | null;
  /**
   * Removes the transcripts of sessions, from the full-text index too. `sessions` is a JSON array of ids. No number of a
   * transcript row is ever given out again.
   */
  forgetMessages(sessions: string): readonly Query[];
  /**
   * Takes what was forgotten out of the full-text index itself, a piece at a time; `first` begins anew. False when nothing
   * is left to do. Without it the words of removed rows stay in the index, unfindable, until it is merged.
   */
  cleanIndex(first: boolean): Tx<boolean>;
  /** Rows `message_no`, best match first. `within` selects the ids of the sessions that are searched; null for all. */
  searchMessages(words: readonly string[], limit: number, within: Query | null): Query;
  /** What makes `facts` searchable by words. The index follows the table by itself: facts are few. */
  readonly factSearch: readonly string[];
  /** Some columns of the `facts` of one owner that have any of the words, best match first. There is at least one word. */
  recallFacts(columns: string, owner: string, words: readonly string[], limit: number): Query;
  /** Rows `name`, `value`: the engine's version and the settings that promises depend on. */
  readonly settings: string;
  /** Rows with one text each, `ok` when all is well; null where the engine has no check of its files. */
  readonly integrityCheck: string | null;
}

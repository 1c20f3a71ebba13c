import { createHash } from 'node:crypto';
import { KeptCursor } from '../cursor.ts';
import { fieldsOf, integerOf, listOf, textOf } from '../fields.ts';
import { LowWater } from '../low-water.ts';
import type { PlatformRuntime } from '../platform.ts';

interface Kept {
  /** Which numbering of the mailbox `uid` belongs to. */
  readonly validity: string;
  readonly uid: number;
  /**
   * The ids of the newest mails, in short; by them the place is found again when the numbers change. `!` stands in front of
   * those that nobody was given.
   */
  readonly recent: readonly string[];
}

const KEY = 'inbox';
/** When the mailbox was first listened to, or was to be. */
const SINCE = 'since';
const MOST_RECENT = 100;

/**
 * Up to where the inbox has everything: a UID, as long as the mailbox is numbered as it was (UIDVALIDITY). Marks on mails
 * say nothing about it: people set and remove them.
 */
export class Position {
  readonly #runtime: PlatformRuntime;
  readonly #cursor: KeptCursor;
  #water = new LowWater<number>();
  #validity = '';
  #uid = 0;
  #recent: string[] = [];
  /** Epoch milliseconds: what came before the very first start is not for us. */
  #since: number;

  constructor(runtime: PlatformRuntime, startedAt: number) {
    this.#runtime = runtime;
    this.#since = startedAt;
    this.#cursor = new KeptCursor(runtime, KEY);
  }

  get validity(): string {
    return this.#validity;
  }

  /** How many mails are on their way to the inbox. */
  get open(): number {
    return this.#water.size;
  }

  get since(): number {
    return this.#since;
  }

  /** Writes down when the first start was: it may take long until the server can be reached. */
  async start(): Promise<void> {
    const kept = Number((await this.#runtime.recall(SINCE)) ?? Number.NaN);
    if (Number.isSafeInteger(kept)) this.#since = kept;
    else await this.#runtime.keep(SINCE, String(Math.floor(this.#since)));
  }

  /** No mail is known: the mailbox was empty when it was opened first. */
  get isFresh(): boolean {
    return this.#recent.length === 0;
  }

  /** Where we are, in this process or as the last one left it; null at the very first start. */
  async recall(): Promise<Kept | null> {
    if (this.#validity !== '') return this.#kept;
    const kept = readKept(await this.#cursor.read());
    if (kept !== null) this.#recent = [...kept.recent];
    return kept;
  }

  /** The numbers of the mailbox are these from now on; everything up to `uid` is done with. */
  async beginAt(validity: string, uid: number): Promise<void> {
    this.#water = new LowWater();
    this.#validity = validity;
    this.#uid = uid;
    // Kept before anything is taken: what comes while no process is there must be found by the next one.
    await this.#runtime.keep(KEY, JSON.stringify(this.#kept));
  }

  /** The returned function tells that the inbox has the mail, or that it is none for it: `isLeftOut`. */
  begin(uid: number, id: string, { isLeftOut = false } = {}): () => void {
    const water = this.#water;
    const done = water.begin(uid);
    return () => {
      this.#note(shortened(id), isLeftOut);
      if (!done() || water !== this.#water) return;
      this.#uid = Math.max(this.#uid, water.mark ?? 0);
      this.#cursor.moveTo(JSON.stringify(this.#kept));
    };
  }

  /** Whether a mail is among the newest, also of those that were left out. */
  hasSeen(id: string): boolean {
    const short = shortened(id);
    return this.#recent.includes(short) || this.#recent.includes(`!${short}`);
  }

  /** Whether a mail is among the newest that the inbox was given. */
  hasTaken(id: string): boolean {
    return this.#recent.includes(shortened(id));
  }

  /** Remembers a mail as one that is there, and that the inbox was not given. */
  noteLeftOut(id: string): void {
    this.#note(shortened(id), true);
  }

  #note(short: string, isLeftOut: boolean): void {
    if (this.#recent.includes(short)) return;
    const others = this.#recent.filter((each) => each !== `!${short}`);
    this.#recent = [...others, isLeftOut ? `!${short}` : short].slice(-MOST_RECENT);
  }

  async flush(): Promise<void> {
    await this.#cursor.flush();
  }

  get #kept(): Kept {
    return { validity: this.#validity, uid: this.#uid, recent: this.#recent };
  }
}

function readKept(text: string | null): Kept | null {
  if (text === null) return null;
  try {
    const fields = fieldsOf(JSON.parse(text));
    const validity = textOf(fields?.validity, 32);
    const uid = integerOf(fields?.uid);
    if (!validity || uid === null) return null;
    return { validity, uid, recent: listOf(fields?.recent).flatMap((each) => textOf(each, 32) ?? []) };
  } catch {
    return null;
  }
}

function shortened(id: string): string {
  return createHash('sha256').update(id).digest('base64url').slice(0, 16);
}

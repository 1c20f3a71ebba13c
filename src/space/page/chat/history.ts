import { batch, computed, signal } from '@preact/signals';
import { sentenceOf } from '../data/answer-error.ts';
import { askMessages, askSessions, type KeptSession, type Message } from '../data/kept-session.ts';
import type { Source } from '../data/source.ts';
import { keyOf } from './conversation-store.ts';
import type { Part } from './transcript.ts';

const PAGE = 60;
const ENOUGH = 20;
const SESSIONS = 20;

export interface HistoryOptions {
  readonly source: Source;
  readonly conversation: string;
  /** Hears the sessions of the conversation, as they are now. */
  readonly found: (sessions: readonly KeptSession[]) => void;
  readonly closing: AbortSignal;
}

/** What the gateway keeps of a conversation: its newest sessions, and as many before them as were asked for. */
export class History {
  /** Oldest first, without a gap. */
  readonly parts = signal<readonly Part[]>([]);
  readonly trouble = signal<string | null>(null);
  /** Why what is earlier could not be loaded, at the last attempt. */
  readonly earlierTrouble = signal<string | null>(null);
  /** Whether it was looked at. */
  readonly opened = signal(false);
  /** Sessions before those that are shown, newest first. */
  readonly #older = signal<readonly KeptSession[]>([]);
  readonly #olderCursor = signal<string | null>(null);
  readonly #options: HistoryOptions;
  #refreshing: Promise<void> | null = null;
  #again = false;
  #loading: Promise<void> | null = null;

  readonly hasEarlier = computed(
    () => (this.parts.value[0]?.before ?? 0) > 0 || this.#older.value.length > 0 || this.#olderCursor.value !== null,
  );

  constructor(options: HistoryOptions) {
    this.#options = options;
  }

  /** Looks for what is new. A call while it looks makes it look once more afterwards. */
  refresh(): Promise<void> {
    if (this.#refreshing !== null) {
      this.#again = true;
      return this.#refreshing;
    }
    this.#refreshing = this.#look().finally(() => {
      this.#refreshing = null;
    });
    return this.#refreshing;
  }

  async #look(): Promise<void> {
    do {
      this.#again = false;
      try {
        await this.#readNew();
        this.trouble.value = null;
      } catch (thrown) {
        if (this.#options.closing.aborted) return;
        this.trouble.value = sentenceOf(thrown);
      }
    } while (this.#again && !this.#options.closing.aborted);
    this.opened.value = true;
  }

  async #readNew(): Promise<void> {
    const { data, next } = await this.#sessions(null);
    this.#options.found(data);
    const shown = this.parts.value;
    const oldest = shown[0]?.session;
    if (oldest === undefined) {
      this.#older.value = data;
      this.#olderCursor.value = next;
    } else await this.#readBehind(shown, oldest, data);
    // Also after a first try that broke off.
    if (this.parts.value.every(({ rows }) => rows.length === 0)) await this.#earlier();
  }

  async #readBehind(shown: readonly Part[], oldest: KeptSession, data: readonly KeptSession[]): Promise<void> {
    const current = data.filter(({ started_at, id }) => started_at > oldest.started_at || id === oldest.id).reverse();
    const news: Part[] = [];
    for (const session of current) {
      const part =
        shown.find((other) => other.session.id === session.id) ??
        partBefore(session, Math.max(0, session.message_count - PAGE));
      news.push({ ...part, session, rows: await this.#rowsBehind(session, part) });
    }
    // Earlier rows may have come in the meantime.
    this.parts.value = withNews(this.parts.value, news);
  }

  async #rowsBehind(session: KeptSession, part: Part): Promise<Message[]> {
    const rows: Message[] = [];
    let after = part.rows.at(-1)?.position ?? part.before;
    while (after < session.message_count) {
      const page = await this.#rows(session.id, after, 200);
      rows.push(...page);
      const last = page.at(-1);
      if (last === undefined) break;
      after = last.position;
    }
    return rows;
  }

  /** Loads what was said before what is shown. */
  async loadEarlier(): Promise<void> {
    try {
      await this.#earlier();
      this.earlierTrouble.value = null;
    } catch (thrown) {
      this.earlierTrouble.value = sentenceOf(thrown);
    }
  }

  /** One after another, or the same would be loaded twice. */
  #earlier(): Promise<void> {
    this.#loading ??= this.#readEarlier().finally(() => {
      this.#loading = null;
    });
    return this.#loading;
  }

  async #readEarlier(): Promise<void> {
    let loaded = 0;
    while (loaded < ENOUGH && this.hasEarlier.peek()) {
      const first = this.parts.value[0];
      if (first !== undefined && first.before > 0) {
        const before = Math.max(0, first.before - PAGE);
        const rows = await this.#rows(first.session.id, before, first.before - before);
        loaded += rows.length;
        const [now, ...others] = this.parts.value;
        if (now !== undefined) this.parts.value = [{ ...now, before, rows: [...rows, ...now.rows] }, ...others];
      } else await this.#takeOlderSession();
    }
  }

  async #takeOlderSession(): Promise<void> {
    const [session, ...older] = this.#older.value;
    if (session === undefined) {
      const { data, next } = await this.#sessions(this.#olderCursor.value);
      this.#older.value = data;
      this.#olderCursor.value = next;
      return;
    }
    const part = partBefore(session, session.message_count);
    batch(() => {
      this.#older.value = older;
      this.parts.value = [part, ...this.parts.value];
    });
  }

  #sessions(cursor: string | null) {
    const { source, conversation, closing } = this.#options;
    return askSessions(source, { key: keyOf(conversation), limit: SESSIONS, cursor }, { signal: closing });
  }

  #rows(sessionId: string, cursor: number, limit: number): Promise<readonly Message[]> {
    const { source, closing } = this.#options;
    return askMessages(source, sessionId, { cursor, limit }, { signal: closing });
  }
}

/** What is shown, with rows behind it, and sessions that have begun since. One that is older than the news has ended. */
function withNews(shown: readonly Part[], news: readonly Part[]): Part[] {
  const grown = shown.map((part) => {
    const more = news.find(({ session }) => session.id === part.session.id);
    if (more === undefined) return part;
    const last = part.rows.at(-1)?.position ?? part.before;
    return { ...part, session: more.session, rows: [...part.rows, ...more.rows.filter((row) => row.position > last)] };
  });
  return [...grown, ...news.filter(({ session }) => !shown.some((part) => part.session.id === session.id))];
}

/** A session of which the first `before` rows are not to be read yet, and no others are there. */
function partBefore(session: KeptSession, before: number): Part {
  return { session, rows: [], before };
}

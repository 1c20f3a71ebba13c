import { batch, computed, type Signal, signal } from '@preact/signals';
import { sentenceOf } from '../data/answer-error.ts';
import { askJson, type Source } from '../data/source.ts';
import { keyOf, type Page } from './conversation-book.ts';
import { ConnectionLost, isCommand, type Outcome, say, type Told } from './say.ts';
import { itemsOf, type Note, noteOf, type Part, type Row, type Session, type Tool } from './transcript.ts';

/** What is heard of a reply before it is in the transcript. */
export interface Live {
  readonly state: 'sending' | 'working' | 'apart' | 'failed';
  readonly reply: string;
  readonly tools: readonly Tool[];
  /** Why it could not be said, and what to do. */
  readonly trouble: string | null;
}

/** Something said here that is not answered yet. */
export interface Send {
  readonly key: string;
  readonly text: string;
  readonly at: string;
  readonly turnId: Signal<string | null>;
  readonly live: Signal<Live>;
  /** Said by a button: nobody wants to read it. */
  readonly quiet: boolean;
  /** Heard from its beginning. */
  readonly whole: boolean;
}

const PAGE = 60;
const ENOUGH = 20;
const SESSIONS = 20;
/** Often enough to look alive, seldom enough to leave the browser time for everything else. */
const SHOW_EVERY_MS = 50;

const FRESH: Live = { state: 'sending', reply: '', tools: [], trouble: null };

export interface ThreadOptions {
  readonly source: Source;
  readonly conversation: string;
  /** For what was said and is not answered: a reload goes on waiting for it. */
  readonly shelf: Storage;
  /** Hears the sessions of the conversation, as they are now. */
  readonly found: (sessions: readonly Session[]) => void;
  /** Hears each reply once, for those who cannot see it. */
  readonly replied: (text: string) => void;
}

/** One conversation: its sessions with what was said in them, and what is being said now. */
export class Thread {
  readonly conversation: string;
  readonly sends = signal<readonly Send[]>([]);
  readonly trouble = signal<string | null>(null);
  readonly opened = signal(false);
  readonly #parts = signal<readonly Part[]>([]);
  readonly #notes = signal<readonly Note[]>([]);
  /** Sessions before those that are shown, newest first. */
  readonly #older = signal<readonly Session[]>([]);
  readonly #olderCursor = signal<string | null>(null);
  readonly #options: ThreadOptions;
  readonly #closing = new AbortController();
  #refreshing: Promise<void> | null = null;
  #again = false;
  #loading: Promise<void> | null = null;

  readonly items = computed(() => {
    const heard = this.sends.value.filter(({ live, whole }) => whole && live.value.state !== 'failed');
    const live = heard.flatMap(({ turnId }) => turnId.value ?? []);
    return itemsOf(this.#parts.value, this.#notes.value, new Set(live));
  });
  /** Turns whose question is in the transcript already. */
  readonly asked = computed(
    () =>
      new Set(
        this.#parts.value.flatMap(({ rows }) =>
          rows.flatMap((row) => (row.role === 'user' ? (row.turn_id ?? []) : [])),
        ),
      ),
  );
  readonly hasEarlier = computed(
    () => (this.#parts.value[0]?.before ?? 0) > 0 || this.#older.value.length > 0 || this.#olderCursor.value !== null,
  );
  readonly busy = computed(() => this.sends.value.some(isTurn));

  constructor(options: ThreadOptions) {
    this.#options = options;
    this.conversation = options.conversation;
    for (const { key, text, at, turnId } of this.#unanswered()) this.#begin(makeSend(key, text, at, turnId, false));
  }

  close(): void {
    this.#closing.abort();
  }

  /** Something said before it is not answered yet. */
  isWaiting(send: Send): boolean {
    const { value: all } = this.sends;
    return all.slice(0, all.indexOf(send)).some(isTurn);
  }

  notesBehind(send: Send): readonly Note[] {
    return this.#notes.value.filter(({ behind }) => behind === send.key);
  }

  say(text: string, quiet = false): void {
    this.#begin(makeSend(crypto.randomUUID(), text, new Date().toISOString(), null, quiet));
  }

  /** The same again under the same key: it is answered once, whatever became of it. */
  sayAgain(send: Send): void {
    send.live.value = FRESH;
    void this.#deliver(send);
  }

  drop(send: Send): void {
    this.sends.value = this.sends.value.filter((other) => other !== send);
    this.#keepUnanswered();
  }

  /** The last thing that was said here. */
  lastSaid(): string {
    const last = this.sends.value.findLast(({ quiet }) => !quiet)?.text;
    const row = this.items.value.findLast((item) => item.type === 'message' && item.from === 'user');
    return last ?? (row?.type === 'message' ? row.text : '');
  }

  /** Looks for what is new. Asked while it looks, it looks once more afterwards. */
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
        if (this.#closing.signal.aborted) return;
        this.trouble.value = sentenceOf(thrown);
      }
    } while (this.#again && !this.#closing.signal.aborted);
    this.opened.value = true;
  }

  async #readNew(): Promise<void> {
    const { data, next } = await this.#sessions(null);
    this.#options.found(data);
    const shown = this.#parts.value;
    const oldest = shown[0]?.session;
    if (oldest === undefined) {
      this.#older.value = data;
      this.#olderCursor.value = next;
    } else await this.#readBehind(shown, oldest, data);
    // Also after a first try that broke off.
    if (this.#parts.value.every(({ rows }) => rows.length === 0)) await this.#earlier();
  }

  async #readBehind(shown: readonly Part[], oldest: Session, data: readonly Session[]): Promise<void> {
    const current = data.filter(({ started_at, id }) => started_at > oldest.started_at || id === oldest.id).reverse();
    const news: Part[] = [];
    for (const session of current) {
      const part = shown.find((other) => other.session.id === session.id) ?? partFromEnd(session);
      news.push({ ...part, session, rows: await this.#rowsBehind(session, part) });
    }
    // Earlier rows may have come in the meantime.
    this.#parts.value = withNews(this.#parts.value, news);
  }

  async #rowsBehind(session: Session, part: Part): Promise<Row[]> {
    const rows: Row[] = [];
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
  loadEarlier(): Promise<void> {
    return this.#earlier().catch((thrown: unknown) => {
      this.trouble.value = sentenceOf(thrown);
    });
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
      const first = this.#parts.value[0];
      if (first !== undefined && first.before > 0) {
        const before = Math.max(0, first.before - PAGE);
        const rows = await this.#rows(first.session.id, before, first.before - before);
        loaded += rows.length;
        const [now, ...others] = this.#parts.value;
        if (now !== undefined) this.#parts.value = [{ ...now, before, rows: [...rows, ...now.rows] }, ...others];
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
    const part = emptyPart(session);
    batch(() => {
      this.#older.value = older;
      this.#parts.value = [part, ...this.#parts.value];
    });
  }

  #sessions(cursor: string | null): Promise<Page<Session>> {
    const more = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
    const key = encodeURIComponent(keyOf(this.conversation));
    return this.#ask<Page<Session>>(`/v1/sessions?key=${key}&limit=${SESSIONS}${more}`);
  }

  async #rows(sessionId: string, after: number, limit: number): Promise<readonly Row[]> {
    const page = await this.#ask<Page<Row>>(`/v1/sessions/${sessionId}/messages?cursor=${after}&limit=${limit}`);
    return page.data;
  }

  #ask<T>(path: string): Promise<T> {
    return askJson<T>(this.#options.source, path, { signal: this.#closing.signal });
  }

  #begin(send: Send): void {
    this.sends.value = [...this.sends.value, send];
    this.#keepUnanswered();
    void this.#deliver(send);
  }

  async #deliver(send: Send): Promise<void> {
    const { source } = this.#options;
    const { key, text, turnId } = send;
    const ear = new Ear(send.live, (told) => {
      if (told.type !== 'taken') return;
      turnId.value = told.turnId;
      this.#keepUnanswered();
    });
    const saying = { conversation: this.conversation, text, key, turnId: turnId.value };
    try {
      const outcome = await say(source, saying, (told) => ear.hear(told), this.#closing.signal);
      ear.close();
      await this.#settle(send, outcome);
    } catch (thrown) {
      ear.close();
      if (this.#closing.signal.aborted) return;
      send.live.value = { ...send.live.value, state: 'failed', trouble: troubleOf(thrown, send) };
    }
  }

  /** The transcript has it now, or a note tells what came of it. */
  async #settle(send: Send, outcome: Outcome): Promise<void> {
    await this.refresh();
    const newest = this.#parts.value.at(-1);
    const place =
      newest === undefined
        ? null
        : { sessionId: newest.session.id, position: newest.rows.at(-1)?.position ?? newest.before };
    const told = noteOf(outcome);
    const isNews = told !== null && !(send.quiet && outcome.reply === 'Stopped.');
    const command = outcome.turn_id === null && !send.quiet ? send.text : null;
    batch(() => {
      const { value: all } = this.sends;
      const before = all[all.indexOf(send) - 1];
      // Its notes, and its own, go where it goes: into the transcript, or behind what was said before it.
      const where = before === undefined ? { place, behind: null } : { place, behind: before.key };
      const moved = this.#notes.value.map((note) => (note.behind === send.key ? { ...note, ...where } : note));
      this.#notes.value = isNews ? [...moved, { key: `note-${send.key}`, command, ...told, ...where }] : moved;
      this.drop(send);
    });
    if (isNews || outcome.reply !== '') this.#options.replied(told?.text ?? outcome.reply);
  }

  get #shelfName(): string {
    return `moirai-unanswered:${this.#options.source.id}:${this.conversation}`;
  }

  /** Commands are not kept: a reload must not do them again. */
  #keepUnanswered(): void {
    const kept = this.sends.value.filter(({ text, quiet }) => !quiet && !isCommand(text));
    const { shelf } = this.#options;
    try {
      if (kept.length === 0) shelf.removeItem(this.#shelfName);
      else {
        const rows = kept.map(({ key, text, at, turnId }) => ({ key, text, at, turnId: turnId.value }));
        shelf.setItem(this.#shelfName, JSON.stringify(rows));
      }
    } catch {
      // Too long for the shelf: after a reload the reply is in the transcript all the same.
    }
  }

  #unanswered(): { key: string; text: string; at: string; turnId: string | null }[] {
    try {
      return JSON.parse(this.#options.shelf.getItem(this.#shelfName) ?? '[]');
    } catch {
      // Not ours: nothing waits.
      return [];
    }
  }
}

/** Gathers what is heard, and shows it now and then. */
class Ear {
  readonly #live: Signal<Live>;
  readonly #also: (told: Told) => void;
  #reply: string;
  #apart = false;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(live: Signal<Live>, also: (told: Told) => void) {
    this.#live = live;
    this.#also = also;
    this.#reply = live.value.reply;
  }

  hear(told: Told): void {
    this.#also(told);
    if (told.type === 'text') {
      // What was said in between is not told again; the whole comes at the end.
      if (this.#apart && this.#reply !== '') this.#reply += '\n\n…\n\n';
      this.#apart = false;
      this.#reply += told.text;
      this.#timer ??= setTimeout(() => this.#show(), SHOW_EVERY_MS);
      return;
    }
    const { value: live } = this.#live;
    if (told.type === 'apart') this.#apart = true;
    if (told.type === 'tool') this.#live.value = { ...live, state: 'working', tools: withTool(live.tools, told) };
    else this.#live.value = { ...live, state: told.type === 'apart' ? 'apart' : 'working' };
  }

  #show(): void {
    this.#timer = undefined;
    this.#live.value = { ...this.#live.value, state: 'working', reply: this.#reply };
  }

  close(): void {
    clearTimeout(this.#timer);
    this.#show();
  }
}

function withTool(tools: readonly Tool[], { id, name, ok }: Tool): Tool[] {
  return [...tools.filter((tool) => tool.id !== id), { id, name, ok }];
}

function makeSend(key: string, text: string, at: string, turnId: string | null, quiet: boolean): Send {
  return { key, text, at, quiet, whole: turnId === null, turnId: signal(turnId), live: signal(FRESH) };
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

/** A session of which the end is to be read. */
function partFromEnd(session: Session): Part {
  return { session, rows: [], before: Math.max(0, session.message_count - PAGE) };
}

/** A session of which nothing is loaded yet. */
function emptyPart(session: Session): Part {
  return { session, rows: [], before: session.message_count };
}

/** Something the agent works at, or will. */
const isTurn = ({ live, text, turnId }: Send): boolean =>
  live.value.state !== 'failed' && (turnId.value !== null || !isCommand(text));

function troubleOf(thrown: unknown, { text }: Send): string {
  if (thrown instanceof ConnectionLost) {
    return isCommand(text)
      ? 'The connection was lost: whether this was done is not known.'
      : 'Nobody answers. Send it again when the gateway is back; it is answered once, even if it had arrived.';
  }
  return sentenceOf(thrown);
}

import { computed, signal } from '@preact/signals';
import { keepItem } from '../data/keep-item.ts';
import { askMessages, askSessions, type KeptSession, pathOf } from '../data/kept-session.ts';
import { clampText, plainLine } from '../data/plain-text.ts';
import { postJson, type Source } from '../data/source.ts';

/** A conversation this browser knows. What was said in it is the gateway's to keep. */
interface Known {
  readonly id: string;
  readonly title: string | null;
  /** When something last happened in it that was looked at here. */
  readonly seen: string | null;
}

/** A conversation as the gateway has it. */
interface Kept {
  readonly newest: KeptSession;
  readonly title: string | null;
  readonly lastAt: string;
}

/** A line of the list. */
export interface Listed {
  readonly id: string;
  readonly title: string;
  readonly lastAt: string | null;
  readonly unread: boolean;
  /** In the list of this browser, or only in the gateway. */
  readonly known: boolean;
  /** The session that a new title would be given to. */
  readonly newest: KeptSession | null;
}

const LISTED = 200;
const TITLES_AT_ONCE = 20;
const TITLE_CHARS = 60;
const EMPTY = 'Empty conversation';

/** Which conversations there are: in this browser's list, and in the gateway. */
export class ConversationStore {
  readonly open = signal('');
  readonly #known = signal<readonly Known[]>([]);
  readonly #kept = signal<ReadonlyMap<string, Kept>>(new Map());
  readonly #words = signal<ReadonlyMap<string, string>>(new Map());
  readonly #source: Source;
  readonly #shelf: Storage;

  readonly listed = computed(() => {
    const known = this.#known.value.map((entry) => this.#line(entry.id, entry));
    const others = [...this.#kept.value.keys()].filter((id) => !this.#known.value.some((entry) => entry.id === id));
    const lines = [...known, ...others.map((id) => this.#line(id, null))];
    // One without any message yet was made just now.
    return lines.sort((a, b) => (b.lastAt ?? '9').localeCompare(a.lastAt ?? '9'));
  });

  constructor(source: Source, shelf: Storage) {
    this.#source = source;
    this.#shelf = shelf;
    this.read();
    if (this.open.value === '') this.begin();
  }

  /** The list as it was left, here or in another tab. */
  read(): void {
    const kept = parseShelf(this.#shelf.getItem(this.#name));
    this.#known.value = kept.conversations;
    if (this.open.value === '') this.open.value = kept.open;
  }

  begin(): void {
    const unused = this.#known.value.find(({ id, title }) => title === null && !this.#kept.value.has(id));
    this.choose(unused?.id ?? newId());
  }

  choose(id: string): void {
    this.open.value = id;
    this.#change(id, {});
    this.look();
  }

  /** What has happened so far in the open conversation is looked at now. */
  look(): void {
    const id = this.open.value;
    const lastAt = this.#kept.value.get(id)?.lastAt;
    const before = this.#known.value.find((entry) => entry.id === id)?.seen ?? '';
    if (lastAt !== undefined && lastAt > before) this.#change(id, { seen: lastAt });
  }

  /** Takes it off this browser's list; the gateway keeps it. */
  remove(id: string): void {
    this.#known.value = this.#known.value.filter((entry) => entry.id !== id);
    if (this.open.value === id) {
      this.open.value = this.#known.value[0]?.id ?? '';
      if (this.open.value === '') this.begin();
    }
    this.#write();
  }

  async rename(id: string, title: string): Promise<void> {
    const newest = this.#kept.value.get(id)?.newest;
    if (newest === undefined) return;
    const text = title.trim();
    const path = `${pathOf(newest.id)}/title`;
    const session = await postJson<KeptSession>(this.#source, path, { title: text === '' ? null : text });
    this.take([session]);
    this.#change(id, { title: session.title ?? this.#words.value.get(id) ?? null });
  }

  /** The first words are the title as long as there is no better one. */
  said(id: string, text: string): void {
    const entry = this.#known.value.find((known) => known.id === id);
    if (entry === undefined || entry.title === null) this.#change(id, { title: titleOf(text) });
  }

  async refresh(): Promise<void> {
    const { data } = await askSessions(this.#source, { platform: 'web', limit: LISTED });
    this.take(data);
    await this.#readFirstWords();
  }

  /** Sessions as the gateway has them now. */
  take(sessions: readonly KeptSession[]): void {
    const kept = new Map(this.#kept.value);
    for (const session of sessions.toSorted((a, b) => a.started_at.localeCompare(b.started_at))) {
      const id = conversationOf(session.key);
      if (id === null) continue;
      const before = kept.get(id);
      const newest = before !== undefined && before.newest.started_at > session.started_at ? before.newest : session;
      const lastAt = [before?.lastAt ?? '', session.last_activity_at].sort().at(-1) ?? '';
      kept.set(id, { newest, lastAt, title: newest.title ?? before?.title ?? session.title });
    }
    this.#kept.value = kept;
    this.look();
  }

  #line(id: string, known: Known | null): Listed {
    const kept = this.#kept.value.get(id);
    const title = kept?.title ?? known?.title ?? this.#words.value.get(id) ?? null;
    const lastAt = kept?.lastAt ?? null;
    const unread = known !== null && id !== this.open.value && lastAt !== null && lastAt > (known.seen ?? '');
    const name = title ?? (kept === undefined ? EMPTY : 'Untitled');
    return { id, title: plainLine(name), lastAt, unread, known: known !== null, newest: kept?.newest ?? null };
  }

  async #readFirstWords(): Promise<void> {
    const nameless = this.listed.value.flatMap(({ id, newest }) => {
      if (newest === null || newest.message_count === 0 || this.#words.value.has(id)) return [];
      const title = this.#kept.value.get(id)?.title ?? this.#known.value.find((known) => known.id === id)?.title;
      return title == null ? [{ id, sessionId: newest.id }] : [];
    });
    for (const { id, sessionId } of nameless.slice(0, TITLES_AT_ONCE)) {
      const rows = await askMessages(this.#source, sessionId, { cursor: null, limit: 5 });
      const first = rows.find(({ role }) => role === 'user') ?? rows.find(({ role }) => role === 'assistant');
      const words = titleOf(first?.text ?? 'Untitled');
      this.#words.value = new Map(this.#words.value).set(id, words);
      if (this.#known.value.some((known) => known.id === id)) this.#change(id, { title: words });
    }
  }

  #change(id: string, change: Partial<Known>): void {
    const before = this.#known.value.find((entry) => entry.id === id);
    const entry = { id, title: null, seen: null, ...before, ...change };
    this.#known.value = [entry, ...this.#known.value.filter((known) => known.id !== id)];
    this.#write();
  }

  #write(): void {
    // Where this fails, the gateway's own list still finds every conversation.
    keepItem(this.#shelf, this.#name, JSON.stringify({ open: this.open.value, conversations: this.#known.value }));
  }

  get #name(): string {
    return `moirai-chat:${this.#source.id}`;
  }
}

/** A name that nothing else has. Pages that did not come over https have no `randomUUID`. */
export function newId(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const KEY = 'agent:main:web:dm:';

export function keyOf(conversation: string): string {
  return `${KEY}${conversation.replaceAll('%', '%25').replaceAll(':', '%3A')}`;
}

/**
 * The conversation of a key; null for one that is not of this page, or was over after one message. An API key has a
 * namespace of its own, which stands before the name: `agent:main:web:dm:shop:harbour:`.
 */
export function conversationOf(key: string): string | null {
  if (!key.startsWith(KEY)) return null;
  const [first = '', second] = key.slice(KEY.length).split(':');
  const id = (second ?? first).replaceAll('%3A', ':').replaceAll('%25', '%');
  return id.startsWith('once-') ? null : id;
}

function titleOf(text: string): string {
  const line = plainLine(text);
  const { text: beginning, cut } = clampText(line, TITLE_CHARS);
  return cut ? `${beginning.trimEnd()}…` : beginning;
}

/** What is kept in the browser; anything that this page did not write counts as nothing. */
function parseShelf(text: string | null): { open: string; conversations: Known[] } {
  try {
    const { open, conversations } = JSON.parse(text ?? '') as { open: string; conversations: Known[] };
    const known = conversations.map(({ id, title, seen }) => ({ id: `${id}`, title: own(title), seen: own(seen) }));
    return { open: own(open) ?? '', conversations: known };
  } catch {
    return { open: '', conversations: [] };
  }
}

const own = (value: unknown): string | null => (typeof value === 'string' ? value : null);

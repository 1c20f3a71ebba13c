import { expect, test } from 'vitest';
import type { KeptSession } from '../data/kept-session.ts';
import type { Source } from '../data/source.ts';
import { ConversationStore, conversationOf, keyOf } from './conversation-store.ts';

/** As much of a browser's storage as is used. */
class Shelf implements Storage {
  readonly #kept = new Map<string, string>();
  get length(): number {
    return this.#kept.size;
  }
  clear(): void {
    this.#kept.clear();
  }
  key(): string | null {
    return null;
  }
  getItem(name: string): string | null {
    return this.#kept.get(name) ?? null;
  }
  setItem(name: string, value: string): void {
    this.#kept.set(name, value);
  }
  removeItem(name: string): void {
    this.#kept.delete(name);
  }
}

const NAME = 'moirai-chat:here';

function source(answers: Record<string, unknown> = {}): Source {
  const fetch = async (path: string): Promise<Response> => Response.json(answers[path] ?? { data: [], next: null });
  return { id: 'here', name: 'here', base: '', fetch };
}

function session(conversation: string, minute: number, changes: Partial<KeptSession> = {}): KeptSession {
  const at = `2026-08-01T12:${String(minute).padStart(2, '0')}:00.000Z`;
  const times = { started_at: at, last_activity_at: at, ended_at: null };
  const facts = { title: null, state: 'open', end_reason: null, end_cause: null, lineage: null, message_count: 1 };
  return { id: `s${minute}`, key: keyOf(conversation), ...times, ...facts, ...changes } as KeptSession;
}

const titles = (conversations: ConversationStore): string[] => conversations.listed.value.map(({ title }) => title);

test('a browser that knows nothing begins a conversation', () => {
  const shelf = new Shelf();
  const conversations = new ConversationStore(source(), shelf);
  expect(titles(conversations)).toEqual(['Empty conversation']);
  expect(JSON.parse(shelf.getItem(NAME) ?? '')).toEqual({
    open: conversations.open.value,
    conversations: [{ id: conversations.open.value, title: null, seen: null }],
  });
  conversations.begin();
  expect(conversations.listed.value).toHaveLength(1);
});

test('what others left on the shelf does no harm', () => {
  for (const text of ['', '{', 'null', '[]', '{"open":1,"conversations":[null,{"id":3},{"id":"a","title":{}}]}']) {
    const shelf = new Shelf();
    shelf.setItem(NAME, text);
    expect(new ConversationStore(source(), shelf).open.value).not.toBe('');
  }
});

test('the title is the newest one given, or else the first words', async () => {
  const rows = {
    data: [
      { role: 'setting', text: '' },
      { role: 'user', text: `what\nwas ${'said '.repeat(30)}` },
    ],
    next: null,
  };
  const list = {
    data: [session('a', 3), session('a', 1, { title: 'Old' }), session('b', 2, { title: 'B\u202E' }), session('c', 4)],
  };
  const conversations = new ConversationStore(
    source({ '/v1/sessions?platform=web&limit=200': list, '/v1/sessions/s4/messages?limit=5': rows }),
    new Shelf(),
  );
  await conversations.refresh();
  const [own, ...others] = conversations.listed.value;
  expect(own?.title).toBe('Empty conversation');
  expect(others.map(({ title, known }) => [title, known])).toEqual([
    [`what was ${'said '.repeat(10)}s…`, false],
    ['Old', false],
    ['B⟨202E⟩', false],
  ]);
});

test('what happened elsewhere is unread until it is looked at', () => {
  const conversations = new ConversationStore(source(), new Shelf());
  conversations.choose('a');
  conversations.choose('b');
  conversations.take([session('a', 1), session('b', 2)]);
  const unread = (): string[] => conversations.listed.value.filter((line) => line.unread).map(({ id }) => id);
  expect(unread()).toEqual(['a']);
  conversations.choose('a');
  expect(unread()).toEqual([]);
  conversations.take([session('b', 3)]);
  expect(unread()).toEqual(['b']);
});

test('one that is taken off the list is still in the gateway', () => {
  const conversations = new ConversationStore(source(), new Shelf());
  conversations.choose('a');
  conversations.take([session('a', 1, { title: 'A' })]);
  conversations.remove('a');
  expect(conversations.open.value).not.toBe('a');
  expect(conversations.listed.value.find(({ id }) => id === 'a')).toMatchObject({ title: 'A', known: false });
});

test('keys and conversations turn into one another', () => {
  for (const id of ['a', 'a:b%c', 'ä b']) expect(conversationOf(keyOf(id))).toBe(id);
  expect(keyOf('a:b%')).toBe('agent:main:web:dm:a%3Ab%25');
  expect(conversationOf('agent:main:web:dm:shop:a%3Ab:')).toBe('a:b');
  expect(conversationOf('agent:main:telegram:dm:1')).toBeNull();
  expect(conversationOf('agent:main:web:dm:once-x')).toBeNull();
});

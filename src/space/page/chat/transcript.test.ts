import { expect, test } from 'vitest';
import type { KeptSession, Message } from '../data/kept-session.ts';
import { endWords, type Item, itemsOf, type Note, noteOf, type Part } from './transcript.ts';

const AT = '2026-08-01T12:00:00.000Z';
const NONE: ReadonlySet<string> = new Set();

function session(id: string, changes: Partial<KeptSession> = {}): KeptSession {
  const times = { started_at: AT, last_activity_at: AT, ended_at: null };
  const facts = { title: null, state: 'open', end_reason: null, end_cause: null, lineage: null, message_count: 0 };
  return { id, key: 'k', ...times, ...facts, ...changes } as KeptSession;
}

function part(id: string, rows: Partial<Message>[], changes: Partial<KeptSession> = {}): Part {
  const whole = rows.map((row, i) => ({
    role: 'user',
    text: '',
    at: AT,
    turn_id: null,
    position: i + 1,
    data: null,
    ...row,
  }));
  return { session: session(id, changes), rows: whole, before: 0 };
}

function note(text: string, place: Note['place'], behind: string | null = null): Note {
  return { key: text, command: null, text, tone: 'plain', retry: false, place, behind };
}

function brief(items: readonly Item[]): string[] {
  return items.map((item) => {
    if (item.type === 'message') return `${item.from}: ${item.text}`;
    if (item.type === 'tools') return item.tools.map(({ name, ok }) => `${name} ${ok}`).join(', ');
    if (item.type === 'end') return `end ${item.session.id}${item.last ? ' last' : ''}`;
    return item.type === 'note' ? `note ${item.note.text}` : `remark ${item.text}`;
  });
}

test('sessions follow one another, each with its end', () => {
  const ended = { state: 'ended', end_reason: 'user_reset' };
  const parts = [part('a', [{ text: 'one' }], ended), part('b', [{ role: 'assistant', text: 'two' }], ended)];
  expect(brief(itemsOf(parts, [], NONE))).toEqual(['user: one', 'end a', 'agent: two', 'end b last']);
  expect(brief(itemsOf([parts[0]!, part('c', [])], [], NONE))).toEqual(['user: one', 'end a']);
});

test('notes stand where they were made', () => {
  const parts = [part('a', [{ text: 'one' }, { text: 'two' }], { state: 'ended' }), part('b', [{ text: 'three' }])];
  const notes = [
    note('first', null),
    note('between', { sessionId: 'a', position: 1 }),
    note('at the end', { sessionId: 'a', position: 2 }),
    note('before', { sessionId: 'b', position: 0 }),
    note('elsewhere', { sessionId: 'b', position: 0 }, 'a message'),
  ];
  expect(brief(itemsOf(parts, notes, NONE))).toEqual([
    ...[
      'note first',
      'user: one',
      'note between',
      'user: two',
      'note at the end',
      'end a',
      'note before',
      'user: three',
    ],
  ]);
});

test('what was taken back is gone, what is told live is left out, and what is for the agent alone is not shown', () => {
  const rows: Partial<Message>[] = [
    { role: 'setting', data: { memory: 'secret' } },
    { role: 'setting', data: { model: 'large' } },
    { text: 'one', turn_id: 't1' },
    { role: 'undo', data: { from: 3 } },
    { text: 'two', turn_id: 't2' },
    { role: 'assistant', text: 'hm', turn_id: 't2', data: { toolCalls: [] } },
    { role: 'tool', text: 'x', turn_id: 't2', data: { name: 'look', ok: true } },
    { role: 'tool', text: 'x', turn_id: 't2', data: { name: 'run', ok: false } },
    { role: 'note', text: 'for the agent', turn_id: 't2' },
    { role: 'note', text: 'for all' },
    { role: 'summary', text: 'long' },
    { role: 'something new', text: 'x' },
    { role: 'assistant', text: '  ' },
  ];
  const shown = brief(itemsOf([part('a', rows)], [], NONE));
  expect(shown).toEqual([
    ...['remark Model: large', 'remark The last messages were taken back.', 'user: two', 'agent: hm'],
    ...['look true, run false', 'remark for all', 'remark What was said before was summarised, to make room.'],
  ]);
  expect(brief(itemsOf([part('a', rows)], [], new Set(['t2'])))).not.toContain('agent: hm');
  expect(brief(itemsOf([part('a', rows)], [], new Set(['t2'])))).toContain('user: two');
});

test('a question without a reply says so, unless a note tells why', () => {
  const rows = [
    { text: 'one', turn_id: 't1' },
    { text: 'two', turn_id: 't2' },
    { text: 'more', turn_id: 't2' },
  ];
  const asked = [part('a', rows)];
  expect(brief(itemsOf(asked, [], NONE))).toEqual([
    ...['user: one', 'remark There was no reply.', 'user: two', 'user: more'],
  ]);
  const shown = brief(itemsOf(asked, [note('Stopped.', { sessionId: 'a', position: 1 })], NONE));
  expect(shown).toEqual(['user: one', 'note Stopped.', 'user: two', 'user: more']);
});

test('the end of a session is told in words', () => {
  expect(endWords(session('a', { end_reason: 'user_reset' }))).toBe('/new');
  expect(endWords(session('a', { end_reason: 'auto_reset', end_cause: 'daily' }))).toBe('the daily reset');
  expect(endWords(session('a', { end_reason: 'parent_ended' }))).toBe('parent ended');
});

test('what came of a turn is told once', () => {
  const done = { session_id: 's', turn_id: 't', reply: 'hi', outcome: 'done' } as const;
  expect(noteOf(done)).toBeNull();
  expect(noteOf({ ...done, turn_id: null })).toMatchObject({ text: 'hi', tone: 'plain' });
  expect(noteOf({ ...done, outcome: 'interrupted', reply: 'Stopped.' })).toMatchObject({
    text: 'Stopped.',
    retry: false,
  });
  const error = { code: 'x', message: 'It broke. Mend it.', hint: 'Mend it.' };
  expect(noteOf({ ...done, outcome: 'failed', error })).toEqual({
    text: 'It broke. Mend it.',
    tone: 'error',
    retry: true,
  });
});

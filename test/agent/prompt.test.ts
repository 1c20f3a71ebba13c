import { expect, test } from 'vitest';
import { renderPrompt } from '../../src/agent/prompt.ts';
import { systemPrompt } from '../../src/agent/system-prompt.ts';
import { type TranscriptRow, userRow } from '../../src/agent/transcript.ts';

let position = 0;

function row(role: string, text: string, data: Record<string, unknown> | null = null, sessionId = 's'): TranscriptRow {
  position += 1;
  return { sessionId, position, role, text, turnId: null, data };
}

function session(...rows: TranscriptRow[]): TranscriptRow[] {
  position = 0;
  return rows.map((entry, i) => ({ ...entry, position: i + 1 }));
}

const user = (content: string) => ({ role: 'user', content });
const assistant = (content: string) => ({ role: 'assistant', content });

test('notes go with the words before them, settings are not said', () => {
  const rows = session(
    row('user', 'hello', { note: 'first visit' }),
    row('setting', 'model'),
    row('assistant', 'hi'),
    row('note', 'the person left'),
    row('user', 'back'),
    row('note', 'from another device'),
  );
  expect(renderPrompt(rows).messages).toEqual([
    user('[first visit]\n\nhello'),
    assistant('hi\n\n[the person left]'),
    user('back\n\n[from another device]'),
  ]);
});

test('notes from before anybody spoke go with the first words, however much is known already', () => {
  const rows = session(
    row('note', 'a job sent: plums'),
    row('setting', ''),
    row('note', 'and pears'),
    row('user', 'how many?'),
    row('assistant', 'two'),
    row('user', 'thanks'),
  );
  const messages = [user('[a job sent: plums]\n\n[and pears]\n\nhow many?'), assistant('two'), user('thanks')];
  expect(renderPrompt(rows).messages).toEqual(messages);
  for (let known = 1; known < rows.length; known++) {
    const { settled } = renderPrompt(rows.slice(0, known));
    expect(renderPrompt(rows, settled).messages).toEqual(messages);
  }
});

test('what was undone is left out', () => {
  const rows = session(
    row('user', 'one'),
    row('assistant', '1'),
    row('user', 'two'),
    row('assistant', '2'),
    row('undo', '', { from: 3 }),
    row('user', 'three'),
  );
  expect(renderPrompt(rows).messages).toEqual([user('one'), assistant('1'), user('three')]);
});

test('a summary stands for everything up to its position, earlier sessions and summaries included', () => {
  const before = [row('user', 'old', null, 'parent'), row('assistant', 'older', null, 'parent')];
  const rows = session(
    row('user', 'one'),
    row('summary', 'first summary', { upTo: 1 }),
    row('assistant', '1'),
    row('user', 'two'),
    row('assistant', '2'),
    row('summary', 'they counted', { upTo: 3 }),
    row('user', 'three'),
  );
  const { messages } = renderPrompt([...before, ...rows]);
  expect(messages).toEqual([
    user(expect.stringContaining('they counted') as unknown as string),
    user('two'),
    assistant('2'),
    user('three'),
  ]);
});

test('the system prompt names Moirai, says nothing about today, and can say when the session started', () => {
  expect(systemPrompt({ systemPrompt: null })).toContain('Moirai');
  expect(systemPrompt({ systemPrompt: 'Be brief.' })).toBe('Be brief.');
  expect(systemPrompt({ systemPrompt: 'Be brief.' }, Date.UTC(2026, 10, 15, 23))).toContain('2026-11-15');
});

test('a message without text is still a message', () => {
  expect(renderPrompt(session(row('user', userRow(null, '').text))).messages).toEqual([user('[no text]')]);
});

import { expect, test } from 'vitest';
import type { ModelAnswer } from './model-api.ts';
import { ChatCompletionReader } from './openai-answer.ts';

function read(...deltas: object[]): ModelAnswer & { text: string; thoughts: string } {
  let [text, thoughts] = ['', ''];
  const reader = new ChatCompletionReader({
    onText: (piece) => {
      text += piece;
    },
    onReasoning: (piece) => {
      thoughts += piece;
    },
    onActivity: () => undefined,
  });
  for (const delta of deltas) reader.take(JSON.stringify({ choices: [{ index: 0, delta }] }));
  reader.take(JSON.stringify({ choices: [{ delta: {}, finish_reason: 'stop' }] }));
  reader.take('[DONE]');
  return { ...reader.finished(), text, thoughts };
}

const call = (index: number | undefined, id: string | null, name: string | null, json: string): object => ({
  tool_calls: [{ index, id, function: { name, arguments: json } }],
});

test('a call that comes in pieces is one call', () => {
  const { calls } = read(call(0, 'a', 'tell', ''), call(0, null, null, '{"x"'), call(0, null, null, ':1}'));
  expect(calls).toEqual([{ id: 'a', name: 'tell', args: { x: 1 } }]);
});

test('calls that come in turns are told apart by their number', () => {
  const { calls } = read(
    call(0, 'a', 'one', '{'),
    call(1, 'b', 'two', '{'),
    call(0, null, null, '}'),
    call(1, null, null, '}'),
  );
  expect(calls.map(({ id, name, args }) => [id, name, args])).toEqual([
    ['a', 'one', {}],
    ['b', 'two', {}],
  ]);
});

test.each([
  ['one number', 0],
  ['no number', undefined],
])('calls of a server that gives them %s are told apart by their id', (_, index) => {
  const { calls } = read(call(index, 'a', 'one', '{}'), call(index, 'b', 'two', '{}'));
  expect(calls.map(({ id }) => id)).toEqual(['a', 'b']);
});

test('calls without an id are told apart where the next one begins, and each gets an id of its own', () => {
  const { calls } = read(call(0, null, 'one', '{"x":1}'), call(0, null, 'one', '{"x":2}'));
  expect(calls.map(({ args }) => args)).toEqual([{ x: 1 }, { x: 2 }]);
  expect(new Set(calls.map(({ id }) => id)).size).toBe(2);
});

test('a server that repeats the name in every piece still makes one call', () => {
  const { calls } = read(call(0, 'a', 'tell', '{"x":'), call(0, 'a', 'tell', '1}'));
  expect(calls).toEqual([{ id: 'a', name: 'tell', args: { x: 1 } }]);
});

test('arguments that are missing are empty, and those that are no object are passed on as unreadable', () => {
  const { calls } = read(call(0, 'a', 'one', ''), call(1, 'b', 'two', '[1]'), call(2, 'c', 'three', '{"x'));
  expect(calls.map(({ args }) => args)).toEqual([{}, { unreadable: [1] }, { unreadable: '{"x' }]);
});

test('a call that never gets a name breaks the answer', () => {
  expect(() => read(call(0, 'a', null, '{}'))).toThrow('a tool call has no name');
});

test('thoughts are not said, whichever field or part they come in', () => {
  const parts = [
    { type: 'thinking', thinking: [{ type: 'text', text: 'c' }] },
    { type: 'text', text: 'yes' },
  ];
  const { text, thoughts } = read({ reasoning_content: 'a' }, { reasoning: 'b' }, { content: parts });
  expect([text, thoughts]).toEqual(['yes', 'abc']);
});

test('a refusal is what the model said', () => {
  expect(read({ content: null, refusal: 'I will not.' }).text).toBe('I will not.');
});

test('the tokens are those of the last chunk that counts them', () => {
  const reader = new ChatCompletionReader({ onText: () => 0, onReasoning: () => 0, onActivity: () => 0 });
  reader.take('{"choices":[{"finish_reason":"stop"}]}');
  reader.take('{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2}}');
  expect(reader.finished()).toMatchObject({ usage: { input: 7, output: 2 }, finishReason: 'stop' });
});

test('an error is thrown as the server tells it, an object or a text', () => {
  const reader = new ChatCompletionReader({ onText: () => 0, onReasoning: () => 0, onActivity: () => 0 });
  const thrown = (data: string): unknown => {
    try {
      reader.take(data);
    } catch (error) {
      return error;
    }
  };
  expect(thrown('{"error":{"message":"busy"}}')).toEqual({ error: { message: 'busy' } });
  expect(thrown('{"error":"busy"}')).toEqual({ error: 'busy' });
});

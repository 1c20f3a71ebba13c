import { describe, expect, test } from 'vitest';
import { LineEditor, type Move } from './line-editor.ts';

type Step = Move | `delete ${Move}` | 'up' | 'down';

/** The text after these steps, with a bar where the cursor is. */
function edited(text: string, ...steps: (Step | { type: string })[]): string {
  const editor = new LineEditor();
  editor.set(text);
  for (const step of steps) {
    if (typeof step === 'object') editor.insert(step.type);
    else if (step === 'up' || step === 'down') editor[step]();
    else if (step.startsWith('delete ')) editor.delete(step.slice('delete '.length) as Move);
    else editor.move(step as Move);
  }
  return `${editor.text.slice(0, editor.cursor)}|${editor.text.slice(editor.cursor)}`;
}

describe('a line that is typed', () => {
  test.each([
    ['abc', ['left', 'left'], 'a|bc'],
    ['abc', ['home', 'right'], 'a|bc'],
    ['abc', ['home', 'left'], '|abc'],
    ['abc', ['right'], 'abc|'],
    ['abc', ['left', 'delete left'], 'a|c'],
    ['abc', ['home', 'delete left'], '|abc'],
    ['abc', ['home', 'delete right'], '|bc'],
    ['one two', ['delete wordLeft'], 'one |'],
    ['one two  ', ['delete wordLeft'], 'one |'],
    ['one two', ['wordLeft', 'wordLeft'], '|one two'],
    ['one two', ['home', 'wordRight'], 'one| two'],
    ['one two', ['wordLeft', 'delete home'], '|two'],
    ['one two', ['wordLeft', 'delete end'], 'one |'],
  ] as const)('%j after %j', (text, steps, expected) => {
    expect(edited(text, ...steps)).toBe(expected);
  });

  test('has characters as people count them', () => {
    expect(edited('a👩‍👩‍👧b', 'left', 'left')).toBe('a|👩‍👩‍👧b');
    expect(edited('a👩‍👩‍👧', 'delete left')).toBe('a|');
    expect(edited('e\u0301', 'home', 'delete right')).toBe('|');
  });

  test('takes line breaks of every kind, and no control characters', () => {
    expect(edited('', { type: 'a\r\nb\rc\nd\u001b[31m\te\u0007' })).toBe('a\nb\nc\nd[31m\te|');
  });
});

describe('several lines', () => {
  test.each([
    ['one\ntwo', ['up'], 'one|\ntwo'],
    ['one\nto', ['up'], 'on|e\nto'],
    ['a\nlong', ['up'], 'a|\nlong'],
    ['\nx', ['up'], '|\nx'],
    ['one\ntwo', ['up', 'home', 'down'], 'one\n|two'],
    ['long\na\nb', ['up', 'up', 'end', 'down'], 'long\na|\nb'],
    ['one\ntwo', ['home', 'delete left'], 'one|two'],
    ['one\ntwo', ['home', 'left'], 'one|\ntwo'],
    ['one\ntwo', ['up', 'end', 'right'], 'one\n|two'],
    ['one\ntwo', ['up', 'delete end'], 'one|\ntwo'],
    ['one\ntwo', ['delete home'], 'one\n|'],
  ] as const)('%j after %j', (text, steps, expected) => {
    expect(edited(text, ...steps)).toBe(expected);
  });

  test('have a first and a last one', () => {
    const editor = new LineEditor();
    editor.set('one\ntwo');
    expect([editor.down(), editor.up(), editor.up(), editor.down()]).toEqual([false, true, false, true]);
  });
});

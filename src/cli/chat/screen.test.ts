import { describe, expect, test } from 'vitest';

import { layOut, Screen } from './screen.ts';

describe('what is typed is laid out', () => {
  const layout = (text: string, cursor = text.length, columns = 10, height = 5) =>
    layOut({ prompt: '> ', text, cursor }, columns, height);

  test('behind its prompt', () => {
    expect(layout('abc')).toEqual({ rows: ['> abc'], row: 0, column: 5 });
    expect(layout('abc', 1)).toEqual({ rows: ['> abc'], row: 0, column: 3 });
  });

  test('in rows of the terminal, also with wide characters', () => {
    expect(layout('abcdefghij')).toEqual({ rows: ['> abcdefgh', 'ij'], row: 1, column: 2 });
    expect(layout('abcdefg日')).toEqual({ rows: ['> abcdefg', '日'], row: 1, column: 2 });
  });

  test('with a place for the cursor behind a full row', () => {
    expect(layout('abcdefgh')).toEqual({ rows: ['> abcdefgh', ''], row: 1, column: 0 });
    expect(layout('abcdefghi', 8)).toEqual({ rows: ['> abcdefgh', 'i'], row: 1, column: 0 });
  });

  test('with its line breaks', () => {
    expect(layout('a\n\tb', 2)).toEqual({ rows: ['> a', '      b'], row: 1, column: 2 });
  });

  test('around the cursor, when it is higher than the terminal', () => {
    expect(layout('1\n2\n3\n4\n5', 0, 10, 3)).toEqual({ rows: ['> 1', '  2', '  3'], row: 0, column: 2 });
    expect(layout('1\n2\n3\n4\n5', 9, 10, 3)).toEqual({ rows: ['  3', '  4', '  5'], row: 2, column: 3 });
  });
});

/** As much of a terminal as is needed: rows of text, a cursor, and the few sequences a screen uses. */
class Paper {
  readonly columns = 20;
  readonly rows = 10;
  #lines: string[] = [''];
  #row = 0;
  #column = 0;

  write(text: string): void {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: this is what a terminal reads
    for (const [token, count] of text.matchAll(/\u001b\[(\d*)[A-Z]|[\s\S]/g)) this.#obey(token, Number(count || 1));
  }

  get shown(): string {
    return this.#lines.join('\n').replace(/\n+$/, '\n');
  }

  #obey(token: string, count: number): void {
    if (token === '\n') {
      this.#row++;
      this.#column = 0;
      this.#lines[this.#row] ??= '';
    } else if (token === '\r') this.#column = 0;
    else if (token.endsWith('A') && token.length > 1) this.#row -= count;
    else if (token.endsWith('C') && token.length > 1) this.#column += count;
    else if (token.endsWith('J') && token.length > 1) {
      this.#lines = [...this.#lines.slice(0, this.#row), this.#line().slice(0, this.#column)];
    } else {
      this.#lines[this.#row] = this.#line().padEnd(this.#column).slice(0, this.#column) + token;
      this.#column++;
    }
  }

  #line(): string {
    return this.#lines[this.#row] ?? '';
  }
}

describe('a screen', () => {
  const prompt = (text: string) => ({ prompt: '> ', text, cursor: text.length });

  test('shows text as it comes while nothing is typed', () => {
    const paper = new Paper();
    const screen = new Screen(paper);
    screen.say('one ');
    expect(paper.shown).toBe('one ');
    screen.say('two');
    screen.line('three');
    expect(paper.shown).toBe('one two\nthree\n');
  });

  test('shows text by whole lines above what is typed, which may have several rows', () => {
    const paper = new Paper();
    const screen = new Screen(paper);
    screen.show(prompt('a message of more than one row'));
    screen.say('one ');
    expect(paper.shown).toBe('> a message of more \nthan one row');
    screen.say('two\nthr');
    expect(paper.shown).toBe('one two\n> a message of more \nthan one row');
    screen.show(prompt('short'));
    expect(paper.shown).toBe('one two\n> short');
    screen.show(null);
    screen.say('ee\n');
    expect(paper.shown).toBe('one two\nthree\n');
  });

  test('leaves what was typed where it stands once it is said', () => {
    const paper = new Paper();
    const screen = new Screen(paper);
    screen.show(prompt('hello'));
    screen.commit();
    screen.say('hi');
    screen.show(prompt(''));
    expect(paper.shown).toBe('> hello\nhi\n> ');
  });
});

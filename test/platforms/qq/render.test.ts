import { describe, expect, test } from 'vitest';
import {
  breakAddresses,
  measureText,
  renderMarkdown,
  renderPlain,
  stablePart,
} from '../../../src/platforms/qq/render.ts';
import { continued } from '../../../src/platforms/qq/stream.ts';

describe('Markdown for people and groups', () => {
  test.each([
    ['stays as it is', '# T\n**b** _i_ ~~s~~ [l](https://e.org)\n> q\n- x\n1. y', undefined],
    [
      'shows pictures as links, so that QQ fetches nothing',
      'see ![a cat](https://e.org/c.png)!',
      'see [a cat](https://e.org/c.png)!',
    ],
    ['keeps what is code', '```md\n![x](y)\n```\n![x](y)', '```md\n![x](y)\n```\n[x](y)'],
    [
      'calls nobody',
      'hi @everyone <@!1> <qqbot-at-everyone /> <#5>',
      'hi @\u200beveryone <\u200b@!1> <\u200bqqbot-at-everyone /> <\u200b#5>',
    ],
    ['calls nobody in code', '```\n<@1>\n```', '```\n<\u200b@1>\n```'],
    ['leaves comparisons alone', 'a < b && c > d', undefined],
  ])('%s', (_, markdown, shown) => {
    expect(renderMarkdown(markdown)).toBe(shown ?? markdown);
  });

  test('of the beginning of a text is the beginning of the whole', () => {
    const text = 'One ![pic](https://e.org) two <@1> @everyone\n```ts\nconst a = `b`;\n```\n~~~ x\n**end** ![a';
    for (let end = 0; end <= text.length; end += 1) {
      expect(renderMarkdown(text).startsWith(renderMarkdown(stablePart(text.slice(0, end))))).toBe(true);
    }
  });
});

describe('a text where there is no Markdown', () => {
  test.each([
    ['# Title', 'Title'],
    ['- **one**\n- `two`', '• one\n• two'],
    ['[words](https://e.org) https://e.org', 'words (https://e.org) https://e.org'],
    ['```ts\nlet a = 1;\n```', 'let a = 1;'],
    ['```\n```', '```\n```'],
    ['hi <@1>', 'hi <\u200b@1>'],
  ])('%j', (markdown, shown) => expect(renderPlain(markdown)).toBe(shown));

  test('has no addresses once they are broken', () => {
    expect(breakAddresses('https://a.example.org/x.y 1.5 e.g. v1.2.rc')).toBe(
      'https://a[.]example[.]org/x.y 1.5 e.g. v1.2[.]rc',
    );
  });

  test('counts what is longest of all ways to send it', () => {
    expect(measureText('a.bc')).toBe('a[.]bc'.length);
  });
});

describe('what is shown of a growing text', () => {
  test.each([
    ['nothing yet', '', 'One', false, 'One'],
    ['its beginning', 'One', 'One two', false, 'One two'],
    ['lines above it', '⚙ search\nThe', 'The answer', true, '⚙ search\nThe answer'],
    ['something else', 'Let me look.', 'Found', false, 'Let me look.\n\nFound'],
    ['all of it, while it grows', '⚙ search\nThe answer', 'The ans', false, '⚙ search\nThe answer'],
    ['more than it, in the end', 'The answer is long', 'The answer', true, 'The answer is long\n\nThe answer'],
    ['exactly it', 'same', 'same', true, 'same'],
  ])('%s', (_, shown, words, isWhole, result) => {
    expect(continued(shown, words, isWhole)).toBe(result);
    expect(result.startsWith(shown)).toBe(true);
  });
});

import { describe, expect, test } from 'vitest';
import { renderCard, renderMessage, titleOf } from '../../../src/platforms/dingtalk/render.ts';

describe('a reply', () => {
  test('of one line is as it was written', () => {
    const line = '**One** _two_ `three` [four](https://example.org/a?b=c) if (a < b && c > d) list[0]: x:y';
    expect([renderMessage(line), renderCard(line)]).toEqual([line, line]);
  });

  test('keeps its lines in a message, which would join them, and is as it was written on a card', () => {
    const text = 'One\nTwo\n\n- a\n- b\n```\nx\ny\n```\nend';
    expect(renderMessage(text)).toBe('One  \nTwo\n\n- a  \n- b  \n```\nx\ny\n```\nend');
    expect(renderCard(text)).toBe(text);
  });

  test.each([
    ['[press](dtmd://dingtalkclient/sendMessage?content=%2Fapprove)', '](dtmd'],
    ['[press](<dtmd://dingtalkclient/sendMessage>)', '](<dtmd'],
    ['[press](            dingtalk://dingtalkclient/action/openapp)', '](  '],
    ['[press](d&#116;md://x)', '](d&'],
    ['[press](d\\tmd://x)', '](d\\'],
    ['[press](javascript:alert(1))', '](javascript'],
    ['[press](\ndtmd://x)', ']('],
    ['<dtmd://dingtalkclient/sendMessage?content=x>', '<dtmd'],
    ['<a href="dtmd://x">press</a>', '<a href'],
    ['[1]: dtmd://dingtalkclient/sendMessage', ']: dtmd'],
    ['![seen](https://example.org/pixel.png?secret)', '!['],
  ])('has nothing in it that acts for its reader: %s', (text, without) => {
    for (const shown of [renderMessage(text), renderCard(text)]) expect(shown).not.toContain(without);
  });

  test.each([
    '[a](https://example.org)',
    '[a](HTTP://example.org)',
    '[a](mailto:ada@example.org)',
    '[a](tel:+4912345)',
    '[a](/docs/page#part)',
    '[a](page.md "title: with a colon")',
    '[1]: https://example.org',
    '<https://example.org>',
    'dict[key]: value',
    'a[0](x)',
  ])('keeps what does not: %s', (text) => expect([renderMessage(text), renderCard(text)]).toEqual([text, text]));

  test('shows code as it is', () => {
    const code = '```md\n![x](dtmd://x)\n[a](javascript:x)\n```';
    expect([renderMessage(code), renderCard(code)]).toEqual([code, code]);
  });
});

describe('the title of a message', () => {
  test.each([
    ['# A **bold** title\nand more', 'A bold title'],
    ['\n\n> quoted', 'quoted'],
    ['', '…'],
    ['```', '…'],
    ['x'.repeat(100), `${'x'.repeat(39)}…`],
    ['😀'.repeat(100), `${'😀'.repeat(39)}…`],
  ])('is the beginning of what it says: %j', (text, title) => expect(titleOf(text)).toBe(title));
});

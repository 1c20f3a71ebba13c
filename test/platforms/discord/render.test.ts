import { describe, expect, test } from 'vitest';
import { renderDiscord } from '../../../src/platforms/discord/render.ts';
import { readDiscord } from '../../fakes/discord-markdown.ts';

describe('Markdown on Discord', () => {
  test.each([
    ['bold, italic and struck', '**b** __b__ *i* _i_ ~~s~~', '**b** **b** *i* *i* ~~s~~'],
    ['code', 'run `a_b` or ``a`b``', 'run `a_b` or `` a`b ``'],
    ['headings, of which Discord has three', '# One\n### Three\n#### Four\n#', '# One\n### Three\n**Four**\n#'],
    [
      'lists and tasks',
      '+ one\n  * two\n- [ ] open\n- [x] done\n1. first',
      '- one\n  - two\n- ☐ open\n- ☑ done\n1. first',
    ],
    ['quotes, which never quote what follows', '>>> all\n> one\n>> deep', '> all\n> one\n> deep'],
    ['a rule', 'a\n\n---\n\nb', 'a\n\n———\n\nb'],
    [
      'links',
      '[docs](https://e.org/a_b) <https://e.org> https://e.org/a_b_c',
      '[docs](https://e.org/a_b) <https://e.org> https://e.org/a_b_c',
    ],
    ['a link whose address has brackets', '[x](https://e.org/a_(b))', '[x](https://e.org/a_%28b%29)'],
    ['a link that nobody can follow', '[x](docs/a.md)', 'x (docs/a.md)'],
    ['code with its language', '```ts\nconst a = `b`;\n```', '```ts\nconst a = `b`;\n```'],
    ['code between other marks', '~~~\na ``` b\n~~~', '```\na `\u200b`` b\n```'],
    ['code that is still being written', '```\nconst', '```\nconst\n```'],
    ['a table', '| a | b |\n|---|---|\n| 1 | 2 |', '```\n| a | b |\n|---|---|\n| 1 | 2 |\n```'],
    [
      'spoilers and underlines that are none',
      'a || b || c and snake_case_name',
      'a \\|\\| b \\|\\| c and snake_case_name',
    ],
    ['small print that is none', '-# note', '\\-# note'],
    ['what was escaped', '\\*not\\* \\# x \\_y\\_', '\\*not\\* # x \\_y\\_'],
    ['what was escaped in front of a line', '\\# no heading', '\\# no heading'],
    ['stars that stand alone', '2 * 3 * 4', '2 \\* 3 \\* 4'],
    ['paths of Windows', 'C:\\Users\\ada', 'C:\\Users\\ada'],
    ['a link inside of words that are none', '\\[x](https://e.org)', '\\[x](https://e.org)'],
  ])('shows %s', (_, markdown, rendered) => expect(renderDiscord(markdown)).toBe(rendered));

  test('is read as it was meant', () => {
    const text = 'if (a < b && c > d) { "x" } \\o/ 2*3*4 __init__ a||b ~~~~ `';
    expect(readDiscord(renderDiscord(text.replace('__init__', '\\_\\_init\\_\\_')))).toBe(text);
  });

  test('that shows nothing goes as it is', () => expect(renderDiscord('```\n```')).toBe('```\n```'));

  test('of a size that Discord refuses is not looked at', () => {
    const text = '*'.repeat(100_000);
    expect(renderDiscord(text)).toBe(text);
  });
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { patience } from '../../../test/support/patience.ts';
import { renderHtml } from './render.ts';

describe('Markdown becomes the HTML Telegram takes', () => {
  test.each([
    ['plain words', 'plain words'],
    ['a < b && "c" > d', 'a &lt; b &amp;&amp; &quot;c&quot; &gt; d'],
    ['**bold** and __bold__', '<b>bold</b> and <b>bold</b>'],
    ['*italic* and _italic_', '<i>italic</i> and <i>italic</i>'],
    ['***both***', '<b><i>both</i></b>'],
    ['**bold *and italic***', '<b>bold <i>and italic</i></b>'],
    ['*italic **and bold***', '<i>italic <b>and bold</b></i>'],
    ['~~gone~~', '<s>gone</s>'],
    ['snake_case_name and 2*3*4', 'snake_case_name and 2*3*4'],
    ['a * b * c', 'a * b * c'],
    ['**unclosed', '**unclosed'],
    ['a **** b', 'a **** b'],
    ['\\*not italic\\*', '*not italic*'],
    ['`a < b` and ``x ` y``', '<code>a &lt; b</code> and <code>x ` y</code>'],
    ['`**not bold**`', '<code>**not bold**</code>'],
    ['**a `**` b**', '<b>a <code>**</code> b</b>'],
    ['a ` lone', 'a ` lone'],
    [
      '[words](https://example.org/a_(b)?c=1&d="e")',
      '<a href="https://example.org/a_(b)?c=1&amp;d=&quot;e&quot;">words</a>',
    ],
    ['[**bold**](https://x.org "title")', '<a href="https://x.org"><b>bold</b></a>'],
    ['![](https://x.org/a.png)', '<a href="https://x.org/a.png">https://x.org/a.png</a>'],
    ['[bad](javascript:alert)', 'bad (javascript:alert)'],
    ['[no link] (at all)', '[no link] (at all)'],
    ['# Title', '<b>Title</b>'],
    ['### **Title** ##', '<b>Title</b>'],
    ['#hashtag', '#hashtag'],
    ['- one\n  - two\n* three\n1. four', '• one\n  • two\n• three\n1. four'],
    ['- [ ] open\n- [x] done', '☐ open\n☑ done'],
    ['---', '———'],
    ['> quoted\n> > **twice**\nnot', '<blockquote>quoted\n<b>twice</b></blockquote>\nnot'],
    ['```ts\nconst a = b < c;\n```', '<pre><code class="language-ts">const a = b &lt; c;</code></pre>'],
    ['```\n# no title\n```\nafter', '<pre># no title</pre>\nafter'],
    ['~~~\n```\n~~~', '<pre>```</pre>'],
    ['````\n```\ninner\n```\n````', '<pre>```\ninner\n```</pre>'],
    ['```py\nstill being written', '<pre><code class="language-py">still being written</code></pre>'],
    ['| a | b |\n|---|---|\n| 1 | <2 |\nafter', '<pre>| a | b |\n|---|---|\n| 1 | &lt;2 |</pre>\nafter'],
    ['a | b\nno table', 'a | b\nno table'],
    ['<b>tags</b>', '&lt;b&gt;tags&lt;/b&gt;'],
  ])('%j', (markdown, html) => expect(renderHtml(markdown)).toBe(html));

  const markdown = fc
    .array(
      fc.oneof(
        fc.constantFrom(
          '*',
          '**',
          '***',
          '_',
          '__',
          '`',
          '```',
          '```js',
          '\n',
          '\n\n',
          '~~',
          '[',
          '](',
          ')',
          '!',
          '> ',
        ),
        fc.constantFrom('- ', '# ', '|', '|---|', '\\', '<', '&', ' ', 'word', 'https://x.org', '👩‍👩‍👧‍👦', '"', '1. '),
        fc.string({ maxLength: 8 }),
      ),
      { maxLength: 80 },
    )
    .map((parts) => parts.join(''));

  test('that is well formed, and that people see nothing longer of', () => {
    fc.assert(
      fc.property(markdown, (text) => {
        const html = renderHtml(text);
        const open: string[] = [];
        for (const [, close, tag] of html.matchAll(/<(\/?)([a-z]+)[^<>]*>/g)) {
          if (close === '') open.push(tag!);
          else expect(open.pop()).toBe(tag);
        }
        expect(open).toEqual([]);
        const seen = html.replace(/<[^<>]*>/g, '').replace(/&(?:lt|gt|amp|quot);/g, '.');
        expect(seen).not.toMatch(/[<>&]/);
        expect(seen.length).toBeLessThanOrEqual(text.length);
      }),
      { numRuns: 3000 },
    );
  });

  test('in no time, also of what is made to take long', () => {
    const started = performance.now();
    for (const sign of ['*', '_', '`', '[', '**a', '*_', '> ', '[](', '|-', '`` ', '\\', '# ']) {
      renderHtml(sign.repeat(Math.floor(4096 / sign.length)));
    }
    expect(performance.now() - started).toBeLessThan(patience(6000));
  });

  test('in no time of a row of a table that was made to take long, whether it has 20 characters or 100,000', () => {
    for (const cells of [6, 8, 10, 12, 14, 16, 18, 20, 36, 33_000]) {
      const before = process.threadCpuUsage();
      renderHtml(`|a|\n-${'|  '.repeat(cells)}x`);
      const { user } = process.threadCpuUsage(before);
      expect(user / 1000, `${cells} cells`).toBeLessThan(300);
    }
  });
});

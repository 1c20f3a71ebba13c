import { expect, test } from 'vitest';
import { htmlText } from '../../../src/platforms/email/html-text.ts';
import { renderHtml } from '../../../src/platforms/email/render.ts';
import { fastest } from '../../support/fastest.ts';
import { patience } from '../../support/patience.ts';

const bodyOf = (markdown: string): string => /<body>\n([\s\S]*)\n<\/body>/.exec(renderHtml(markdown))?.[1] ?? '';

test.each([
  ['two\nlines', '<p>two<br>\nlines</p>'],
  ['one\n\ntwo', '<p>one</p>\n<p>two</p>'],
  ['## Cards', '<h2>Cards</h2>'],
  ['**bold** *em* ~~del~~ `a<b`', '<p><strong>bold</strong> <em>em</em> <del>del</del> <code>a&lt;b</code></p>'],
  ['[x](https://e.org/?a=1&b=2)', '<p><a href="https://e.org/?a=1&amp;b=2">x</a></p>'],
  ['[x](javascript:alert(1))', '<p>x (javascript:alert(1))</p>'],
  ['<script>alert("1")</script>', '<p>&lt;script&gt;alert(&quot;1&quot;)&lt;/script&gt;</p>'],
  ['```ts\na < b\n```', '<pre><code>a &lt; b</code></pre>'],
  ['```\nnever closed', '<pre><code>never closed</code></pre>'],
  ['> one\n> two\nthree', '<blockquote>one<br>\ntwo</blockquote>\n<p>three</p>'],
  ['---', '<hr>'],
  [
    '- one\n  - two\n1. three\n- [x] done',
    [
      '<div style="margin-left:1em">• one</div>',
      '<div style="margin-left:2em">• two</div>',
      '<div style="margin-left:1em">1. three</div>',
      '<div style="margin-left:1em">☑ done</div>',
    ].join('\n'),
  ],
  [
    'a | b\n--|--\n1 | 2',
    '<table border="1" cellpadding="4" cellspacing="0">\n<tr><th>a</th><th>b</th></tr>\n<tr><td>1</td><td>2</td></tr>\n</table>',
  ],
])('%j is shown as %j', (markdown, html) => expect(bodyOf(markdown)).toBe(html));

test('the text of an HTML mail takes a time that grows with its length and no faster', () => {
  const many = (tags: number): string => `${'<?'.repeat(tags)}>words`;
  expect(htmlText(many(3), 'kept')).toBe(htmlText('<?>words', 'kept'));
  expect(fastest(5, () => void htmlText(many(125_000), 'kept'))).toBeLessThan(patience(40));
});

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readMatrixHtml } from '../../../test/fakes/matrix-html.ts';
import { patience } from '../../../test/support/patience.ts';
import { renderMessage } from './render.ts';

describe('Markdown becomes the HTML of Matrix', () => {
  test.each([
    ['plain words', null],
    ['two lines\nof words\n\nand a paragraph', null],
    ['a < b && "c" > d', null],
    ['https://example.org/a_b_c', null],
    ['snake_case_name and 2*3*4', null],
    ['**bold** and __bold__', '<strong>bold</strong> and <strong>bold</strong>'],
    ['*italic* and _italic_', '<em>italic</em> and <em>italic</em>'],
    ['~~gone~~ & <b>', '<del>gone</del> &amp; &lt;b&gt;'],
    ['\\*not italic\\*', '*not italic*'],
    ['`a < b`', '<code>a &lt; b</code>'],
    ['[words](https://x.org/?a=1&b="c")', '<a href="https://x.org/?a=1&amp;b=&quot;c&quot;">words</a>'],
    ['[bad](javascript:alert)', 'bad (javascript:alert)'],
    ['**a**\nb\n\nc', '<p><strong>a</strong><br>b</p><p>c</p>'],
    ['# Title\nwords', '<h1>Title</h1><p>words</p>'],
    ['###### Six ##', '<h6>Six</h6>'],
    ['#hashtag', null],
    ['words\n---', '<p>words</p><hr>'],
    [
      '> quoted\n> > **twice**\nnot',
      '<blockquote><p>quoted</p><blockquote><strong>twice</strong></blockquote></blockquote><p>not</p>',
    ],
    ['```ts\nconst a = b < c;\n```', '<pre><code class="language-ts">const a = b &lt; c;</code></pre>'],
    ['```\n# no title\n\n- no item\n```\nafter', '<pre><code># no title\n\n- no item</code></pre><p>after</p>'],
    ['```py\nstill being written', '<pre><code class="language-py">still being written</code></pre>'],
    ['- one\n  - two\n  - three\n- four', '<ul><li>one<ul><li>two</li><li>three</li></ul></li><li>four</li></ul>'],
    ['1. one\n   goes on\n2. two', '<ol><li>one<br>goes on</li><li>two</li></ol>'],
    ['3. three\n\n4. four', '<ol start="3"><li>three</li><li>four</li></ol>'],
    ['- a\n1. b', '<ul><li>a</li></ul><ol><li>b</li></ol>'],
    ['- [ ] open\n- [x] done', '<ul><li>☐ open</li><li>☑ done</li></ul>'],
    ['words\n- item\n\nwords', '<p>words</p><ul><li>item</li></ul><p>words</p>'],
    [
      '| a | b |\n|---|---|\n| 1 | x \\| y |\nafter',
      '<table><thead><tr><th>a</th><th>b</th></tr></thead><tbody><tr><td>1</td><td>x | y</td></tr></tbody></table><p>after</p>',
    ],
    ['a | b\nno table', null],
  ])('%j', (markdown, formatted) => expect(renderMessage(markdown)).toEqual({ body: markdown, formatted }));

  test('what no server takes is taken out of both', () => {
    expect(renderMessage('**a\0\ud800**')).toEqual({ body: '**a\ufffd**', formatted: '<strong>a\ufffd</strong>' });
  });

  test('what fits into no message is not formatted', () => {
    const text = `**bold**${'x'.repeat(70_000)}`;
    expect(renderMessage(text)).toEqual({ body: text, formatted: null });
  });

  const pieces = [
    '*',
    '**',
    '_',
    '`',
    '```',
    '~~~',
    '[',
    '](',
    ')',
    '\n',
    '\n\n',
    '> ',
    '- ',
    '1. ',
    '  ',
    '| ',
    '|---|',
    '# ',
  ];
  const markdown = fc
    .array(fc.oneof(fc.constantFrom(...pieces), fc.constantFrom('word', '<', '&', '"', '\\', '\t', 'https://x.org')))
    .map((parts) => parts.join(''));

  test('whatever is written, the HTML is what the specification allows', () => {
    fc.assert(
      fc.property(markdown, (text) => {
        const { formatted } = renderMessage(text);
        expect(typeof readMatrixHtml(formatted ?? '')).toBe('string');
      }),
      { numRuns: 2000 },
    );
  });

  test.each([
    '> ',
    '- ',
    '  - ',
    '*',
    '_a',
    '[',
    '`',
    '| a ',
    '# ',
    '1. ',
    '\n',
    'a\n> ',
    '- a\n\n',
    '|\n',
    '>'.repeat(50),
  ])('takes no longer than the text is long: %j', (piece) => {
    const text = piece.repeat(Math.floor(65_000 / piece.length));
    const started = performance.now();
    renderMessage(text);
    expect(performance.now() - started).toBeLessThan(patience(1000));
  });
});

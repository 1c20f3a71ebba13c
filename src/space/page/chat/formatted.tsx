import { useMemo, useState } from 'preact/hooks';
import { clampText, plainText } from '../data/plain-text.ts';
import { Button } from '../views/parts.tsx';
import { type Block, type Inline, parseBlocks, splitBlocks } from './markdown.ts';

/** Longer texts are shown whole when the person asks for that. */
const LONG = 16_000;
const SHOWN_OF_LONG = 6000;

/** A text with its Markdown. Everything is built as elements: nothing that was written can become one by itself. */
export function Formatted({ text, whole = false }: { text: string; whole?: boolean }) {
  const [asked, setAsked] = useState(false);
  const long = !whole && !asked && text.length > LONG;
  const shown = long ? clampText(text, SHOWN_OF_LONG).text : text;
  const parts = useMemo(() => splitBlocks(plainText(shown)), [shown]);
  return (
    <>
      {/* Only the last part of a text that grows is a new one. */}
      {parts.map((part, i) => (
        <Piece key={i} source={part} />
      ))}
      {long && (
        <Button class="chat-more" onClick={() => setAsked(true)}>
          Show all {Math.round(text.length / 1000)} thousand characters
        </Button>
      )}
    </>
  );
}

function Piece({ source }: { source: string }) {
  return useMemo(() => <>{parseBlocks(source).map(renderBlock)}</>, [source]);
}

function renderBlock(block: Block, i: number) {
  switch (block.type) {
    case 'paragraph':
      return <p key={i}>{renderInline(block.inside)}</p>;
    case 'heading':
      // Headings of a message are no headings of the page.
      return (
        <p key={i} class={`chat-heading chat-heading-${Math.min(block.level, 4)}`}>
          {renderInline(block.inside)}
        </p>
      );
    case 'code':
      return <CodeBlock key={i} language={block.language} text={block.text} />;
    case 'quote':
      return <blockquote key={i}>{block.blocks.map(renderBlock)}</blockquote>;
    case 'list': {
      const items = block.items.map((item, j) => <li key={j}>{item.map(renderItemBlock)}</li>);
      return block.start === null ? (
        <ul key={i}>{items}</ul>
      ) : (
        <ol key={i} start={block.start}>
          {items}
        </ol>
      );
    }
    case 'table':
      return <Table key={i} head={block.head} rows={block.rows} />;
    case 'rule':
      return <hr key={i} />;
  }
}

/** A line of a list needs no paragraph of its own. */
function renderItemBlock(block: Block, i: number) {
  return block.type === 'paragraph' ? <span key={i}>{renderInline(block.inside)}</span> : renderBlock(block, i);
}

function Table({ head, rows }: Pick<Extract<Block, { type: 'table' }>, 'head' | 'rows'>) {
  return (
    // A wide table scrolls; people without a mouse must reach it.
    // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls
    <section class="chat-table" tabIndex={0} aria-label="Table">
      <table>
        <thead>
          <tr>
            {head.map((cell, i) => (
              <th key={i}>{renderInline(cell)}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row, i) => (
            <tr key={i}>
              {row.map((cell, j) => (
                <td key={j}>{renderInline(cell)}</td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}

function CodeBlock({ language, text }: { language: string; text: string }) {
  const [copied, setCopied] = useState('');
  const copy = async (): Promise<void> => {
    // Pages that did not come over https may have no clipboard.
    const said = await navigator.clipboard?.writeText(text).then(
      () => 'Copied',
      () => null,
    );
    setCopied(said ?? 'Not allowed');
    setTimeout(() => setCopied(''), 2000);
  };
  return (
    <figure class="chat-code">
      <figcaption>
        <span>{language}</span>
        <Button onClick={() => void copy()}>{copied || 'Copy'}</Button>
      </figcaption>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <pre tabIndex={0}>
        <code>{text}</code>
      </pre>
    </figure>
  );
}

function renderInline(parts: readonly Inline[]) {
  return parts.map((part, i) => {
    if (typeof part === 'string') return part;
    switch (part.type) {
      case 'code':
        return <code key={i}>{part.text}</code>;
      case 'link':
        return (
          <a key={i} href={part.href} target="_blank" rel="noopener noreferrer nofollow">
            {renderInline(part.inside)}
          </a>
        );
      default:
        return <part.type key={i}>{renderInline(part.inside)}</part.type>;
    }
  });
}

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { sentenceOf } from '../data/answer-error.ts';
import { askMessagesAfter, askMessagesBefore, type Message } from '../data/kept-session.ts';
import type { Source } from '../data/source.ts';
import { Ago, Said, SaidAtLength, Trouble } from './parts.tsx';

interface TranscriptProps {
  readonly source: Source;
  readonly id: string;
  readonly count: number;
  /** Changes when something has happened to the session. */
  readonly version: number;
}

/** What was said, the newest in sight; earlier pages when they are asked for. */
export function Transcript({ source, id, count, version }: TranscriptProps) {
  const [messages, setMessages] = useState<readonly Message[]>([]);
  const [trouble, setTrouble] = useState<string | null>(null);
  const [loaded, setLoaded] = useState(false);
  const end = useRef<HTMLDivElement>(null);
  const first = messages[0];
  const last = messages.at(-1);
  const attempt = async (ask: () => Promise<readonly Message[]>, join: typeof merge): Promise<void> => {
    try {
      const page = await ask();
      setMessages((before) => join(before, page));
      setTrouble(null);
    } catch (thrown) {
      setTrouble(sentenceOf(thrown));
    }
    setLoaded(true);
  };
  useEffect(() => {
    if (last === undefined) void attempt(() => askMessagesBefore(source, id, count + 1), merge);
    else void attempt(() => askMessagesAfter(source, id, last.position), merge);
  }, [source, id, version]);
  useLayoutEffect(() => {
    const part = end.current?.closest('.panel-part');
    if (part) part.scrollTop = part.scrollHeight;
  }, [last?.position]);
  return (
    <div class="transcript">
      {first !== undefined && first.position > 1 && (
        <button type="button" onClick={() => void attempt(() => askMessagesBefore(source, id, first.position), merge)}>
          Earlier
        </button>
      )}
      <ol>
        {messages.map((message) => (
          <MessageItem key={message.position} message={message} />
        ))}
      </ol>
      {loaded && messages.length === 0 && trouble === null && <p class="empty">Nothing was said yet.</p>}
      <Trouble text={trouble} />
      <div ref={end} />
    </div>
  );
}

function merge(known: readonly Message[], page: readonly Message[]): readonly Message[] {
  if (page.length === 0) return known;
  const all = new Map([...known, ...page].map((message) => [message.position, message]));
  return [...all.values()].sort((a, b) => a.position - b.position);
}

function MessageItem({ message }: { message: Message }) {
  const { role, text, at, data } = message;
  const folded = role !== 'user' && role !== 'assistant';
  return (
    <li class="message" data-role={role}>
      <p class="message-head">
        <strong>
          <Said text={role} />
        </strong>
        <span class="faint">
          <Ago at={at} />
        </span>
      </p>
      {text !== '' && (folded ? <Fold name={nameOf(text)} text={text} /> : <SaidAtLength text={text} />)}
      {hasMore(data) && (
        <Fold name={text === '' ? 'what it does' : 'more of it'} text={JSON.stringify(data, null, 2)} />
      )}
    </li>
  );
}

function nameOf(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function Fold({ name, text }: { name: string; text: string }) {
  return (
    <details class="fold">
      <summary>
        <Said text={name} />
      </summary>
      <SaidAtLength text={text} />
    </details>
  );
}

function hasMore(data: unknown): boolean {
  return typeof data === 'object' && data !== null && Object.keys(data).length > 0;
}

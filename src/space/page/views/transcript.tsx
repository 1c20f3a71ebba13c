import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { sentenceOf } from '../data/answer-error.ts';
import { askMessagesAfter, askMessagesBefore, type Message } from '../data/kept-session.ts';
import type { Source } from '../data/source.ts';
import { Ago, LongPlainText, PlainText, Trouble } from './parts.tsx';

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
  const { calls, name, failed, rest } = readData(data);
  const folded = role !== 'user' && role !== 'assistant';
  return (
    <li class="message" data-role={role}>
      <p class="message-head">
        <strong>
          <PlainText text={name === null ? role : `${role}: ${name}`} />
        </strong>
        {failed && <span class="badge">failed</span>}
        <span class="faint">
          <Ago at={at} />
        </span>
      </p>
      {text !== '' && (folded ? <Fold name={beginningOf(text)} text={text} /> : <LongPlainText text={text} />)}
      {calls.map((call, index) => (
        <Fold key={index} name={`uses ${call.name}`} text={JSON.stringify(call.args, null, 2)} />
      ))}
      {rest !== null && <Fold name="what else is kept" text={rest} />}
    </li>
  );
}

function beginningOf(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}…` : text;
}

function Fold({ name, text }: { name: string; text: string }) {
  return (
    <details class="fold">
      <summary>
        <PlainText text={name} />
      </summary>
      <LongPlainText text={text} />
    </details>
  );
}

interface KnownData {
  readonly calls: readonly { readonly name: string; readonly args: unknown }[];
  /** The tool whose answer it is. */
  readonly name: string | null;
  readonly failed: boolean;
  /** What is kept beside that, as it is. */
  readonly rest: string | null;
}

/** What a message has beside its text, as far as this page knows it; the rest is shown as it is kept. */
function readData(data: unknown): KnownData {
  if (typeof data !== 'object' || data === null) return { calls: [], name: null, failed: false, rest: null };
  const { toolCalls, toolCallId: _id, usage: _usage, name, ok, ...others } = data as Record<string, unknown>;
  const calls = Array.isArray(toolCalls) ? toolCalls.filter(isCall) : [];
  const rest = Object.keys(others).length === 0 ? null : JSON.stringify(others, null, 2);
  return { calls, name: typeof name === 'string' ? name : null, failed: ok === false, rest };
}

function isCall(call: unknown): call is { name: string; args: unknown } {
  return typeof call === 'object' && call !== null && 'name' in call && typeof call.name === 'string';
}

import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { askMessages, type Message } from '../data/kept-session.ts';
import type { Source } from '../data/source.ts';
import { useAttempt } from './asking.ts';
import { Ago, Button, LongPlainText, PlainText, Trouble } from './parts.tsx';

const PAGE = 50;

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
  const [loaded, setLoaded] = useState(false);
  const { trouble, attempt } = useAttempt(true);
  const end = useRef<HTMLDivElement>(null);
  const first = messages[0];
  const last = messages.at(-1);
  const load = async (cursor: number, limit: number): Promise<void> => {
    await attempt(async () => {
      const page = await askMessages(source, id, { cursor, limit });
      setMessages((before) => merge(before, page));
    });
    setLoaded(true);
  };
  const loadBefore = (position: number): void => {
    const cursor = Math.max(0, position - 1 - PAGE);
    void load(cursor, Math.max(1, position - 1 - cursor));
  };
  useEffect(() => {
    if (last === undefined) loadBefore(count + 1);
    else void load(last.position, 200);
  }, [source, id, version]);
  useLayoutEffect(() => {
    const part = end.current?.closest('.panel-part');
    if (part) part.scrollTop = part.scrollHeight;
  }, [last?.position]);
  return (
    <div class="transcript">
      {first !== undefined && first.position > 1 && <Button onClick={() => loadBefore(first.position)}>Earlier</Button>}
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
        <PlainText as="strong" text={name === null ? role : `${role}: ${name}`} />
        {failed && <span class="badge">failed</span>}
        <Ago at={at} faint />
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

/** What a message has beside its text, as far as this page knows it; the rest is shown as it is kept. */
function readData(data: Message['data']) {
  const { toolCalls, toolCallId: _id, usage: _usage, name, ok, ...others } = data ?? {};
  return {
    calls: Array.isArray(toolCalls) ? toolCalls.filter(isCall) : [],
    /** The tool whose answer it is. */
    name: typeof name === 'string' ? name : null,
    failed: ok === false,
    rest: Object.keys(others).length === 0 ? null : JSON.stringify(others, null, 2),
  };
}

function isCall(call: unknown): call is { name: string; args: unknown } {
  return typeof call === 'object' && call !== null && 'name' in call && typeof call.name === 'string';
}

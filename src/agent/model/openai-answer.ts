import { randomUUID } from 'node:crypto';
import type { TokenUsage } from '../../lifecycle/commands.ts';
import { type AnswerListener, argumentsOf, type ModelAnswer } from './model-api.ts';
import { BrokenAnswer } from './model-error.ts';

/** What we read of a chunk. Servers of this kind differ in everything: each field is looked at before it is used. */
interface Chunk {
  readonly error?: unknown;
  readonly choices?: readonly Choice[] | null;
  readonly usage?: { readonly prompt_tokens?: number | null; readonly completion_tokens?: number | null } | null;
}

interface Choice {
  readonly delta?: Delta | null;
  readonly finish_reason?: string | null;
}

interface Delta {
  readonly content?: string | readonly ContentPart[] | null;
  readonly reasoning_content?: string | null;
  readonly reasoning?: string | null;
  readonly refusal?: unknown;
  readonly tool_calls?: readonly CallDelta[] | null;
}

/** Some servers send content in parts, and thoughts among them. */
interface ContentPart {
  readonly type?: string;
  readonly text?: unknown;
  readonly thinking?: unknown;
}

interface CallDelta {
  readonly index?: number | null;
  readonly id?: string | null;
  readonly function?: { readonly name?: string | null; readonly arguments?: string | null } | null;
}

interface BegunCall {
  id: string;
  name: string;
  json: string;
  readonly index: number | null;
}

const END = '[DONE]';

/** Puts the chunks of a streamed chat completion together. */
export class ChatCompletionReader {
  readonly #listener: AnswerListener;
  readonly #calls: BegunCall[] = [];
  #finishReason: string | null = null;
  #usage: TokenUsage = { input: 0, output: 0 };

  constructor(listener: AnswerListener) {
    this.#listener = listener;
  }

  /** The data of one event. Throws what the server says went wrong. */
  take(data: string): void {
    if (data === END) return;
    const chunk = parseChunk(data);
    if (chunk.error !== undefined && chunk.error !== null) throw chunk;
    const { usage } = chunk;
    if (usage) this.#usage = { input: usage.prompt_tokens ?? 0, output: usage.completion_tokens ?? 0 };
    const choice = chunk.choices?.[0];
    if (choice?.finish_reason) this.#finishReason = choice.finish_reason;
    if (choice?.delta) this.#takeDelta(choice.delta);
  }

  finished(): ModelAnswer {
    if (this.#finishReason === null) throw new BrokenAnswer('it ended without a finish reason');
    return { calls: this.#calls.map(finishedCall), finishReason: this.#finishReason, usage: this.#usage };
  }

  #takeDelta({ reasoning_content: thought, reasoning = null, content, refusal, tool_calls: calls }: Delta): void {
    this.#think(thought ?? reasoning);
    if (typeof content === 'string') this.#say(content);
    else for (const part of content ?? []) this.#takePart(part);
    this.#say(refusal);
    for (const call of calls ?? []) this.#takeCall(call);
  }

  #takePart({ type, text, thinking }: ContentPart): void {
    if (type === 'text') this.#say(text);
    else if (type === 'thinking' && Array.isArray(thinking)) {
      for (const part of thinking as readonly (ContentPart | null)[]) this.#think(part?.text);
    }
  }

  #say(text: unknown): void {
    if (typeof text === 'string' && text !== '') this.#listener.onText(text);
  }

  #think(text: unknown): void {
    if (typeof text === 'string' && text !== '') this.#listener.onReasoning(text);
  }

  #takeCall({ index = null, id, function: called }: CallDelta): void {
    const [name, json] = [called?.name ?? '', called?.arguments ?? ''];
    // A piece goes on with the call of its number; with the last one where a server does not number them.
    const begun = index === null ? this.#calls.at(-1) : this.#calls.findLast((call) => call.index === index);
    if (begun === undefined || startsAnother(begun, id ?? '', name, json)) {
      this.#calls.push({ index, id: id ?? '', name, json });
      return;
    }
    if (begun.id === '') begun.id = id ?? '';
    if (begun.name === '') begun.name = name;
    begun.json += json;
  }
}

function parseChunk(data: string): Chunk {
  try {
    const chunk: unknown = JSON.parse(data);
    if (typeof chunk === 'object' && chunk !== null) return chunk;
  } catch {
    // The error below says what came instead.
  }
  throw new BrokenAnswer(`this is not JSON: ${data.slice(0, 200)}`);
}

/** Servers that give all calls one number tell them apart by id, or by beginning the next one after the last is whole. */
function startsAnother(begun: BegunCall, id: string, name: string, json: string): boolean {
  if (name === '' || begun.name === '') return false;
  if (id !== '' && begun.id !== '' && id !== begun.id) return true;
  if (!json.trimStart().startsWith('{') || !begun.json.trimEnd().endsWith('}')) return false;
  return !('unreadable' in (argumentsOf(begun.json) as object));
}

function finishedCall({ id, name, json }: BegunCall): ModelAnswer['calls'][number] {
  if (name === '') throw new BrokenAnswer('a tool call has no name');
  return { id: id === '' ? `call_${randomUUID()}` : id, name, args: argumentsOf(json) };
}

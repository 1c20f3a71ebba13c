import type { AcceptedTurn, Reply } from '../backend.ts';
import { type ShownError, shownError } from '../error-answer.ts';
import { frame, HEARTBEAT, type Listener } from '../event-stream.ts';
import { ReplyText, type TurnFeed } from '../replies.ts';
import { failureOf, tailOfId, usageOf } from './conversation.ts';

interface ResponseFields {
  readonly model: string;
  readonly instructions: string | null;
  readonly metadata: Readonly<Record<string, string>>;
}

type Item = ReturnType<typeof messageItem>;

/** One response in OpenAI's shapes: whole, or as the events that lead to it. */
export class ResponseWriting {
  readonly #id: string;
  readonly #itemId: string;
  readonly #asked: ResponseFields;
  readonly #createdAt = Math.floor(Date.now() / 1000);
  #sequence = 0;

  constructor(accepted: AcceptedTurn, asked: ResponseFields) {
    const tail = tailOfId(accepted);
    this.#id = `resp_${tail}`;
    this.#itemId = `msg_${tail}`;
    this.#asked = asked;
  }

  completed(reply: Reply, text = reply.text) {
    const { input, output } = usageOf(reply);
    const usage = {
      input_tokens: input,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input + output,
    };
    const item = messageItem(this.#itemId, 'completed', text);
    return this.#response('completed', { model: reply.model ?? this.#asked.model, output: [item], usage });
  }

  /** The events of a response, in the order OpenAI's clients expect them. */
  async *tell(feed: TurnFeed, listener: Listener): AsyncGenerator<string> {
    const text = new ReplyText();
    yield this.#event('response.created', { response: this.#response('in_progress', {}) });
    yield this.#event('response.in_progress', { response: this.#response('in_progress', {}) });
    yield this.#opened();
    for await (const item of feed.news(listener)) {
      if (item === null) yield HEARTBEAT;
      else if ('failure' in item) return yield this.#failed(shownError(item.failure));
      else if ('reply' in item) return yield this.#closed(item.reply, text);
      else if (item.event.type === 'text') yield this.#delta(text.piece(item.event.text));
    }
  }

  #opened(): string {
    const item: Item = { ...messageItem(this.#itemId, 'in_progress', ''), content: [] };
    return (
      this.#event('response.output_item.added', { output_index: 0, item }) +
      this.#event('response.content_part.added', { ...this.#place(), part: textPart('') })
    );
  }

  #delta(delta: string): string {
    return this.#event('response.output_text.delta', { ...this.#place(), delta, logprobs: [] });
  }

  #closed(reply: Reply, text: ReplyText): string {
    const failure = failureOf(reply);
    if (failure !== null) return this.#failed(failure.error);
    const rest = text.rest(reply.text);
    const last = rest === '' ? '' : this.#delta(text.piece(rest));
    const whole = text.sent;
    const item = messageItem(this.#itemId, 'completed', whole);
    return [
      last,
      this.#event('response.output_text.done', { ...this.#place(), text: whole, logprobs: [] }),
      this.#event('response.content_part.done', { ...this.#place(), part: textPart(whole) }),
      this.#event('response.output_item.done', { output_index: 0, item }),
      this.#event('response.completed', { response: this.completed(reply, whole) }),
    ].join('');
  }

  #failed({ code, message }: ShownError): string {
    return this.#event('response.failed', { response: this.#response('failed', { error: { code, message } }) });
  }

  #place() {
    return { item_id: this.#itemId, output_index: 0, content_index: 0 };
  }

  #event(type: string, fields: Readonly<Record<string, unknown>>): string {
    return frame({ type, sequence_number: this.#sequence++, ...fields }, { event: type });
  }

  #response(status: 'in_progress' | 'completed' | 'failed', facts: Readonly<Record<string, unknown>>) {
    const { model, instructions, metadata } = this.#asked;
    return {
      id: this.#id,
      object: 'response',
      created_at: this.#createdAt,
      status,
      background: false,
      error: null,
      incomplete_details: null,
      instructions,
      metadata,
      model,
      output: [],
      parallel_tool_calls: false,
      previous_response_id: null,
      temperature: null,
      text: { format: { type: 'text' } },
      tool_choice: 'auto',
      tools: [],
      top_p: null,
      truncation: 'disabled',
      usage: null,
      ...facts,
    };
  }
}

function textPart(text: string) {
  return { type: 'output_text', text, annotations: [] as unknown[], logprobs: [] as unknown[] };
}

function messageItem(id: string, status: 'in_progress' | 'completed', text: string) {
  return { type: 'message', id, status, role: 'assistant', content: [textPart(text)] };
}

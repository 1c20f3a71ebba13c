import { z } from '@hono/zod-openapi';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Api, ApiParts } from '../api.ts';
import type { AcceptedTurn, PastMessage, Reply } from '../backend.ts';
import type { ShownError } from '../error-answer.ts';
import { frame } from '../event-stream.ts';
import { jsonBody, jsonOrStream, route } from '../schemas.ts';
import {
  answerOpenAi,
  type Content,
  contentSchema,
  conversationField,
  conversationHeaders,
  OpenAiWriter,
  roleOf,
  textOf,
  usageOf,
} from './conversation.ts';

const itemSchema = z.looseObject({ type: z.string().optional(), role: z.string().optional(), content: contentSchema });

const bodySchema = z
  .looseObject({
    model: z.string().nullish(),
    input: z.union([z.string(), z.array(itemSchema).min(1)]),
    instructions: z.string().nullish(),
    stream: z.boolean().nullish(),
    user: z.string().nullish(),
    safety_identifier: z.string().nullish(),
    metadata: z.record(z.string(), z.string()).nullish(),
    previous_response_id: z.string().nullish(),
    background: z.literal(false, 'is not offered').nullish(),
    conversation: conversationField,
  })
  .openapi('ResponseRequest');
type Body = z.output<typeof bodySchema>;

const respond = route('post', '/v1/responses', 'createResponse', {
  access: 'chat',
  summary: "OpenAI's responses",
  request: { body: jsonBody(bodySchema, true), headers: conversationHeaders },
  responses: { 200: jsonOrStream(z.looseObject({ id: z.string() }), 'A response, or a stream of its events.') },
});

/** Responses, for clients written for OpenAI. */
export function addResponseRoutes(app: Api, parts: ApiParts): void {
  app.openapi(respond, (c) => {
    const body = c.req.valid('json');
    assertNoPrevious(body);
    const { conversation, model, stream } = body;
    const asked = {
      messages: messagesOf(body),
      user: body.user ?? body.safety_identifier,
      conversation,
      model,
      stream,
    };
    return answerOpenAi(c, parts, asked, (accepted, answering) => new ResponseWriter(accepted, answering, body));
  });
}

function assertNoPrevious({ previous_response_id: previous }: Body): void {
  if (previous === null || previous === undefined) return;
  throw new MoiraiError(
    'bad_input',
    'previous_response_id is not offered: name a conversation, and it remembers what was said',
  );
}

function messagesOf({ input, instructions }: Body): PastMessage[] {
  const before: PastMessage[] = instructions ? [{ role: 'system', text: instructions }] : [];
  if (typeof input === 'string') return [...before, { role: 'user', text: input }];
  return [...before, ...input.map((item, i) => messageOf(item, `input[${i}]`))];
}

function messageOf(item: z.output<typeof itemSchema>, where: string): PastMessage {
  const { type = 'message', role, content } = item;
  if (type === 'message') return { role: roleOf(role ?? 'user', where), text: textOf(content, where) };
  // What a tool gave is part of the past, also when the client ran it.
  if (type === 'function_call_output') return { role: 'tool', text: textOf(item.output as Content, where) };
  throw new MoiraiError('bad_input', `${where} is of type "${type}"; only messages are understood`);
}

/** A response, or the events that lead to it, in the order OpenAI's clients expect them. */
class ResponseWriter extends OpenAiWriter {
  readonly #asked: Pick<Body, 'instructions' | 'metadata'>;
  readonly #itemId: string;
  /** Where a text stands in the response. */
  readonly #place: { readonly item_id: string; readonly output_index: 0; readonly content_index: 0 };
  #sequence = 0;

  constructor(accepted: AcceptedTurn, model: string, asked: Pick<Body, 'instructions' | 'metadata'>) {
    super(accepted, model);
    this.#asked = asked;
    this.#itemId = `msg_${this.tailOfId}`;
    this.#place = { item_id: this.#itemId, output_index: 0, content_index: 0 };
  }

  whole(reply: Reply, text = reply.text) {
    const { input, output } = usageOf(reply);
    const usage = {
      input_tokens: input,
      input_tokens_details: { cached_tokens: 0, cache_write_tokens: 0 },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: 0 },
      total_tokens: input + output,
    };
    const item = messageItem(this.#itemId, 'completed', [textPart(text)]);
    return this.#response('completed', { model: reply.model ?? this.model, output: [item], usage });
  }

  opening(): string {
    const response = this.#response('in_progress', {});
    return [
      this.#event('response.created', { response }),
      this.#event('response.in_progress', { response }),
      this.#event('response.output_item.added', {
        output_index: 0,
        item: messageItem(this.#itemId, 'in_progress', []),
      }),
      this.#event('response.content_part.added', { ...this.#place, part: textPart('') }),
    ].join('');
  }

  protected delta(delta: string): string {
    return this.#event('response.output_text.delta', { ...this.#place, delta, logprobs: [] });
  }

  protected end(reply: Reply): string {
    const text = this.text.sent;
    const item = messageItem(this.#itemId, 'completed', [textPart(text)]);
    return [
      this.#event('response.output_text.done', { ...this.#place, text, logprobs: [] }),
      this.#event('response.content_part.done', { ...this.#place, part: textPart(text) }),
      this.#event('response.output_item.done', { output_index: 0, item }),
      this.#event('response.completed', { response: this.whole(reply, text) }),
    ].join('');
  }

  protected failed({ code, message }: ShownError): string {
    return this.#event('response.failed', { response: this.#response('failed', { error: { code, message } }) });
  }

  #event(type: string, fields: Readonly<Record<string, unknown>>): string {
    return frame({ type, sequence_number: this.#sequence++, ...fields }, { event: type });
  }

  #response(status: 'in_progress' | 'completed' | 'failed', facts: Readonly<Record<string, unknown>>) {
    return {
      id: `resp_${this.tailOfId}`,
      object: 'response',
      created_at: this.createdAt,
      status,
      background: false,
      error: null,
      incomplete_details: null,
      instructions: this.#asked.instructions ?? null,
      metadata: this.#asked.metadata ?? {},
      model: this.model,
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
  return { type: 'output_text', text, annotations: [], logprobs: [] };
}

function messageItem(id: string, status: 'in_progress' | 'completed', content: readonly object[]) {
  return { type: 'message', id, status, role: 'assistant', content };
}

import { z } from '@hono/zod-openapi';
import type { Api, ApiParts } from '../api.ts';
import type { AcceptedTurn, Reply } from '../backend.ts';
import { openAiError, type ShownError } from '../error-answer.ts';
import { frame } from '../event-stream.ts';
import { jsonBody, jsonOrStream, route } from '../schemas.ts';
import {
  answerOpenAi,
  contentSchema,
  conversationField,
  conversationHeaders,
  OpenAiWriter,
  roleOf,
  textOf,
  usageOf,
} from './conversation.ts';

/** What is not named here (temperature, tools, ...) is the gateway's own affair: it is taken and not used. */
const bodySchema = z
  .looseObject({
    model: z.string().nullish(),
    messages: z.array(z.looseObject({ role: z.string(), content: contentSchema })).min(1),
    stream: z.boolean().nullish(),
    stream_options: z.looseObject({ include_usage: z.boolean().nullish() }).nullish(),
    user: z.string().nullish(),
    n: z.literal(1, 'is 1: there is one reply').nullish(),
    conversation: conversationField,
  })
  .openapi('ChatCompletionRequest');

const complete = route('post', '/v1/chat/completions', 'createChatCompletion', {
  access: 'chat',
  summary: "OpenAI's chat completions",
  request: { body: jsonBody(bodySchema, true), headers: conversationHeaders },
  responses: { 200: jsonOrStream(z.looseObject({ id: z.string() }), 'A chat completion, or a stream of its chunks.') },
});

/** Chat completions, for clients written for OpenAI. */
export function addChatCompletionRoutes(app: Api, parts: ApiParts): void {
  app.openapi(complete, (c) => {
    const { messages: given, stream_options: options, conversation, user, model, stream } = c.req.valid('json');
    const messages = given.map(({ role, content }, i) => {
      const where = `messages[${i}]`;
      return { role: roleOf(role, where), text: textOf(content, where) };
    });
    const withUsage = options?.include_usage === true;
    return answerOpenAi(c, parts, { messages, conversation, user, model, stream }, (accepted, answering) => {
      return new CompletionWriter(accepted, answering, withUsage);
    });
  });
}

class CompletionWriter extends OpenAiWriter {
  readonly #withUsage: boolean;
  readonly #facts: { readonly id: string; readonly created: number; readonly model: string };

  constructor(accepted: AcceptedTurn, model: string, withUsage: boolean) {
    super(accepted, model);
    this.#withUsage = withUsage;
    this.#facts = { id: `chatcmpl-${this.tailOfId}`, created: this.createdAt, model };
  }

  whole(reply: Reply) {
    const message = { role: 'assistant', content: reply.text, refusal: null };
    return {
      ...this.#facts,
      object: 'chat.completion',
      model: reply.model ?? this.model,
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
      usage: tokens(reply),
    };
  }

  opening(): string {
    return this.#chunk({ role: 'assistant', content: '' });
  }

  protected delta(text: string): string {
    return this.#chunk({ content: text });
  }

  protected end(reply: Reply): string {
    const object = 'chat.completion.chunk';
    const usage = this.#withUsage ? frame({ ...this.#facts, object, choices: [], usage: tokens(reply) }) : '';
    return `${this.#chunk({}, 'stop')}${usage}${frame('[DONE]')}`;
  }

  protected failed(error: ShownError, status: number): string {
    return frame({ error: openAiError(error, status) });
  }

  #chunk(delta: Readonly<Record<string, string>>, finish: 'stop' | null = null): string {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
    return frame({ ...this.#facts, object: 'chat.completion.chunk', choices });
  }
}

function tokens(reply: Reply) {
  const { input, output } = usageOf(reply);
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

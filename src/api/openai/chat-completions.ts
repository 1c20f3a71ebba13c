import { createRoute, z } from '@hono/zod-openapi';
import type { Api, ApiParts } from '../api.ts';
import type { AcceptedTurn, ApiBackend, PastMessage, Reply } from '../backend.ts';
import { answerJson } from '../direct-answer.ts';
import { openAiError, shownError, statusOf } from '../error-answer.ts';
import { frame, HEARTBEAT, type Listener, streamEvents } from '../event-stream.ts';
import { nameTurn, ReplyText, TurnFeed } from '../replies.ts';
import { eventStream, jsonBody } from '../schemas.ts';
import {
  chatRequestOf,
  contentSchema,
  conversationField,
  conversationHeaders,
  failureOf,
  roleOf,
  tailOfId,
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
type Body = z.output<typeof bodySchema>;

const complete = createRoute({
  method: 'post',
  path: '/v1/chat/completions',
  operationId: 'createChatCompletion',
  summary: "OpenAI's chat completions",
  request: { body: jsonBody(bodySchema, true), headers: conversationHeaders },
  responses: {
    200: {
      description: 'A chat completion, or a stream of its chunks.',
      content: { 'application/json': { schema: z.looseObject({ id: z.string() }) }, ...eventStream },
    },
  },
});

/** Chat completions, for clients written for OpenAI. */
export function addChatCompletionRoutes(app: Api, parts: ApiParts): void {
  app.openapi(complete, async (c) => {
    const body = c.req.valid('json');
    const { conversation, user, model } = body;
    const request = chatRequestOf(c, parts.backend, { messages: messagesOf(body), conversation, user, model });
    const accepted = await parts.backend.receive(request);
    nameTurn(c, accepted);
    const writing = new Completion(accepted, request.model ?? parts.backend.model);
    if (body.stream === true) {
      const withUsage = body.stream_options?.include_usage === true;
      const feed = new TurnFeed(accepted, parts.log);
      return streamEvents(c, parts.closing, (listener) => tellChunks(writing, feed, listener, withUsage));
    }
    const reply = await accepted.reply;
    nameTurn(c, reply);
    const failure = failureOf(reply);
    if (failure === null) return answerJson(c, writing.whole(reply));
    c.header('x-should-retry', 'false');
    return c.json({ error: openAiError(failure.error, failure.status) }, failure.status);
  });
}

function messagesOf({ messages }: Body): PastMessage[] {
  return messages.map(({ role, content }, i) => {
    const where = `messages[${i}]`;
    return { role: roleOf(role, where), text: textOf(content, where) };
  });
}

async function* tellChunks(
  writing: Completion,
  feed: TurnFeed,
  listener: Listener,
  withUsage: boolean,
): AsyncGenerator<string> {
  const text = new ReplyText();
  yield frame(writing.chunk({ role: 'assistant', content: '' }, null));
  for await (const item of feed.news(listener)) {
    if (item === null) yield HEARTBEAT;
    else if ('failure' in item) {
      const { code } = item.failure;
      return yield frame({ error: openAiError(shownError(item.failure), statusOf(code)) });
    } else if ('reply' in item) return yield* tellEnd(writing, item.reply, text, withUsage);
    else if (item.event.type === 'text') yield frame(writing.chunk({ content: text.piece(item.event.text) }, null));
  }
}

async function* tellEnd(
  writing: Completion,
  reply: Reply,
  text: ReplyText,
  withUsage: boolean,
): AsyncGenerator<string> {
  const failure = failureOf(reply);
  if (failure !== null) return yield frame({ error: openAiError(failure.error, failure.status) });
  const rest = text.rest(reply.text);
  if (rest !== '') yield frame(writing.chunk({ content: rest }, null));
  yield frame(writing.chunk({}, 'stop'));
  if (withUsage) yield frame(writing.usageChunk(reply));
  yield frame('[DONE]');
}

/** One completion in OpenAI's shapes. */
class Completion {
  readonly #facts: { readonly id: string; readonly created: number; readonly model: string };

  constructor(accepted: AcceptedTurn, model: ApiBackend['model']) {
    this.#facts = { id: `chatcmpl-${tailOfId(accepted)}`, created: Math.floor(Date.now() / 1000), model };
  }

  whole(reply: Reply) {
    const message = { role: 'assistant', content: reply.text, refusal: null };
    return {
      ...this.#facts,
      object: 'chat.completion',
      model: reply.model ?? this.#facts.model,
      choices: [{ index: 0, message, logprobs: null, finish_reason: 'stop' }],
      usage: tokens(reply),
    };
  }

  chunk(delta: Readonly<Record<string, string>>, finish: 'stop' | null) {
    const choices = [{ index: 0, delta, logprobs: null, finish_reason: finish }];
    return { ...this.#facts, object: 'chat.completion.chunk', choices };
  }

  usageChunk(reply: Reply) {
    return { ...this.#facts, object: 'chat.completion.chunk', choices: [], usage: tokens(reply) };
  }
}

function tokens(reply: Reply) {
  const { input, output } = usageOf(reply);
  return { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
}

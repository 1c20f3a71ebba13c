import { createRoute, z } from '@hono/zod-openapi';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Api, ApiParts } from '../api.ts';
import type { PastMessage } from '../backend.ts';
import { answerJson } from '../direct-answer.ts';
import { openAiError } from '../error-answer.ts';
import { streamEvents } from '../event-stream.ts';
import { nameTurn, TurnFeed } from '../replies.ts';
import { eventStream, jsonBody } from '../schemas.ts';
import {
  type Content,
  chatRequestOf,
  contentSchema,
  conversationField,
  conversationHeaders,
  failureOf,
  roleOf,
  textOf,
} from './conversation.ts';
import { ResponseWriting } from './response-writing.ts';

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

const respond = createRoute({
  method: 'post',
  path: '/v1/responses',
  operationId: 'createResponse',
  summary: "OpenAI's responses",
  request: { body: jsonBody(bodySchema, true), headers: conversationHeaders },
  responses: {
    200: {
      description: 'A response, or a stream of its events.',
      content: { 'application/json': { schema: z.looseObject({ id: z.string() }) }, ...eventStream },
    },
  },
});

/** Responses, for clients written for OpenAI. */
export function addResponseRoutes(app: Api, parts: ApiParts): void {
  app.openapi(respond, async (c) => {
    const body = c.req.valid('json');
    assertNoPrevious(body);
    const { conversation, model, instructions = null, metadata } = body;
    const user = body.user ?? body.safety_identifier;
    const request = chatRequestOf(c, parts.backend, { messages: messagesOf(body), conversation, user, model });
    const accepted = await parts.backend.receive(request);
    nameTurn(c, accepted);
    const asked = { model: request.model ?? parts.backend.model, instructions, metadata: metadata ?? {} };
    const writing = new ResponseWriting(accepted, asked);
    if (body.stream === true) {
      const feed = new TurnFeed(accepted, parts.log);
      return streamEvents(c, parts.closing, (listener) => writing.tell(feed, listener));
    }
    const reply = await accepted.reply;
    nameTurn(c, reply);
    const failure = failureOf(reply);
    if (failure === null) return answerJson(c, writing.completed(reply));
    c.header('x-should-retry', 'false');
    return c.json({ error: openAiError(failure.error, failure.status) }, failure.status);
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
  // What a tool gave is part of the past, whoever ran it.
  if (type === 'function_call_output') return { role: 'tool', text: textOf(item.output as Content, where) };
  throw new MoiraiError('bad_input', `${where} is of type "${type}"; only messages are understood`);
}

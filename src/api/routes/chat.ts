import { z } from '@hono/zod-openapi';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { TURN_OUTCOMES } from '../../lifecycle/states.ts';
import { MAX_TEXT_CHARS } from '../../store/limits.ts';
import type { TurnEvent } from '../../turns/turn-event.ts';
import type { Api, ApiContext, ApiParts } from '../api.ts';
import type { AcceptedTurn, ChatRequest, Reply } from '../backend.ts';
import { answerJson } from '../direct-answer.ts';
import { shownError } from '../error-answer.ts';
import { frame, wantsStream } from '../event-stream.ts';
import { callerOf } from '../key-scope.ts';
import { errorOfReply, nameTurn, statusOfReply, streamTurn, type TurnWriter } from '../replies.ts';
import { json, jsonBody, jsonOrStream, route } from '../schemas.ts';

/** Names that clients give: long enough for any id, short enough for a key. */
const name = z.string().min(1).max(512);

const bodySchema = z
  .strictObject({
    text: z.string().min(1).openapi({ description: 'For the agent, or a slash command.' }),
    conversation: name.nullish().openapi({ description: 'Names a lasting conversation; without it: one-shot.' }),
    user: name.nullish(),
    idempotency_key: name.nullish().openapi({ description: 'The same key again is the same request again, for 24 h.' }),
    stream: z.boolean().nullish(),
    model: name.nullish(),
    platform: z.enum(['api', 'web']).nullish().openapi({ description: 'Whose conversation it is; api unless said.' }),
  })
  .openapi('ChatRequest');

const replySchema = z
  .object({
    session_id: z.string(),
    turn_id: z.string().nullable().openapi({ description: 'Null for a slash command.' }),
    reply: z.string(),
    outcome: z.enum(TURN_OUTCOMES),
    model: z.string().nullable(),
    usage: z.object({ input: z.number().int(), output: z.number().int() }).nullable(),
    error: z.object({ code: z.string(), message: z.string(), hint: z.string() }).optional(),
  })
  .openapi('ChatReply');

const chat = route('post', '/v1/chat', 'chat', {
  access: 'chat',
  summary: 'Says something and waits for the reply; the turn goes on when the client does not wait',
  request: {
    body: jsonBody(bodySchema, true),
    headers: z.object({ 'idempotency-key': z.string().optional() }),
  },
  responses: {
    200: jsonOrStream(
      replySchema,
      'The reply, or why there is none. As a stream: `session`, `text`, `tool` and `done`.',
    ),
    502: json(replySchema, 'The turn failed.'),
    504: json(replySchema, 'The turn took too long.'),
  },
});

/** The native way to talk. */
export function addChatRoutes(app: Api, parts: ApiParts): void {
  app.openapi(chat, async (c) => {
    const body = c.req.valid('json');
    assertSayable(body.text);
    const accepted = await parts.backend.receive(chatRequestOf(c, body));
    nameTurn(c, accepted);
    if (body.stream ?? wantsStream(c)) return streamTurn(c, parts, accepted, chatWriter(accepted));
    const reply = await accepted.reply;
    nameTurn(c, reply);
    const status = statusOfReply(reply);
    if (status !== 200) c.env.outgoing.setHeader('x-should-retry', 'false');
    return answerJson(c, replyView(reply), status);
  });
}

/** Checked here, where the field has a name; the store would refuse it too. */
export function assertSayable(text: string): void {
  if (text.length <= MAX_TEXT_CHARS) return;
  throw new MoiraiError(
    'message_too_large',
    `the text has ${text.length} characters; at most ${MAX_TEXT_CHARS} are kept`,
  );
}

function chatRequestOf(c: ApiContext, body: z.output<typeof bodySchema>): ChatRequest {
  return {
    text: body.text,
    conversation: body.conversation ?? null,
    platform: body.platform ?? 'api',
    userId: body.user ?? null,
    idempotencyKey: body.idempotency_key ?? c.req.header('idempotency-key') ?? null,
    caller: callerOf(c),
    model: body.model ?? null,
    history: [],
  };
}

function replyView(reply: Reply) {
  const error = errorOfReply(reply);
  return {
    session_id: reply.sessionId,
    turn_id: reply.turnId,
    reply: reply.text,
    outcome: reply.outcome,
    model: reply.model,
    usage: reply.usage === null ? null : { ...reply.usage },
    ...(error === null ? {} : { error: { ...error } }),
  };
}

/** A turn as `/v1/chat` streams it. */
export function chatWriter({ sessionId, turnId }: AcceptedTurn): TurnWriter {
  const names = { session_id: sessionId, turn_id: turnId };
  return {
    opening: () => frame(names, { event: 'session' }),
    event: frameOf,
    reply: (reply) => frame(replyView(reply), { event: 'done' }),
    failure: (failure) => {
      const nothing = { reply: '', outcome: 'failed', model: null, usage: null };
      return frame({ ...names, ...nothing, error: shownError(failure) }, { event: 'done' });
    },
  };
}

/** What a client is shown of a turn; nothing for what it has no use for. */
function frameOf(event: TurnEvent): string {
  if (event.type === 'text') return frame({ text: event.text }, { event: 'text' });
  if (event.type === 'tool') {
    const { id, name, state } = event;
    const rest = event.state === 'start' ? { args: event.args } : { ok: event.ok };
    return frame({ id, name, state, ...rest }, { event: 'tool' });
  }
  if (event.type !== 'question') return '';
  const { type: _, ...question } = event;
  return frame(question, { event: 'approval' });
}

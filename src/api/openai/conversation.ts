import { z } from '@hono/zod-openapi';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { TurnEvent } from '../../turns/turn-event.ts';
import type { ApiContext, ApiParts } from '../api.ts';
import type { AcceptedTurn, ApiBackend, ChatRequest, PastMessage, Reply } from '../backend.ts';
import { answerJson } from '../direct-answer.ts';
import { hintOf, openAiError, type ShownError, shownError, statusOf } from '../error-answer.ts';
import { callerOf } from '../key-scope.ts';
import { errorOfReply, nameTurn, ReplyText, statusOfReply, streamTurn, type TurnWriter } from '../replies.ts';
import { assertSayable } from '../routes/chat.ts';

/** What the two OpenAI-compatible endpoints have in common: a list of messages becomes something said. */

/** Only text can be said; parts of other kinds are refused by name rather than left out. */
const partSchema = z.looseObject({ type: z.string(), text: z.string().optional() });

export const contentSchema = z.union([z.string(), z.array(partSchema)]).nullish();
export type Content = z.output<typeof contentSchema>;

export const conversationField = z
  .union([z.string().min(1).max(512), z.looseObject({ id: z.string().min(1).max(512) })])
  .nullish()
  .openapi({ description: 'Names a lasting conversation, as the header `x-moirai-conversation` does.' });

export const conversationHeaders = z.object({
  'x-moirai-conversation': z
    .string()
    .optional()
    .openapi({ description: 'Names a lasting conversation. Without it the messages are the history: one-shot.' }),
  'idempotency-key': z.string().optional(),
});

const TEXT_PARTS = new Set(['text', 'input_text', 'output_text', 'refusal']);

export function textOf(content: Content, where: string): string {
  if (content === null || content === undefined) return '';
  if (typeof content === 'string') return content;
  for (const { type } of content) {
    if (TEXT_PARTS.has(type)) continue;
    throw new MoiraiError('bad_input', `${where} has a part of type "${type}"; only text is understood`);
  }
  return content.map(({ text = '' }) => text).join('');
}

/** Roles by the names of both endpoints and of their older versions. */
export function roleOf(role: string, where: string): PastMessage['role'] {
  if (role === 'developer') return 'system';
  if (role === 'function') return 'tool';
  if (role === 'system' || role === 'user' || role === 'assistant' || role === 'tool') return role;
  throw new MoiraiError('bad_input', `${where} has the role "${role}"; there are system, user, assistant and tool`);
}

/** Names by which a client may ask for whatever model is configured. */
const CONFIGURED = ['moirai', 'default', ''];

interface OpenAiRequest {
  readonly messages: readonly PastMessage[];
  readonly conversation: z.output<typeof conversationField>;
  readonly user: string | null | undefined;
  readonly model: string | null | undefined;
  readonly stream: boolean | null | undefined;
}

/** The last message is what is said; the ones before are the history, unless the conversation has its own. */
function chatRequestOf(c: ApiContext, backend: ApiBackend, asked: OpenAiRequest): ChatRequest {
  const last = asked.messages.at(-1);
  if (last === undefined || last.role !== 'user') {
    throw new MoiraiError('bad_input', 'the last message is what is said, and must be of the role "user"');
  }
  if (last.text === '') throw new MoiraiError('bad_input', 'the last message is empty');
  assertSayable(last.text);
  const { conversation: field, model } = asked;
  const isConfigured = model === backend.model || CONFIGURED.includes(model ?? '');
  const conversation = c.req.header('x-moirai-conversation') ?? (typeof field === 'object' ? field?.id : field) ?? null;
  return {
    text: last.text,
    conversation,
    platform: 'api',
    userId: asked.user ?? null,
    idempotencyKey: c.req.header('idempotency-key') ?? null,
    caller: callerOf(c),
    model: isConfigured ? null : (model ?? null),
    history: conversation === null ? asked.messages.slice(0, -1) : [],
  };
}

/** One reply in the shapes of an endpoint, whole or as a stream. */
export abstract class OpenAiWriter implements TurnWriter {
  /** The unique part of ids: they name the turn. A slash command is no turn, and names its session. */
  protected readonly tailOfId: string;
  protected readonly model: string;
  protected readonly createdAt = Math.floor(Date.now() / 1000);
  protected readonly text = new ReplyText();

  constructor({ turnId, sessionId }: AcceptedTurn, model: string) {
    this.tailOfId = (turnId ?? sessionId).replace(/^[a-z]+_/, '');
    this.model = model;
  }

  abstract whole(reply: Reply): object;
  abstract opening(): string;
  protected abstract delta(text: string): string;
  protected abstract end(reply: Reply): string;
  protected abstract failed(error: ShownError, status: number): string;

  event(event: TurnEvent): string {
    return event.type === 'text' ? this.delta(this.text.piece(event.text)) : '';
  }

  /** A turn that failed or was stopped is an error here: these clients know no other outcome. */
  reply(reply: Reply): string {
    const failure = failureOf(reply);
    if (failure !== null) return this.failed(failure.error, failure.status);
    const rest = this.text.rest(reply.text);
    return `${rest === '' ? '' : this.delta(this.text.piece(rest))}${this.end(reply)}`;
  }

  failure(failure: MoiraiError): string {
    return this.failed(shownError(failure), statusOf(failure.code));
  }
}

type WriterOf = (accepted: AcceptedTurn, model: string) => OpenAiWriter;

/** Says what a client asked for, and answers with the reply as the writer has it. */
export async function answerOpenAi(
  c: ApiContext,
  parts: ApiParts,
  asked: OpenAiRequest,
  writerOf: WriterOf,
): Promise<Response> {
  const { backend } = parts;
  const request = chatRequestOf(c, backend, asked);
  const accepted = await backend.receive(request);
  nameTurn(c, accepted);
  const writer = writerOf(accepted, request.model ?? backend.model);
  if (asked.stream === true) return streamTurn(c, parts, accepted, writer);
  const reply = await accepted.reply;
  nameTurn(c, reply);
  const failure = failureOf(reply);
  if (failure === null) return answerJson(c, writer.whole(reply));
  const { error, status } = failure;
  c.header('x-should-retry', 'false');
  return c.json({ error: openAiError(error, status) }, status);
}

/** What the gateway says of a turn that was stopped would be taken for the model's words. */
function failureOf(reply: Reply): { readonly error: ShownError; readonly status: 409 | 502 | 504 } | null {
  const status = statusOfReply(reply);
  const error = errorOfReply(reply);
  if (error !== null && status !== 200) return { error, status };
  if (reply.outcome !== 'interrupted') return null;
  return { error: { code: 'turn_stopped', message: reply.text, hint: hintOf('turn_stopped') }, status: 409 };
}

export function usageOf({ usage }: Reply): { input: number; output: number } {
  return usage ?? { input: 0, output: 0 };
}

import { z } from '@hono/zod-openapi';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ApiContext } from '../api.ts';
import type { AcceptedTurn, ApiBackend, ChatRequest, PastMessage, Reply } from '../backend.ts';
import { errorOfReply, statusOfReply } from '../replies.ts';
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

export interface OpenAiRequest {
  readonly messages: readonly PastMessage[];
  readonly conversation: z.output<typeof conversationField>;
  readonly user: string | null | undefined;
  readonly model: string | null | undefined;
}

/** The last message is what is said; the ones before are the history, unless the conversation has its own. */
export function chatRequestOf(c: ApiContext, backend: ApiBackend, asked: OpenAiRequest): ChatRequest {
  const last = asked.messages.at(-1);
  if (last === undefined || last.role !== 'user') {
    throw new MoiraiError('bad_input', 'the last message is what is said, and must be of the role "user"');
  }
  if (last.text === '') throw new MoiraiError('bad_input', 'the last message is empty');
  assertSayable(last.text);
  const { conversation: field, model } = asked;
  const conversation = c.req.header('x-moirai-conversation') ?? (typeof field === 'object' ? field?.id : field) ?? null;
  return {
    text: last.text,
    conversation,
    platform: 'api',
    userId: asked.user ?? null,
    idempotencyKey: c.req.header('idempotency-key') ?? null,
    credential: c.get('credential'),
    model: isConfigured(backend, model) ? null : (model ?? null),
    history: conversation === null ? asked.messages.slice(0, -1) : [],
  };
}

function isConfigured(backend: ApiBackend, model: string | null | undefined): boolean {
  return model === null || model === undefined || model === backend.model || CONFIGURED.includes(model);
}

/** The unique part of ids in OpenAI's shapes: they name the turn. A slash command is no turn, and names its session. */
export function tailOfId({ turnId, sessionId }: Pick<AcceptedTurn, 'turnId' | 'sessionId'>): string {
  return (turnId ?? sessionId).replace(/^[a-z]+_/, '');
}

export function usageOf({ usage }: Reply): { input: number; output: number } {
  return usage ?? { input: 0, output: 0 };
}

/** A turn that failed is an error here: these clients know no other outcome. */
export function failureOf(reply: Reply) {
  const error = errorOfReply(reply);
  return error === null ? null : { error, status: statusOfReply(reply) as 502 | 504 };
}

import { createRoute, type RouteConfig, z } from '@hono/zod-openapi';
import {
  END_REASONS,
  LINEAGES,
  RESUME_REASONS,
  SESSION_KINDS,
  SESSION_STATES,
  SUSPEND_REASONS,
} from '../lifecycle/states.ts';
import { type RouteAccess, requireScope } from './key-scope.ts';

/** The shapes of `src/engine/views.ts`, as the specification shows them. */

const time = z.string().openapi({ format: 'date-time', description: 'ISO 8601, UTC' });

export const SessionSchema = z
  .object({
    id: z.string(),
    key: z.string(),
    kind: z.enum(SESSION_KINDS),
    platform: z.string(),
    user_id: z.string().nullable(),
    title: z.string().nullable(),
    state: z.enum(SESSION_STATES),
    started_at: time,
    last_activity_at: time,
    expires_at: time.nullable(),
    ended_at: time.nullable(),
    end_reason: z.enum(END_REASONS).nullable(),
    end_cause: z.string().nullable(),
    parent_id: z.string().nullable(),
    lineage: z.enum(LINEAGES).nullable(),
    message_count: z.number().int(),
    owner: z.string().nullable(),
    last_heartbeat_at: time.nullable(),
    resume_reason: z.enum(RESUME_REASONS).nullable(),
    suspend_reason: z.enum(SUSPEND_REASONS).nullable(),
    tokens: z.object({ input: z.number().int(), output: z.number().int() }),
  })
  .openapi('Session');

export const MessageSchema = z
  .object({
    role: z.string(),
    text: z.string(),
    at: time,
    turn_id: z.string().nullable(),
    session_id: z.string(),
    position: z.number().int(),
    data: z.unknown().openapi({ description: 'What else is kept of it: tool calls and their like.' }),
  })
  .openapi('Message');

export const EventSchema = z
  .looseObject({
    id: z.string(),
    seq: z.number().int(),
    session_seq: z.number().int().nullable(),
    type: z.string(),
    at: time,
    session_id: z.string().nullable(),
    session_key: z.string().nullable(),
    platform: z.string().nullable(),
    user_id: z.string().nullable(),
    kind: z.enum(SESSION_KINDS).nullable(),
    instance: z.string().nullable(),
  })
  .openapi('Event');

export const ErrorSchema = z
  .object({
    error: z.looseObject({
      code: z.string().openapi({ description: 'Stable; see docs/errors.md.' }),
      message: z.string(),
      hint: z.string(),
    }),
  })
  .openapi('Error');

export const SubscriberSchema = z
  .object({
    name: z.string(),
    events: z.array(z.string()),
    created_at: time,
    position: z.number().int().openapi({ description: 'Every event up to this `seq` was delivered or given up.' }),
    lanes: z.number().int().openapi({ description: 'Conversations with something undelivered.' }),
    lag: z.number().int().openapi({ description: 'Undelivered events, at most.' }),
    oldest_pending_at: time.nullable(),
    failures: z.number().int(),
    dead_letters: z.number().int(),
    last_error: z.string().nullable(),
  })
  .openapi('Subscriber');

export const JobSchema = z
  .object({
    id: z.string(),
    name: z.string().nullable(),
    schedule: z.string(),
    timezone: z.string(),
    prompt: z.string(),
    deliver: z.string().openapi({ description: '`home`, `local`, or the conversation that is told.' }),
    state: z.enum(['active', 'paused', 'done']),
    created_at: time,
    next_at: time.nullable(),
    made_in: z.string().nullable().openapi({ description: 'The key of the conversation it was made in.' }),
    made_by: z.string().nullable(),
    last_run: z
      .object({
        session_id: z.string(),
        due_at: time,
        state: z.enum(SESSION_STATES),
        end_reason: z.enum(END_REASONS).nullable(),
      })
      .nullable(),
  })
  .openapi('Job');

export const ReadinessSchema = z
  .object({
    state: z.enum(['starting', 'ready', 'refusing', 'draining', 'stopped']),
    checks: z.record(z.string(), z.object({ ok: z.boolean(), detail: z.string() })),
  })
  .openapi('Readiness');

/** A page of a list. */
export function pageOf<T extends z.ZodType>(item: T) {
  return z.object({
    data: z.array(item),
    next: z.string().nullable().openapi({ description: 'The `cursor` of the next page; null at the end.' }),
  });
}

/**
 * The definition of a route: what the specification says of it, which keys open it, and what of a request is checked. There
 * is no route without `access`: whoever adds one decides which scope it needs.
 */
export function route<
  const Method extends 'get' | 'post' | 'delete',
  const Path extends string,
  const Rest extends Pick<RouteConfig, 'summary' | 'request' | 'responses'> & { readonly access: RouteAccess },
>(method: Method, path: Path, operationId: string, { access, ...rest }: Rest) {
  const security = access === 'open' ? [] : [{ key: [] }, {}];
  const declared = { security, 'x-moirai-access': access, middleware: requireScope(access) };
  const definition = { method, path, operationId, ...(rest as unknown as Rest) };
  // The type of the middleware, which adds nothing, would take the types of what a request brings from the handlers.
  return createRoute(Object.assign(definition, declared) as typeof definition);
}

/** An answer in JSON, for a route's definition. */
export function json<T extends z.ZodType>(schema: T, description: string) {
  return { description, content: { 'application/json': { schema } } };
}

/** The body of a request, for a route's definition. */
export function jsonBody<T extends z.ZodType>(schema: T, required: boolean) {
  return { required, content: { 'application/json': { schema } } };
}

/** An answer in JSON or as server-sent events, as the client wants it, for a route's definition. */
export function jsonOrStream<T extends z.ZodType>(schema: T, description: string) {
  return { description, content: { 'application/json': { schema }, 'text/event-stream': { schema: z.string() } } };
}

export const idParams = z.object({
  id: z.string().openapi({ description: 'The id of a session, or any beginning of it that is its alone.' }),
});

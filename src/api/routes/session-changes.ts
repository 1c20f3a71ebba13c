import { createRoute, z } from '@hono/zod-openapi';
import { sessionView } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { conversationOf } from '../../store/transactions/conversations.ts';
import type { Api, ApiParts } from '../api.ts';
import { idParams, json, jsonBody, SessionSchema } from '../schemas.ts';
import { findSession } from './sessions.ts';

/** The reasons for which somebody from outside may end a session; the others are the machine's to give. */
const REASONS = ['api_close', 'admin_close'] as const;
type Reason = (typeof REASONS)[number];

const title = z.string().max(1000).nullish();

const end = createRoute({
  method: 'post',
  path: '/v1/sessions/{id}/end',
  operationId: 'endSession',
  summary: 'Ends a session; ending it twice returns the first end',
  request: {
    params: idParams,
    body: jsonBody(
      z.strictObject({
        reason: z
          .string()
          .nullish()
          .openapi({ enum: [...REASONS], default: 'api_close' }),
      }),
      false,
    ),
  },
  responses: { 200: json(SessionSchema, 'The session as it ended.') },
});

const continued = {
  200: json(SessionSchema, 'It was open: nothing changed.'),
  201: json(SessionSchema, 'The new session.'),
};

const resume = createRoute({
  method: 'post',
  path: '/v1/sessions/{id}/resume',
  operationId: 'resumeSession',
  summary: 'Goes on with a session in a new one that sees its transcript',
  request: { params: idParams, body: jsonBody(z.strictObject({ title }), false) },
  responses: continued,
});

const branch = createRoute({
  method: 'post',
  path: '/v1/sessions/{id}/branch',
  operationId: 'branchSession',
  summary: 'Starts a new session that sees the transcript of another',
  request: { params: idParams, body: jsonBody(z.strictObject({ title }), false) },
  responses: continued,
});

const rename = createRoute({
  method: 'post',
  path: '/v1/sessions/{id}/title',
  operationId: 'setTitle',
  summary: 'Gives a session a title, or none',
  request: { params: idParams, body: jsonBody(z.strictObject({ title: z.string().max(1000).nullable() }), true) },
  responses: { 200: json(SessionSchema, 'The session with its title.') },
});

/** What may be done to a session from outside. */
export function addSessionChangeRoutes(app: Api, { engine }: ApiParts): void {
  const { store } = engine;
  app.openapi(end, async (c) => {
    const reason = parseReason(c.req.valid('json').reason ?? 'api_close');
    const { id } = await findSession(store, c.req.valid('param').id);
    const { session } = await engine.end(id, { reason, trigger: 'api' });
    return c.json(sessionView(session), 200);
  });
  app.openapi(rename, async (c) => {
    const { id } = await findSession(store, c.req.valid('param').id);
    const { session } = await engine.setTitle(id, c.req.valid('json').title);
    return c.json(sessionView(session), 200);
  });
  const continueFrom = async (idOrPrefix: string, lineage: 'resume' | 'branch', name: string | null | undefined) => {
    const from = await findSession(store, idOrPrefix);
    // Over HTTP nobody stays who could die: what was attached to a process is not attached to this one.
    const conversation = { ...conversationOf(from), attached: false };
    const named = name === null || name === undefined ? {} : { title: name };
    return engine.continueFrom(from.id, lineage, { trigger: 'api', conversation, ...named });
  };
  app.openapi(resume, async (c) => {
    const { session, created } = await continueFrom(c.req.valid('param').id, 'resume', c.req.valid('json').title);
    return c.json(sessionView(session), created ? 201 : 200);
  });
  app.openapi(branch, async (c) => {
    const { session, created } = await continueFrom(c.req.valid('param').id, 'branch', c.req.valid('json').title);
    return c.json(sessionView(session), created ? 201 : 200);
  });
}

function parseReason(text: string): Reason {
  const reason = REASONS.find((known) => known === text);
  if (reason !== undefined) return reason;
  throw new MoiraiError('bad_reason', `"${text}" is not a reason to give here; use ${REASONS.join(' or ')}`);
}

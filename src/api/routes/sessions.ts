import { createRoute, z } from '@hono/zod-openapi';
import { messageView, sessionView } from '../../engine/views.ts';
import type { Session } from '../../lifecycle/session.ts';
import { END_REASONS, SESSION_KINDS, SESSION_STATES } from '../../lifecycle/states.ts';
import type { Store } from '../../store/port.ts';
import type { SessionFilter } from '../../store/transactions/reading.ts';
import type { Api, ApiParts } from '../api.ts';
import { cursorParam, limitParam, listParam, parseList, parseNames, parseSince, wholeNumber } from '../query.ts';
import { idParams, json, MessageSchema, pageOf, SessionSchema } from '../schemas.ts';

/** What people mean by "my sessions"; the machine's own kinds are shown when asked for. */
const DEFAULT_KINDS = ['chat', 'cli', 'api'];

const listQuery = z.object({
  state: listParam(`${SESSION_STATES.join(', ')}.`),
  kind: listParam(`${SESSION_KINDS.join(', ')}, or all; ${DEFAULT_KINDS.join(', ')} unless said or a key is given.`),
  platform: listParam('telegram, discord, api, ...'),
  key: z.string().optional().openapi({ description: 'One conversation, of whatever kind.' }),
  user: z.string().optional().openapi({ description: "One user's." }),
  q: z.string().optional().openapi({ description: 'Part of the title or the id.' }),
  reason: listParam('Why they ended.'),
  since: z.string().optional().openapi({ description: 'Started since a time (ISO 8601) or a while ago (24h).' }),
  limit: limitParam,
  cursor: cursorParam,
});

const list = createRoute({
  method: 'get',
  path: '/v1/sessions',
  operationId: 'listSessions',
  summary: 'Sessions, newest start first',
  request: { query: listQuery },
  responses: { 200: json(pageOf(SessionSchema), 'A page of them.') },
});

const show = createRoute({
  method: 'get',
  path: '/v1/sessions/{id}',
  operationId: 'getSession',
  summary: 'One session',
  request: { params: idParams },
  responses: { 200: json(SessionSchema, 'The session.') },
});

const messages = createRoute({
  method: 'get',
  path: '/v1/sessions/{id}/messages',
  operationId: 'listMessages',
  summary: 'The transcript of one session, oldest first',
  request: {
    params: idParams,
    query: z.object({ limit: limitParam, cursor: wholeNumber(0, Number.MAX_SAFE_INTEGER).optional() }),
  },
  responses: { 200: json(pageOf(MessageSchema), 'A page of it.') },
});

/** Sessions to look at. */
export function addSessionRoutes(app: Api, { engine }: ApiParts): void {
  const { store } = engine;
  app.openapi(list, async (c) => {
    const { sessions, next } = await store.read('listSessions', filterOf(c.req.valid('query')));
    return c.json({ data: sessions.map(sessionView), next }, 200);
  });
  app.openapi(show, async (c) => c.json(sessionView(await findSession(store, c.req.valid('param').id)), 200));
  app.openapi(messages, async (c) => {
    const { limit, cursor: after = 0 } = c.req.valid('query');
    const session = await findSession(store, c.req.valid('param').id);
    const page = await store.read('listMessages', { sessionId: session.id, after, limit });
    const last = page.at(-1);
    const next = last !== undefined && last.position < session.messageCount ? String(last.position) : null;
    return c.json({ data: page.map(messageView), next }, 200);
  });
}

/** One session by its id or any unique beginning of it. */
export function findSession(store: Store, idOrPrefix: string): Promise<Session> {
  return store.read('findSession', { idOrPrefix });
}

function filterOf(query: z.output<typeof listQuery>): SessionFilter {
  const { kind, state, platform, reason, key, user, q, since, limit, cursor } = query;
  return {
    kinds: kindsOf(kind, key),
    states: parseNames('state', state, SESSION_STATES),
    reasons: parseNames('reason', reason, END_REASONS),
    platforms: parseList(platform),
    key: key ?? null,
    user: user ?? null,
    text: q ?? null,
    since: since === undefined ? null : parseSince(since, Date.now()),
    limit,
    cursor: cursor ?? null,
  };
}

/** A key names a conversation of one kind already. No kinds at all means all. */
function kindsOf(kind: string | undefined, key: string | undefined): readonly string[] {
  if (kind === undefined) return key === undefined ? DEFAULT_KINDS : [];
  const kinds = parseNames('kind', kind, [...SESSION_KINDS, 'all']);
  return kinds.includes('all') ? [] : kinds;
}

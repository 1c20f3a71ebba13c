import { z } from '@hono/zod-openapi';
import { parkSession } from '../../engine/parking.ts';
import { messageView, sessionView } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { parseList, parseNames } from '../../lifecycle/list-filters.ts';
import type { Session } from '../../lifecycle/session.ts';
import { buildKey, parseKey } from '../../lifecycle/session-key.ts';
import { END_REASONS, SESSION_KINDS, SESSION_STATES } from '../../lifecycle/states.ts';
import type { Store } from '../../store/port.ts';
import { conversationOf } from '../../store/transactions/conversations.ts';
import type { SessionFilter } from '../../store/transactions/reading.ts';
import type { Api, ApiContext, ApiParts } from '../api.ts';
import { callerOf } from '../key-scope.ts';
import { cursorParam, limitParam, listParam, parseSince, wholeNumber } from '../query.ts';
import { idParams, json, jsonBody, MessageSchema, pageOf, route, SessionSchema } from '../schemas.ts';

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

const list = route('get', '/v1/sessions', 'listSessions', {
  access: 'see',
  summary: 'Sessions, newest start first',
  request: { query: listQuery },
  responses: { 200: json(pageOf(SessionSchema), 'A page of them.') },
});

const show = route('get', '/v1/sessions/{id}', 'getSession', {
  access: 'see',
  summary: 'One session',
  request: { params: idParams },
  responses: { 200: json(SessionSchema, 'The session.') },
});

const messages = route('get', '/v1/sessions/{id}/messages', 'listMessages', {
  access: 'see',
  summary: 'The transcript of one session, oldest first',
  request: {
    params: idParams,
    query: z.object({ limit: limitParam, cursor: wholeNumber(0, Number.MAX_SAFE_INTEGER).optional() }),
  },
  responses: { 200: json(pageOf(MessageSchema), 'A page of it.') },
});

/** The reasons for which a client may end a session; the gateway alone gives the others. */
const REASONS = ['api_close', 'admin_close'] as const;
type Reason = (typeof REASONS)[number];

const end = route('post', '/v1/sessions/{id}/end', 'endSession', {
  access: 'chat',
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

/** The ways to go on with a session in a new one. */
const CONTINUATIONS = {
  resume: 'Goes on with a session in a new one that sees its transcript',
  branch: 'Starts a new session that sees the transcript of another',
} as const;

const rename = route('post', '/v1/sessions/{id}/title', 'setTitle', {
  access: 'chat',
  summary: 'Gives a session a title, or none',
  request: { params: idParams, body: jsonBody(z.strictObject({ title: z.string().max(1000).nullable() }), true) },
  responses: { 200: json(SessionSchema, 'The session with its title.') },
});

/** What an operator may do to a session that is to wait, or to go on. */
const PARKING = {
  suspend: 'Parks a session: a turn that runs is stopped, and what is said waits until it is released',
  release: 'Opens a parked session again; what waited in it goes on',
} as const;

/** Sessions to look at. */
export function addSessionRoutes(app: Api, { engine }: ApiParts): void {
  const { store } = engine;
  app.openapi(list, async (c) => {
    const { sessions, next } = await store.read('listSessions', {
      ...filterOf(c.req.valid('query')),
      orKey: ownKey(c, c.req.valid('query').key),
      within: c.get('within'),
    });
    return c.json({ data: sessions.map(sessionView), next }, 200);
  });
  app.openapi(show, async (c) => c.json(sessionView(await findSession(c, store, c.req.valid('param').id)), 200));
  app.openapi(messages, async (c) => {
    const { limit, cursor: after = 0 } = c.req.valid('query');
    const session = await findSession(c, store, c.req.valid('param').id);
    const page = await store.read('listMessages', { sessionId: session.id, after, limit });
    const last = page.at(-1);
    const next = last !== undefined && last.position < session.messageCount ? String(last.position) : null;
    return c.json({ data: page.map(messageView), next }, 200);
  });
}

/** What a key calls `agent:main:api:dm:harbour` is in its own namespace; it need not know what that is called. */
function ownKey(c: ApiContext, key: string | undefined): string | null {
  const { namespace } = callerOf(c);
  if (key === undefined || namespace === null) return null;
  const conversation = parseKey(key);
  return conversation.scope === undefined ? buildKey({ ...conversation, scope: namespace }) : null;
}

/** One session by its id or any unique beginning of it; those that the caller does not reach are not there. */
export function findSession(c: ApiContext, store: Store, idOrPrefix: string): Promise<Session> {
  return store.read('findSession', { idOrPrefix, within: c.get('within') });
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

/** What may be done to a session from outside. */
export function addSessionChangeRoutes(app: Api, { engine }: ApiParts): void {
  const { store } = engine;
  app.openapi(end, async (c) => {
    const reason = parseReason(c.req.valid('json').reason ?? 'api_close');
    const { id } = await findSession(c, store, c.req.valid('param').id);
    const { session } = await engine.end(id, { reason, trigger: 'api' });
    return c.json(sessionView(session), 200);
  });
  app.openapi(rename, async (c) => {
    const { id } = await findSession(c, store, c.req.valid('param').id);
    const { session } = await engine.setTitle(id, c.req.valid('json').title);
    return c.json(sessionView(session), 200);
  });
  for (const verb of ['suspend', 'release'] as const) {
    const park = route('post', `/v1/sessions/{id}/${verb}`, `${verb}Session`, {
      access: 'admin',
      summary: PARKING[verb],
      request: { params: idParams },
      responses: { 200: json(SessionSchema, 'The session as it is now; it may have been so before.') },
    });
    app.openapi(park, async (c) => {
      const { id } = await findSession(c, store, c.req.valid('param').id);
      return c.json(sessionView(await parkSession(engine, id, verb)), 200);
    });
  }
  for (const lineage of ['resume', 'branch'] as const) {
    const goOn = route('post', `/v1/sessions/{id}/${lineage}`, `${lineage}Session`, {
      access: 'chat',
      summary: CONTINUATIONS[lineage],
      request: { params: idParams, body: jsonBody(z.strictObject({ title: z.string().max(1000).nullish() }), false) },
      responses: {
        200: json(SessionSchema, 'It was open: nothing changed.'),
        201: json(SessionSchema, 'The new session.'),
      },
    });
    app.openapi(goOn, async (c) => {
      const { title } = c.req.valid('json');
      const from = await findSession(c, store, c.req.valid('param').id);
      // An HTTP client is no process that can die: what was attached to a process is not attached to this request.
      const conversation = { ...conversationOf(from), attached: false };
      const named = title === null || title === undefined ? {} : { title };
      const options = { trigger: 'api', conversation, ...named } as const;
      const { session, created } = await engine.continueFrom(from.id, lineage, options);
      return c.json(sessionView(session), created ? 201 : 200);
    });
  }
}

function parseReason(text: string): Reason {
  const reason = REASONS.find((known) => known === text);
  if (reason !== undefined) return reason;
  throw new MoiraiError('bad_reason', `"${text}" is not a reason to give here; use ${REASONS.join(' or ')}`);
}

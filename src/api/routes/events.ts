import { z } from '@hono/zod-openapi';
import { eventView } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { parseTypes } from '../../lifecycle/list-filters.ts';
import type { Store } from '../../store/port.ts';
import type { Api, ApiContext, ApiParts } from '../api.ts';
import { streamEvents, wantsStream } from '../event-stream.ts';
import type { Wanted } from '../event-tail.ts';
import { limitParam, listParam } from '../query.ts';
import { EventSchema, idParams, jsonOrStream, route } from '../schemas.ts';
import { findSession } from './sessions.ts';

const pageQuery = z.object({
  after: z.string().optional().openapi({ description: 'Only what came after this `seq`; `now` for what comes next.' }),
  cursor: z.string().optional().openapi({ description: 'The same as `after`.' }),
  types: listParam('Such as session:end or session:*.'),
  limit: limitParam,
});

const answers = {
  200: jsonOrStream(
    z.object({
      data: z.array(EventSchema),
      next: z.number().int().openapi({ description: 'The next `after`.' }),
    }),
    'A page, or a stream that goes on; the id of a streamed event is its `seq`.',
  ),
};

const list = route('get', '/v1/events', 'listEvents', {
  access: 'see',
  summary: 'The log, oldest first; with `Accept: text/event-stream` it goes on',
  request: {
    query: pageQuery.extend({ session: z.string().optional().openapi({ description: 'One session.' }) }),
    headers: z.object({ 'last-event-id': z.string().optional().openapi({ description: 'Resumes a stream.' }) }),
  },
  responses: answers,
});

const ofSession = route('get', '/v1/sessions/{id}/events', 'listSessionEvents', {
  access: 'see',
  summary: 'The events of one session',
  request: { params: idParams, query: pageQuery },
  responses: answers,
});

/** The log to read and to follow. */
export function addEventRoutes(app: Api, parts: ApiParts): void {
  app.openapi(list, (c) => answer(c, parts, c.req.valid('query')));
  app.openapi(ofSession, (c) => answer(c, parts, { ...c.req.valid('query'), session: c.req.valid('param').id }));
}

type EventsQuery = z.output<typeof pageQuery> & { readonly session?: string | undefined };

async function answer(c: ApiContext, parts: ApiParts, query: EventsQuery): Promise<Response> {
  const { store } = parts.engine;
  const types = parseTypes(query.types);
  const sessionId = query.session === undefined ? null : (await findSession(c, store, query.session)).id;
  const stream = wantsStream(c);
  // A browser that reconnects asks for the same address again: what it has seen is newer than what the address says.
  const asked = (stream ? c.req.header('last-event-id') : undefined) ?? query.after ?? query.cursor ?? '0';
  const wanted: Wanted = { after: await startOf(store, asked), types, sessionId, within: c.get('within') };
  if (!stream) return c.json(await readPage(store, wanted, query.limit), 200);
  return streamEvents(c, parts.closing, (listener) => parts.tail.follow(wanted, listener));
}

async function startOf(store: Store, asked: string): Promise<number> {
  if (asked === 'now') return store.read('lastSeq', {});
  if (/^\d{1,15}$/.test(asked)) return Number(asked);
  throw new MoiraiError('bad_input', `after is the number of an event, or "now", not "${asked}"`);
}

async function readPage(store: Store, wanted: Wanted, limit: number) {
  // Read first: all up to here is in the page below or not wanted, and need not be searched again.
  const newest = await store.read('lastSeq', {});
  const page = await store.read('listEvents', { ...wanted, limit });
  const full = page.events.length === limit;
  return { data: page.events.map(eventView), next: full ? page.next : Math.max(page.next, newest) };
}

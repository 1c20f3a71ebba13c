import { z } from '@hono/zod-openapi';
import { isoTime } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { SubscriberStatus } from '../../store/transactions/subscribers.ts';
import type { Api, ApiParts } from '../api.ts';
import { json, jsonBody, pageOf, route, SubscriberSchema } from '../schemas.ts';

const list = route('get', '/v1/subscribers', 'listSubscribers', {
  access: 'read',
  summary: 'Who listens to the log, and how far they are',
  responses: { 200: json(pageOf(SubscriberSchema), 'All of them.') },
});

const replaySchema = z.strictObject({
  from: z.number().int().min(0).nullish().openapi({ description: 'Deliver everything again from this `seq` on.' }),
  dead: z.boolean().nullish().openapi({ description: 'Deliver the dead letters again; so it is without `from`.' }),
});

const replay = route('post', '/v1/subscribers/{name}/replay', 'replaySubscriber', {
  access: 'admin',
  summary: 'Delivers dead letters, or everything from a number on, once more',
  request: { params: z.object({ name: z.string() }), body: jsonBody(replaySchema, false) },
  responses: { 200: json(z.object({ events: z.number().int() }), 'How many events come again, at most.') },
});

/** Who listens to the log. */
export function addSubscriberRoutes(app: Api, { engine }: ApiParts): void {
  const { store } = engine;
  app.openapi(list, async (c) => {
    // Read first: a subscriber with nothing undelivered after that has had everything up to here.
    const newest = await store.read('lastSeq', {});
    const positions = await store.read('subscriberPositions', {});
    const all = await store.read('listSubscribers', {});
    const data = all.map((status) => subscriberView(status, positions[status.name] ?? newest));
    return c.json({ data, next: null }, 200);
  });
  app.openapi(replay, async (c) => {
    const { from, dead } = c.req.valid('json');
    const given = from !== null && from !== undefined;
    if (given && dead === true) throw new MoiraiError('bad_input', 'give either from or dead, not both');
    const { name } = c.req.valid('param');
    const { events } = await store.write('replay', { subscriber: name, fromSeq: given ? from : null });
    return c.json({ events }, 200);
  });
}

function subscriberView(status: SubscriberStatus, position: number) {
  return {
    name: status.name,
    events: [...status.patterns],
    created_at: isoTime(status.createdAt),
    position,
    lanes: status.lanes,
    lag: status.lag,
    oldest_pending_at: isoTime(status.oldestPendingAt),
    failures: status.failures,
    dead_letters: status.deadLetters,
    last_error: status.lastError,
  };
}

import { z } from '@hono/zod-openapi';
import { isoTime } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Store } from '../../store/port.ts';
import type { TimelineSpan } from '../../store/transactions/activity.ts';
import { ActivityTracker } from '../activity/tracker.ts';
import { PHASES } from '../activity/views.ts';
import { ActivityWatch } from '../activity/watching.ts';
import type { Api, ApiContext, ApiParts } from '../api.ts';
import { sendShared } from '../direct-answer.ts';
import { knowsTag } from '../entity-tag.ts';
import { streamEvents, wantsStream } from '../event-stream.ts';
import { parseSince, wholeNumber } from '../query.ts';
import { json, jsonOrStream, route } from '../schemas.ts';

const activitySchema = z
  .object({
    seq: z.number().int().openapi({ description: 'Follow the log after this number.' }),
    gateways: z.array(z.looseObject({ id: z.string(), name: z.string().nullable(), state: z.string() })),
    totals: z.object({
      open: z.number().int(),
      unowned: z.number().int().openapi({ description: 'Open sessions that nobody alive answers for: 0.' }),
    }),
    more: z.boolean().openapi({ description: 'There are more open sessions than are shown.' }),
    sessions: z.array(z.looseObject({ id: z.string(), phase: z.enum(PHASES), gateway: z.string().nullable() })),
  })
  .openapi('Activity');

const activity = route('get', '/v1/space/activity', 'getActivity', {
  access: 'see',
  summary: 'What goes on, for visualizers; with `Accept: text/event-stream` it goes on',
  request: {
    query: z.object({
      after: wholeNumber(0, Number.MAX_SAFE_INTEGER)
        .optional()
        .openapi({ description: 'Only what has changed since this `seq`, if that is known; a stream begins with it.' }),
    }),
    headers: z.object({
      'if-none-match': z.string().optional(),
      'last-event-id': z.string().optional().openapi({ description: 'The same as `after`, and newer.' }),
    }),
  },
  responses: {
    200: jsonOrStream(
      activitySchema,
      'All of it, or with `after` what has changed; or a stream of both, whose id is a `seq`.',
    ),
    304: { description: 'Nothing has changed since the given `ETag`.' },
  },
});

/** The most steps of a timeline: more than a screen has columns is of no use. */
const MOST_STEPS = 500;
const DAY_MS = 86_400_000;

const timeline = route('get', '/v1/space/timeline', 'getTimeline', {
  access: 'read',
  summary: 'How many sessions began and ended over time, by reason',
  request: {
    query: z.object({
      from: z.string().optional().openapi({ description: 'A time (ISO 8601) or a while ago; 24h unless given.' }),
      to: z.string().optional().openapi({ description: 'A time (ISO 8601) or a while ago; now unless given.' }),
      step: wholeNumber(1, 31 * 86_400)
        .optional()
        .openapi({ description: `Seconds; a hundredth of the span unless given, and at most ${MOST_STEPS} of them.` }),
    }),
  },
  responses: {
    200: json(
      z.object({
        from: z.string(),
        to: z.string(),
        step: z.number().int(),
        started: z.array(z.number().int()),
        ended: z.record(z.string(), z.array(z.number().int())),
      }),
      'One number for each step.',
    ),
  },
});

const sourcesSchema = z
  .object({
    sources: z.array(
      z.object({
        name: z.string(),
        base: z.string().openapi({ description: 'What stands before the paths of this gateway.' }),
      }),
    ),
    chat: z.boolean(),
  })
  .openapi('Sources');

/** Which gateways the page shows, and whether it can chat. */
export type Sources = z.output<typeof sourcesSchema>;

const sources = route('get', '/space.json', 'getSources', {
  access: 'any',
  summary: 'Which gateways the page shows: this one',
  responses: { 200: json(sourcesSchema, 'The gateways.') },
});

/** What the page and other visualizers ask for. */
export function addSpaceRoutes(app: Api, parts: ApiParts): void {
  const tracker = new ActivityTracker(parts);
  const watch = new ActivityWatch(parts, tracker);
  app.openapi(activity, async (c) => {
    const within = c.get('within');
    if (wantsStream(c)) {
      const after = cursorOf(c) ?? c.req.valid('query').after ?? null;
      return streamEvents(c, parts.closing, (listener) => watch.follow(after, within, listener));
    }
    await tracker.look();
    const { parts: pieces, etag } = tracker.snapshot(within);
    c.header('ETag', etag);
    c.header('Cache-Control', 'no-cache');
    if (knowsTag(c.req.header('if-none-match'), etag)) return c.body(null, 304);
    const { after } = c.req.valid('query');
    const delta = after === undefined ? null : tracker.deltaSinceSeq(after, within);
    if (delta !== null) return c.body(delta, 200, { 'Content-Type': 'application/json' });
    c.header('Content-Type', 'application/json');
    return sendShared(c, pieces);
  });
  app.openapi(timeline, async (c) => {
    const { from, to, step } = c.req.valid('query');
    const span = spanOf(from, to, step);
    const { started, ended } = await count(parts.engine.store, span);
    const times = { from: isoTime(span.from), to: isoTime(span.to), step: span.stepMs / 1000 };
    return c.json({ ...times, started, ended }, 200);
  });
  app.openapi(sources, async (c) => {
    const instances = await parts.engine.store.read('listInstances', {});
    const self = instances.find(({ id }) => id === parts.engine.instance);
    return c.json({ sources: [{ name: self?.name ?? self?.host ?? 'gateway', base: '' }], chat: true }, 200);
  });
}

/** A number the client has from another store, or cannot have, is no cursor: it gets everything. */
function cursorOf(c: ApiContext): number | null {
  const given = c.req.header('last-event-id') ?? '';
  return /^\d{1,15}$/.test(given) ? Number(given) : null;
}

function spanOf(from: string | undefined, to: string | undefined, step: number | undefined) {
  // A span ends before its last moment: what happened just now is in it.
  const now = Date.now() + 1;
  const end = to === undefined ? now : parseSince(to, now);
  const start = from === undefined ? end - DAY_MS : parseSince(from, now);
  if (end <= start) throw new MoiraiError('bad_input', 'from is before to');
  const stepMs = (step ?? Math.max(1, Math.ceil((end - start) / 100_000))) * 1000;
  const steps = Math.ceil((end - start) / stepMs);
  if (steps > MOST_STEPS) throw new MoiraiError('bad_input', `${steps} steps are too many: ${MOST_STEPS} at most`);
  return { from: start, to: end, stepMs };
}

/** How many steps are counted at a time: others read the same store, and should not wait for a week of ends. */
const STEPS_AT_ONCE = 20;

async function count(store: Store, { from, to, stepMs }: TimelineSpan) {
  const started: number[] = [];
  const ended: Record<string, number[]> = {};
  const slots = Math.ceil((to - from) / stepMs);
  for (let slot = 0; slot < slots; slot += STEPS_AT_ONCE) {
    const start = from + slot * stepMs;
    const part = { from: start, to: Math.min(to, start + STEPS_AT_ONCE * stepMs), stepMs };
    const counted = await store.read('timeline', part);
    started.push(...counted.started);
    for (const [reason, numbers] of Object.entries(counted.ended)) {
      ended[reason] ??= Array.from({ length: slots }, () => 0);
      ended[reason].splice(slot, numbers.length, ...numbers);
    }
  }
  return { started, ended };
}

import { createRoute, z } from '@hono/zod-openapi';
import { ActivityBoard, PHASES } from '../activity.ts';
import type { Api, ApiParts } from '../api.ts';
import { json } from '../schemas.ts';

const activitySchema = z
  .object({
    seq: z.number().int().openapi({ description: 'Follow the log after this number.' }),
    gateways: z.array(z.looseObject({ id: z.string(), name: z.string().nullable(), state: z.string() })),
    sessions: z.array(z.looseObject({ id: z.string(), phase: z.enum(PHASES), gateway: z.string().nullable() })),
    more: z.boolean().openapi({ description: 'There are more open sessions than are shown.' }),
  })
  .openapi('Activity');

const activity = createRoute({
  method: 'get',
  path: '/v1/space/activity',
  operationId: 'getActivity',
  summary: 'A snapshot of what goes on, for visualizers; follow it with the log',
  request: { headers: z.object({ 'if-none-match': z.string().optional() }) },
  responses: {
    200: json(activitySchema, 'The snapshot.'),
    304: { description: 'Nothing has changed since the given `ETag`.' },
  },
});

/** What visualizers ask for. */
export function addSpaceRoutes(app: Api, parts: ApiParts): void {
  const board = new ActivityBoard(parts);
  app.openapi(activity, async (c) => {
    const { body, etag } = await board.snapshot();
    c.header('ETag', etag);
    c.header('Cache-Control', 'no-cache');
    const known = (c.req.header('if-none-match') ?? '').split(',').map((one) => one.trim().replace(/^W\//, ''));
    if (known.includes(etag) || known.includes('*')) return c.body(null, 304);
    return c.json(body, 200);
  });
}

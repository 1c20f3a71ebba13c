import { createRoute, z } from '@hono/zod-openapi';
import type { Api, ApiParts } from '../api.ts';
import { json } from '../schemas.ts';

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

/** What the page is told about where it is. */
export type Sources = z.output<typeof sourcesSchema>;

const sources = createRoute({
  method: 'get',
  path: '/space.json',
  operationId: 'getSources',
  summary: 'Which gateways the page shows: this one',
  responses: { 200: json(sourcesSchema, 'The gateways.') },
});

export function addSourceRoute(app: Api, { engine }: ApiParts): void {
  app.openapi(sources, async (c) => {
    const instances = await engine.store.read('listInstances', {});
    const self = instances.find(({ id }) => id === engine.instance);
    return c.json({ sources: [{ name: self?.name ?? self?.host ?? 'gateway', base: '' }], chat: true }, 200);
  });
}

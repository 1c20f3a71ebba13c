import { z } from '@hono/zod-openapi';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Api, ApiParts } from '../api.ts';
import { route } from '../schemas.ts';

/** Where platforms bring messages. They know nothing of our key: each proves itself in its own way. */
export const PLATFORM_PATH = /^\/platforms\/[a-z][a-z0-9_-]*$/;

const webhook = route('post', '/platforms/{name}', 'receiveFromPlatform', {
  access: 'open',
  summary: 'Where a chat platform brings its messages; it proves itself by its own secret',
  request: { params: z.object({ name: z.string() }) },
  responses: {
    200: { description: 'Accepted: it is durable.' },
    401: { description: 'That was not the platform.' },
    404: { description: 'There is no such platform, or it brings nothing here.' },
    503: { description: 'Not taken; it may be brought again.' },
  },
});

export function addPlatformRoutes(app: Api, { backend }: ApiParts): void {
  app.openapi(webhook, async (c) => {
    const { name } = c.req.valid('param');
    const request = { headers: c.req.header(), body: await c.req.text() };
    const status = await backend.receiveFromPlatform(name, request);
    if (status === 404) throw new MoiraiError('not_found', `no platform brings messages to ${c.req.path}`);
    return c.body(null, status);
  });
}

import { z } from '@hono/zod-openapi';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Api, ApiContext, ApiParts } from '../api.ts';
import { platformView } from '../platform-view.ts';
import { json, route } from '../schemas.ts';

/** Where platforms bring messages. They know nothing of our key: each proves itself in its own way. */
export const PLATFORM_PATH = /^\/platforms\/[a-z][a-z0-9_-]*(?:\/[^/]{1,128})?$/;

const BRINGS = 'Where a chat platform brings its messages; it proves itself by its own secret or signature';
const ASKS = 'Where a chat platform asks whether the address is ours; answered in its own way';

const responses = {
  200: { description: 'Accepted: it is durable. Or what the platform asked for.' },
  202: { description: 'Accepted: it is durable, and will be worked on.' },
  401: { description: 'That was not the platform, or its signature is too old.' },
  404: { description: 'There is no such platform or route, or it brings nothing here.' },
  503: { description: 'Not taken; it may be brought again.' },
};

const name = z.string();
const path = z.string().openapi({ description: 'The name of an account, or of a route of webhooks.' });

const definitions = [
  route('post', '/platforms/{name}', 'receiveFromPlatform', {
    ...{ access: 'open', summary: BRINGS, responses },
    request: { params: z.object({ name }) },
  }),
  route('get', '/platforms/{name}', 'answerPlatform', {
    ...{ access: 'open', summary: ASKS, responses },
    request: { params: z.object({ name }) },
  }),
  route('post', '/platforms/{name}/{path}', 'receiveFromPlatformAt', {
    ...{ access: 'open', summary: BRINGS, responses },
    request: { params: z.object({ name, path }) },
  }),
  route('get', '/platforms/{name}/{path}', 'answerPlatformAt', {
    ...{ access: 'open', summary: ASKS, responses },
    request: { params: z.object({ name, path }) },
  }),
] as const;

const PlatformSchema = z
  .object({
    name: z.string(),
    account: z.string().nullable(),
    phase: z.enum(['stopped', 'connecting', 'connected', 'degraded', 'standby', 'failed']),
    problem: z.string().nullable(),
    last_success_at: z.string().nullable(),
  })
  .openapi('Platform');

const list = route('get', '/v1/platforms', 'listPlatforms', {
  access: 'read',
  summary: 'How the chat platforms of this gateway stand',
  responses: { 200: json(z.object({ data: z.array(PlatformSchema) }), 'All of them.') },
});

export function addPlatformRoutes(app: Api, { backend }: ApiParts): void {
  app.openapi(list, (c) => {
    const data = (backend.platforms?.() ?? []).map((each) => PlatformSchema.parse(platformView(each)));
    return c.json({ data }, 200);
  });
  const handle = async (c: ApiContext): Promise<Response> => {
    const { name: platform = '', path: behind = '' } = c.req.param() as { name?: string; path?: string };
    const answer = await backend.receiveFromPlatform(platform, {
      method: c.req.method,
      path: behind,
      query: new URL(c.req.url).searchParams,
      headers: c.req.header(),
      body: new Uint8Array(await c.req.arrayBuffer()),
    });
    if (answer === null) throw new MoiraiError('not_found', `no platform brings messages to ${c.req.path}`);
    return new Response(answer.body ?? null, { status: answer.status, headers: { ...answer.headers } });
  };
  for (const definition of definitions) app.openapi(definition, (c) => handle(c as unknown as ApiContext) as never);
}

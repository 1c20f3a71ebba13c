import { z } from '@hono/zod-openapi';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Api, ApiParts } from '../api.ts';
import type { ApiBackend } from '../backend.ts';
import { json, route } from '../schemas.ts';

const modelSchema = z
  .object({ id: z.string(), object: z.literal('model'), created: z.number().int(), owned_by: z.string() })
  .openapi('Model');

const list = route('get', '/v1/models', 'listModels', {
  access: 'any',
  summary: 'The models a conversation may ask for, the configured one first',
  responses: { 200: json(z.object({ object: z.literal('list'), data: z.array(modelSchema) }), 'All of them.') },
});

const show = route('get', '/v1/models/{model}', 'getModel', {
  access: 'any',
  summary: 'One model',
  request: { params: z.object({ model: z.string() }) },
  responses: { 200: json(modelSchema, 'The model.') },
});

/** Models, for clients written for OpenAI. */
export function addModelRoutes(app: Api, { backend }: ApiParts): void {
  app.openapi(list, async (c) =>
    c.json({ object: 'list' as const, data: (await modelsOf(backend)).map(modelView) }, 200),
  );
  app.openapi(show, async (c) => {
    const { model } = c.req.valid('param');
    if (!(await modelsOf(backend)).includes(model)) throw new MoiraiError('model_unknown', `no model "${model}"`);
    return c.json(modelView(model), 200);
  });
}

async function modelsOf(backend: ApiBackend): Promise<string[]> {
  return [...new Set([backend.model, ...(await backend.models())])];
}

function modelView(id: string) {
  return { id, object: 'model' as const, created: 0, owned_by: 'moirai' };
}

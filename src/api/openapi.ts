import { z } from '@hono/zod-openapi';
import type { Api, ApiParts } from './api.ts';
import { ErrorSchema, json, route } from './schemas.ts';

const specification = route('get', '/openapi.json', 'getSpecification', {
  access: 'any',
  summary: 'This specification',
  responses: { 200: json(z.looseObject({ openapi: z.string() }), 'OpenAPI 3.1.') },
});

type Operations = Record<string, { responses?: Record<string, unknown> } | undefined>;

/** The specification, made from the definitions the routes themselves are made from. */
export function addSpecificationRoute(app: Api, { version }: ApiParts): void {
  app.openAPIRegistry.register('Error', ErrorSchema);
  app.openAPIRegistry.registerComponent('securitySchemes', 'key', { type: 'http', scheme: 'bearer' });
  let made: Record<string, unknown> | null = null;
  app.openapi(specification, (c) => {
    made ??= specify(app, version);
    return c.json(made as { openapi: string }, 200);
  });
}

function specify(app: Api, version: string): Record<string, unknown> {
  const document = app.getOpenAPI31Document({
    openapi: '3.1.0',
    info: { title: 'Moirai', version, description: 'An AI-agent gateway in which no session is ever lost.' },
    // Without a configured key nothing is asked for.
    security: [{ key: [] }, {}],
  });
  const failed = {
    description: 'What went wrong, with a stable code.',
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  };
  for (const operations of Object.values(document.paths ?? {}) as Operations[]) {
    for (const operation of Object.values(operations)) {
      if (operation?.responses !== undefined) operation.responses.default ??= failed;
    }
  }
  return { ...document };
}

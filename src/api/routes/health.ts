import { createRoute, z } from '@hono/zod-openapi';
import type { Api, ApiParts } from '../api.ts';
import { Metrics } from '../metrics.ts';
import { json, ReadinessSchema } from '../schemas.ts';

const health = createRoute({
  method: 'get',
  path: '/health',
  operationId: 'getHealth',
  summary: 'Whether the process is alive; needs no key',
  responses: { 200: json(z.object({ status: z.literal('ok'), version: z.string() }), 'It is.') },
});

const ready = createRoute({
  method: 'get',
  path: '/ready',
  operationId: 'getReadiness',
  summary: 'Whether the gateway takes messages',
  responses: {
    200: json(ReadinessSchema, 'It does.'),
    503: json(ReadinessSchema, 'It is starting, draining or stopped.'),
  },
});

const metrics = createRoute({
  method: 'get',
  path: '/metrics',
  operationId: 'getMetrics',
  summary: 'Figures for Prometheus',
  responses: { 200: { description: 'Text exposition format.', content: { 'text/plain': { schema: z.string() } } } },
});

/** What watches over the process ask. */
export function addHealthRoutes(app: Api, parts: ApiParts): void {
  const figures = new Metrics(parts);
  app.openapi(health, (c) => c.json({ status: 'ok' as const, version: parts.version }, 200));
  app.openapi(ready, async (c) => {
    const readiness = await parts.backend.readiness();
    return c.json({ ...readiness }, readiness.state === 'ready' ? 200 : 503);
  });
  app.openapi(metrics, async (c) => {
    return c.text(await figures.render(), 200, { 'Content-Type': figures.contentType });
  });
}

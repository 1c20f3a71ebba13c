import { setTimeout as delay } from 'node:timers/promises';
import { z } from '@hono/zod-openapi';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Api, ApiParts } from '../api.ts';
import { Metrics } from '../metrics.ts';
import { json, ReadinessSchema, route } from '../schemas.ts';

/** A drain may take as long as the longest turn; the answer only says that it has begun. */
const BEGUN_MS = 1000;

const health = route('get', '/health', 'getHealth', {
  access: 'open',
  summary: 'Whether the process is alive; needs no key',
  responses: { 200: json(z.object({ status: z.literal('ok'), version: z.string() }), 'It is.') },
});

const ready = route('get', '/ready', 'getReadiness', {
  access: 'any',
  summary: 'Whether the gateway takes messages',
  responses: {
    200: json(ReadinessSchema, 'It does.'),
    503: json(
      ReadinessSchema,
      'It is starting, draining or stopped, or the store keeps nothing (`refusing`, with its code).',
    ),
  },
});

const metrics = route('get', '/metrics', 'getMetrics', {
  access: 'read',
  summary: 'Figures for Prometheus',
  responses: { 200: { description: 'Text exposition format.', content: { 'text/plain': { schema: z.string() } } } },
});

const drain = route('post', '/v1/gateway/drain', 'drainGateway', {
  access: 'admin',
  summary: 'Takes no new messages; what runs is finished',
  responses: { 200: json(ReadinessSchema, 'How the gateway stands.') },
});

const undrain = route('post', '/v1/gateway/undrain', 'undrainGateway', {
  access: 'admin',
  summary: 'Takes messages again',
  responses: { 200: json(ReadinessSchema, 'How the gateway stands.') },
});

/** The gateway itself: what monitoring asks, and how an operator drains it. */
export function addGatewayRoutes(app: Api, parts: ApiParts): void {
  const { backend, log, version } = parts;
  const figures = new Metrics(parts);
  app.openapi(health, (c) => c.json({ status: 'ok' as const, version }, 200));
  app.openapi(ready, async (c) => {
    const readiness = await backend.readiness();
    return c.json({ ...readiness }, readiness.state === 'ready' ? 200 : 503);
  });
  app.openapi(metrics, async (c) => {
    return c.text(await figures.render(), 200, { 'Content-Type': figures.contentType });
  });
  app.openapi(drain, async (c) => {
    const draining = backend.drain();
    // When it fails later than this answer, only the log tells of it.
    draining.catch((thrown: unknown) => log.warn('the drain failed', { error: MoiraiError.wrap(thrown) }));
    await Promise.race([draining, delay(BEGUN_MS, undefined, { ref: false })]);
    return c.json({ ...(await backend.readiness()) }, 200);
  });
  app.openapi(undrain, async (c) => {
    await backend.undrain();
    return c.json({ ...(await backend.readiness()) }, 200);
  });
}

import { setTimeout as delay } from 'node:timers/promises';
import { createRoute } from '@hono/zod-openapi';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Api, ApiParts } from '../api.ts';
import { json, ReadinessSchema } from '../schemas.ts';

/** A drain may take as long as the longest turn; the answer only says that it has begun. */
const BEGUN_MS = 1000;

const drain = createRoute({
  method: 'post',
  path: '/v1/gateway/drain',
  operationId: 'drainGateway',
  summary: 'Takes no new messages; what runs is finished',
  responses: { 200: json(ReadinessSchema, 'How the gateway stands.') },
});

const undrain = createRoute({
  method: 'post',
  path: '/v1/gateway/undrain',
  operationId: 'undrainGateway',
  summary: 'Takes messages again',
  responses: { 200: json(ReadinessSchema, 'How the gateway stands.') },
});

/** The gateway itself. */
export function addGatewayRoutes(app: Api, { backend, log }: ApiParts): void {
  app.openapi(drain, async (c) => {
    const draining = backend.drain();
    // When it fails later than this answer, nobody else would hear of it.
    draining.catch((thrown: unknown) => log.warn('the drain failed', { error: MoiraiError.wrap(thrown) }));
    await Promise.race([draining, delay(BEGUN_MS, undefined, { ref: false })]);
    return c.json({ ...(await backend.readiness()) }, 200);
  });
  app.openapi(undrain, async (c) => {
    await backend.undrain();
    return c.json({ ...(await backend.readiness()) }, 200);
  });
}

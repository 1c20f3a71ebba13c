import { OpenAPIHono } from '@hono/zod-openapi';
import type { z } from 'zod';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { ApiKeys } from '../people/api-keys.ts';
import { type AccessRules, admit, protect } from './access.ts';
import type { Api, ApiContext, ApiEnv, ApiParts } from './api.ts';
import { answerError } from './error-answer.ts';
import { addChatCompletionRoutes } from './openai/chat-completions.ts';
import { addModelRoutes } from './openai/models.ts';
import { addResponseRoutes } from './openai/responses.ts';
import { addSpecificationRoute } from './openapi.ts';
import { DEFAULT_BODY_BYTES, readBody } from './request-body.ts';
import { addApprovalRoutes } from './routes/approvals.ts';
import { addChatRoutes } from './routes/chat.ts';
import { addCronRoutes } from './routes/cron.ts';
import { addEventRoutes } from './routes/events.ts';
import { addGatewayRoutes } from './routes/gateway.ts';
import { addPlatformRoutes } from './routes/platforms.ts';
import { addSessionChangeRoutes, addSessionRoutes } from './routes/sessions.ts';
import { addSpaceRoutes } from './routes/space.ts';
import { addSubscriberRoutes } from './routes/subscribers.ts';
import { addTurnRoutes } from './routes/turns.ts';

export interface AppOptions extends AccessRules {
  readonly maxBodyBytes?: number;
}

const ROUTES = [
  addGatewayRoutes,
  addSessionRoutes,
  addSessionChangeRoutes,
  addEventRoutes,
  addChatRoutes,
  addChatCompletionRoutes,
  addResponseRoutes,
  addModelRoutes,
  addTurnRoutes,
  addApprovalRoutes,
  addSubscriberRoutes,
  addCronRoutes,
  addPlatformRoutes,
  addSpaceRoutes,
  addSpecificationRoute,
];

/** Everything the port answers. A request passes the rules, then its body is read, then its route is looked for. */
export function createApp(parts: ApiParts, options: AppOptions, keys?: ApiKeys): Api {
  const app: Api = new OpenAPIHono<ApiEnv>({ defaultHook: refuseInvalid });
  app.onError((thrown, c) => answerError(c, thrown, parts.log));
  app.use(protect);
  app.use(admit(options, parts.engine.store, keys));
  app.use(readBody(options.maxBodyBytes ?? DEFAULT_BODY_BYTES));
  for (const add of ROUTES) add(app, parts);
  const routes = app.routes.filter(({ method }) => method !== 'ALL');
  const paths = routes.map(({ path, method }) => {
    return { pattern: new RegExp(`^${path.replace(/:[^/]+/g, '[^/]+')}$`), method };
  });
  app.notFound((c) => answerError(c, missing(c, paths), parts.log));
  return app;
}

type Validated = { success: true } | { success: false; error: z.ZodError; target: string };

/** Names the first thing that is wrong with what was sent, by its place. */
function refuseInvalid(result: Validated): void {
  if (result.success) return;
  const [issue] = result.error.issues;
  const place = issue?.path.map(String).join('.') ?? '';
  const where = place === '' ? (result.target === 'json' ? 'the body' : `the ${result.target}`) : place;
  throw new MoiraiError('bad_input', `${where}: ${issue?.message ?? 'is not valid'}`, { cause: result.error });
}

function missing(c: ApiContext, paths: readonly { pattern: RegExp; method: string }[]): MoiraiError {
  const { path, method } = c.req;
  const methods = new Set(paths.filter(({ pattern }) => pattern.test(path)).map((routed) => routed.method));
  if (methods.size === 0) return new MoiraiError('not_found', `there is nothing at ${path}`);
  if (methods.has('GET')) methods.add('HEAD');
  const allow = [...methods].join(', ');
  return new MoiraiError('method_not_allowed', `${path} takes ${allow}, not ${method}`, { details: { allow } });
}

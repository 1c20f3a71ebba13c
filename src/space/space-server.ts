import { Hono } from 'hono';
import { admit, type PageHook, protect } from '../api/access.ts';
import type { ApiContext, ApiEnv, ApiLog } from '../api/api.ts';
import { answerError } from '../api/error-answer.ts';
import { isLoopbackAddress } from '../api/loopback.ts';
import { type OpenPort, openPort } from '../api/port.ts';
import type { Sources } from '../api/routes/space.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { GatewayLink, LINK_PATIENCE, type LinkPatience, type SpaceGateway } from './gateway-link.ts';

export interface SpaceOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  /** The key that people who open the page must give; null admits requests from this machine only. */
  readonly key: string | null;
  readonly gateways: readonly SpaceGateway[];
  readonly page: PageHook;
  readonly version: string;
  readonly log: ApiLog;
  readonly patience?: LinkPatience;
}

/**
 * One page over several gateways. Each is at `/gateways/N`, and what is asked there is passed on under the key of that
 * gateway; none of them needs to be there yet. Throws `config_invalid` for an address that others reach when there is no key.
 */
export async function startSpace(options: SpaceOptions): Promise<OpenPort> {
  const { host, port, key } = options;
  if (key === null && host !== 'localhost' && !isLoopbackAddress(host)) {
    const message = `--host: "${host}" is no loopback address: whoever reaches it could use every gateway, so give --key`;
    throw new MoiraiError('config_invalid', message);
  }
  const closing = new AbortController();
  const app = createSpace(options, closing.signal);
  const opened = await openPort(host, port, (request, env) => app.fetch(request, env));
  return {
    url: opened.url,
    close: () => {
      closing.abort();
      return opened.close();
    },
  };
}

function createSpace(options: SpaceOptions, closing: AbortSignal): Hono<ApiEnv> {
  const { gateways, key, page, version, log, patience = LINK_PATIENCE } = options;
  const links = gateways.map((gateway) => new GatewayLink(gateway, patience));
  const sources: Sources = {
    sources: links.map(({ name }, i) => ({ name, base: `/gateways/${i}` })),
    chat: true,
  };
  const app = new Hono<ApiEnv>();
  app.onError((thrown, c) => answerError(c, thrown, log));
  app.use(protect);
  app.use(admit({ apiKey: key, allowedOrigins: [], page }, null));
  app.get('/health', (c) => c.json({ status: 'ok', version }));
  app.get('/space.json', (c) => c.json(sources));
  app.all('/gateways/*', (c) => {
    const { link, path } = routeOf(c, links);
    assertMethod(c);
    return link.pass(c, path, closing);
  });
  app.notFound((c) => answerError(c, missing(c), log));
  return app;
}

/** The path as it came, since what is escaped in it has a meaning there. */
const PASSED = /^\/gateways\/(\d{1,4})(\/(?:v1\/[^?#]+|ready|health))(\?[^#]*)?$/;

function routeOf(c: ApiContext, links: readonly GatewayLink[]): { link: GatewayLink; path: string } {
  const [, number, path = '', query = ''] = PASSED.exec(c.env.incoming.url ?? '') ?? [];
  const link = links[Number(number ?? -1)];
  if (link === undefined || leadsElsewhere(path)) throw missing(c);
  return { link, path: `${path}${query}` };
}

/** Whether a proxy on the way that unescapes before it routes could read it as another path. */
function leadsElsewhere(path: string): boolean {
  try {
    return decodeURIComponent(path)
      .split(/[/\\]/)
      .some((part) => part === '.' || part === '..');
  } catch {
    return true; // No text at all, so nothing that a gateway has.
  }
}

function assertMethod({ req: { method, path } }: ApiContext): void {
  if (method === 'GET' || method === 'POST') return;
  const allow = 'GET, POST';
  throw new MoiraiError('method_not_allowed', `${path} takes ${allow}, not ${method}`, { details: { allow } });
}

function missing(c: ApiContext): MoiraiError {
  return new MoiraiError('not_found', `there is nothing at ${c.req.path}`);
}

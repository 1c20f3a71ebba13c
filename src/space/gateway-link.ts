import { type IncomingHttpHeaders, type IncomingMessage, request as requestHttp } from 'node:http';
import { request as requestHttps } from 'node:https';
import { pipeline } from 'node:stream';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { ApiContext } from '../api/api.ts';
import { wantsStream } from '../api/event-stream.ts';
import { bodyLimit, chunksOf } from '../api/request-body.ts';
import { MoiraiError } from '../errors/moirai-error.ts';

/** A gateway that the page shows. */
export interface SpaceGateway {
  readonly name: string;
  /** Where it answers; a path in it stands before all of its paths. */
  readonly url: string;
  /** Its `gateway.api_key`. Only this server knows it: people who open the page give another key. */
  readonly key: string | null;
}

export interface LinkPatience {
  /** For the first words of an answer. */
  readonly headersMs: number;
  /** How long a gateway that refused the key is left alone: it answers many wrong keys late. */
  readonly refusedMs: number;
}

export const LINK_PATIENCE: LinkPatience = { headersMs: 10_000, refusedMs: 30_000 };

/** A connection on which nothing came for so long is given up; quiet streams say more often that they live. */
const STALL_MS = 60_000;

/** What a gateway is told of a request. All that says who asked, and from where, stays here. */
const PASSED_UP = ['accept', 'content-type', 'if-none-match', 'last-event-id', 'idempotency-key'];
const PASSED_DOWN = [
  ...['content-type', 'content-length', 'content-encoding', 'etag', 'retry-after', 'allow', 'x-accel-buffering'],
  ...['x-should-retry', 'x-moirai-session', 'x-moirai-turn'],
];

/** Their answer takes as long as a turn does. */
const TURN_PATHS = new Set(['/v1/chat', '/v1/chat/completions', '/v1/responses']);

/** Why a gateway refuses, by the status of its answer; 401 is about the key. */
const REFUSALS: Readonly<Record<number, string>> = {
  403: 'it does not let this machine in; it needs a gateway.api_key for that',
  429: 'too many wrong keys came from here',
};

/** Passes requests on to one gateway, and its answers back, byte by byte as they come. */
export class GatewayLink {
  readonly name: string;
  readonly #url: URL;
  readonly #key: string | null;
  readonly #patience: LinkPatience;
  #refused: { readonly until: number; readonly fault: MoiraiError } | null = null;

  constructor({ name, url, key }: SpaceGateway, patience: LinkPatience) {
    this.name = name;
    this.#url = new URL(url);
    this.#key = key;
    this.#patience = patience;
  }

  /**
   * Answers a request with what the gateway answers to the same one at `path`, under our key. When one end goes away, so
   * does the connection to the other. Throws `gateway_unreachable`, `gateway_slow` and `gateway_refused_key`.
   */
  async pass(c: ApiContext, path: string, closing: AbortSignal): Promise<Response> {
    if (this.#refused !== null && performance.now() < this.#refused.until) throw this.#refused.fault;
    const answer = await this.#ask(c, path, closing);
    const fault = this.#faultOf(answer);
    if (fault === null) return handDown(c, answer);
    answer.destroy();
    throw fault;
  }

  #ask(c: ApiContext, path: string, closing: AbortSignal): Promise<IncomingMessage> {
    const { protocol, origin, pathname } = this.#url;
    const target = new URL(`${pathname.replace(/\/$/, '')}${path}`, origin);
    const [plainPath = ''] = path.split('?');
    const isPost = c.req.method === 'POST';
    const sent = (protocol === 'https:' ? requestHttps : requestHttp)(target, {
      method: c.req.method,
      headers: this.#headersFor(c, isPost),
      // A connection kept for later may be closed at the other end just when it is used: a fault that is none.
      agent: false,
      signal: closing,
    });
    c.env.outgoing.once('close', () => sent.destroy());
    return new Promise((resolve, reject) => {
      const { headersMs } = this.#patience;
      const slow = setTimeout(() => {
        const message = `${this.#described} has not answered for ${headersMs / 1000} s`;
        sent.destroy(new MoiraiError('gateway_slow', message));
      }, headersMs);
      sent.once('response', resolve);
      sent.on('error', (error) => reject(this.#unreachable(error)));
      sent.once('close', () => clearTimeout(slow));
      sent.once('response', () => clearTimeout(slow));
      if (TURN_PATHS.has(plainPath) && !wantsStream(c)) sent.once('finish', () => clearTimeout(slow));
      if (!isPost) return void sent.end();
      const body = async function* () {
        try {
          for await (const chunk of chunksOf(c, bodyLimit(plainPath))) {
            slow.refresh(); // Much takes long, and is not slow.
            yield chunk;
          }
        } catch (thrown) {
          // Before the request is cut off for it: of that, only that it was would be known.
          if (thrown instanceof MoiraiError) reject(thrown);
          throw thrown;
        }
      };
      // A gateway that has answered need not have read it all; what went wrong before that is told by `error`.
      pipeline(body, sent, () => undefined);
    });
  }

  #headersFor(c: ApiContext, isPost: boolean): Record<string, string> {
    const length = isPost ? ['content-length'] : [];
    return {
      ...picked(c.env.incoming.headers, [...PASSED_UP, ...length]),
      'accept-encoding': 'identity',
      // Headers are written byte by byte; a key may have letters that take more than one.
      ...(this.#key === null ? {} : { authorization: `Bearer ${Buffer.from(this.#key, 'utf8').toString('latin1')}` }),
    };
  }

  /** What an answer says of the way to the gateway, and not of what was asked. */
  #faultOf({ statusCode = 0, headers }: IncomingMessage): MoiraiError | null {
    // A key that may do less than everything is no wrong key: the answer is about what was asked.
    const scope = statusCode === 403 && headers['www-authenticate']?.includes('insufficient_scope') === true;
    if (!scope && [401, 403, 429].includes(statusCode)) return this.#refusal(statusCode, headers);
    this.#refused = null;
    // Followed, the key would go to whomever an answer names.
    if (statusCode < 300 || statusCode >= 400 || statusCode === 304) return null;
    const why = `it sends to another address (${statusCode}), which is not followed; give that one`;
    return new MoiraiError('gateway_unreachable', `${this.#described} does not answer there: ${why}`);
  }

  #refusal(status: number, headers: IncomingHttpHeaders): MoiraiError {
    const wait = Number(headers['retry-after']);
    const retryAfterSeconds = wait > 0 ? wait : Math.ceil(this.#patience.refusedMs / 1000);
    const wrongKey =
      this.#key === null ? 'it wants a key, and none was given for it' : 'the key that was given for it is wrong';
    const message = `${this.#described} refused: ${REFUSALS[status] ?? wrongKey}`;
    const fault = new MoiraiError('gateway_refused_key', message, { details: { retryAfterSeconds } });
    const pause = status === 429 && wait > 0 ? wait * 1000 : this.#patience.refusedMs;
    this.#refused = { until: performance.now() + pause, fault };
    return fault;
  }

  #unreachable(error: NodeJS.ErrnoException): MoiraiError {
    if (error instanceof MoiraiError) return error;
    const why = error.code ?? error.message;
    return new MoiraiError('gateway_unreachable', `${this.#described} cannot be reached: ${why}`, { cause: error });
  }

  get #described(): string {
    const { host, pathname } = this.#url;
    const address = `${host}${pathname.replace(/\/$/, '')}`;
    return this.name === address ? `the gateway ${address}` : `the gateway ${this.name} (${address})`;
  }
}

/** Passes an answer on as it comes, at the pace of its reader. */
function handDown(c: ApiContext, answer: IncomingMessage): Response {
  const { outgoing } = c.env;
  const { headers } = c.body(null, 200, picked(answer.headers, PASSED_DOWN));
  outgoing.writeHead(answer.statusCode ?? 200, Object.fromEntries(headers));
  outgoing.flushHeaders();
  outgoing.setTimeout(STALL_MS, () => outgoing.destroy());
  // When either end breaks off, so does the other, at once: half an answer must not look like a whole one.
  pipeline(answer, outgoing, () => undefined);
  return RESPONSE_ALREADY_SENT;
}

function picked(headers: IncomingHttpHeaders, names: readonly string[]): Record<string, string> {
  const found = names.flatMap((name) => (typeof headers[name] === 'string' ? [[name, headers[name]] as const] : []));
  return Object.fromEntries(found);
}

import type { Readiness } from '../../api/backend.ts';
import type { PlatformView } from '../../api/platform-view.ts';
import { ERROR_HINTS, type ErrorCode } from '../../errors/codes.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { operatorKey, readConfig } from '../configuration.ts';
import type { Settings } from '../settings.ts';
import type { GatewayHolder } from './holder.ts';

const PATIENCE_MS = 5000;

/** Talks to a running gateway as any client of its HTTP would. */
export class GatewayClient {
  readonly #url: string;
  readonly #apiKey: string | null;

  constructor(url: string, apiKey: string | null) {
    // A gateway on all addresses is also on this machine's own one.
    this.#url = url.replace('//0.0.0.0:', '//127.0.0.1:').replace('//[::]:', '//[::1]:');
    this.#apiKey = apiKey;
  }

  /** With the key of the configuration. A configuration that is broken by now has no part in what a gateway does. */
  static async to(holder: GatewayHolder, settings: Settings): Promise<GatewayClient> {
    if (holder.url === null) {
      throw new MoiraiError('gateway_unreachable', `the gateway, process ${holder.pid}, does not listen yet`);
    }
    const key = await readConfig(settings).then(
      ({ gateway }) => operatorKey(gateway),
      () => null,
    );
    return new GatewayClient(holder.url, key);
  }

  /** How it stands, also when it takes no messages. */
  async readiness(): Promise<Readiness> {
    return (await (await this.#ask('GET', '/ready', [503])).json()) as Readiness;
  }

  /** Lets it take no new messages, or take them again. */
  async control(verb: 'drain' | 'undrain'): Promise<Readiness> {
    return (await (await this.#ask('POST', `/v1/gateway/${verb}`)).json()) as Readiness;
  }

  /** How its platforms stand, as `GET /v1/platforms` tells. */
  async platforms(): Promise<readonly PlatformView[]> {
    const { data } = (await (await this.#ask('GET', '/v1/platforms')).json()) as { data: readonly PlatformView[] };
    return data;
  }

  /** The figures without labels. */
  async figures(): Promise<ReadonlyMap<string, number>> {
    const text = await (await this.#ask('GET', '/metrics')).text();
    return new Map([...text.matchAll(/^(\w+) ([\d.eE+-]+)$/gm)].map(([, name = '', value]) => [name, Number(value)]));
  }

  async #ask(method: string, path: string, alsoGood: readonly number[] = []): Promise<Response> {
    const headers = this.#apiKey === null ? {} : { Authorization: `Bearer ${this.#apiKey}` };
    let answer: Response;
    try {
      answer = await fetch(`${this.#url}${path}`, { method, headers, signal: AbortSignal.timeout(PATIENCE_MS) });
    } catch (thrown) {
      const why = thrown instanceof Error ? String(thrown.cause ?? thrown.message) : String(thrown);
      throw new MoiraiError('gateway_unreachable', `${this.#url} does not answer: ${why}`, { cause: thrown });
    }
    if (answer.ok || alsoGood.includes(answer.status)) return answer;
    throw await refusalOf(answer);
  }
}

async function refusalOf(answer: Response): Promise<MoiraiError> {
  const body = (await answer.json().catch(() => null)) as { error?: { code?: string; message?: string } } | null;
  const { code = '', message = `it answered ${answer.status}` } = body?.error ?? {};
  const known = code in ERROR_HINTS ? (code as ErrorCode) : 'gateway_unreachable';
  return new MoiraiError(known, `the gateway refused: ${message}`);
}

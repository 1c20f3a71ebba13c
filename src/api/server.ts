import { ApiKeys, type ConfiguredKeys } from '../people/api-keys.ts';
import type { ApiLog, ApiParts } from './api.ts';
import { type AppOptions, createApp } from './app.ts';
import { EventTail } from './event-tail.ts';
import { type OpenPort, openPort } from './port.ts';

export interface ApiOptions extends AppOptions, Pick<ApiParts, 'backend' | 'engine' | 'version'> {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  readonly log?: ApiLog;
}

/** The API at its port. Closing it takes no new requests, ends streams, and gives what is under way a moment. */
export interface RunningApi extends OpenPort {
  /** Other keys of the configuration count from the next request on. */
  useKeys(configured: ConfiguredKeys): void;
}

const SILENT: ApiLog = { error: () => undefined, warn: () => undefined };

/** Opens the port. Throws `port_in_use` when another program has it. */
export async function startApi(options: ApiOptions): Promise<RunningApi> {
  const { backend, engine, version, log = SILENT } = options;
  const closing = new AbortController();
  const tail = new EventTail(engine.store, log);
  const parts: ApiParts = { backend, engine, version, log, tail, closing: closing.signal };
  const keys = new ApiKeys(options, engine.store);
  const app = createApp(parts, options, keys);
  const port = await openPort(options.host, options.port, (request, env) => app.fetch(request, env));
  return {
    url: port.url,
    useKeys: (configured) => keys.use(configured),
    close: async () => {
      closing.abort();
      tail.close();
      await port.close();
    },
  };
}

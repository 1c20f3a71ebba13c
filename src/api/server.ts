import type { Engine } from '../engine/engine.ts';
import type { PageHook } from './access.ts';
import type { ApiLog, ApiParts } from './api.ts';
import { createApp } from './app.ts';
import type { ApiBackend } from './backend.ts';
import { EventTail } from './event-tail.ts';
import { openPort } from './port.ts';

export interface ApiOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  /** Null lets in whoever is on this machine, and nobody else. */
  readonly apiKey: string | null;
  /** Origins of pages that may call, beside the gateway's own: `https://example.org`. */
  readonly allowedOrigins: readonly string[];
  readonly backend: ApiBackend;
  readonly engine: Engine;
  readonly version: string;
  readonly log?: ApiLog;
  readonly maxBodyBytes?: number;
  readonly page?: PageHook;
}

export interface RunningApi {
  readonly url: string;
  /** Takes no new requests, ends streams, and gives what is under way a moment. */
  close(): Promise<void>;
}

const SILENT: ApiLog = { error: () => undefined, warn: () => undefined };

/** Opens the port. Throws `port_in_use` when another program has it. */
export async function startApi(options: ApiOptions): Promise<RunningApi> {
  const { backend, engine, version, log = SILENT } = options;
  const closing = new AbortController();
  const tail = new EventTail(engine.store, log);
  const parts: ApiParts = { backend, engine, version, log, tail, closing: closing.signal };
  const app = createApp(parts, options);
  const port = await openPort(options.host, options.port, (request, env) => app.fetch(request, env));
  return {
    url: port.url,
    close: async () => {
      closing.abort();
      tail.close();
      await port.close();
    },
  };
}

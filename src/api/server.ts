import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import type { Engine } from '../engine/engine.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { ApiLog, ApiParts } from './api.ts';
import { createApp, type PageHook } from './app.ts';
import type { ApiDesk } from './desk.ts';
import { EventTail } from './event-tail.ts';

export interface ApiOptions {
  readonly host: string;
  /** 0 for any free one. */
  readonly port: number;
  /** Null lets in whoever is on this machine, and nobody else. */
  readonly apiKey: string | null;
  /** Origins of pages that may call, beside the gateway's own: `https://example.org`. */
  readonly allowedOrigins: readonly string[];
  readonly desk: ApiDesk;
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

/** How long answers that are under way may take after the door is closed. */
const CLOSE_GRACE_MS = 2000;
const SWEEP_MS = 20;

const SILENT: ApiLog = { error: () => undefined, warn: () => undefined };

/** Opens the port. Throws `port_in_use` when another program has it. */
export async function startApi(options: ApiOptions): Promise<RunningApi> {
  const { desk, engine, version, log = SILENT } = options;
  const closing = new AbortController();
  const tail = new EventTail(engine.store, log);
  const parts: ApiParts = { desk, engine, version, log, tail, closing: closing.signal };
  const app = createApp(parts, options);
  const listener = getRequestListener((request, env) => app.fetch(request, env as HttpBindings), {
    // The process belongs to others too: its Request and Response stay what they are.
    overrideGlobalObjects: false,
    errorHandler: refuseUnreadable,
  });
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
  await listen(server, options.host, options.port);
  return {
    url: urlOf(server),
    close: async () => {
      closing.abort();
      tail.close();
      await shut(server);
    },
  };
}

function listen(server: Server, host: string, port: number): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(listenError(error, host, port)));
    server.listen({ host, port }, () => resolve());
  });
}

function listenError(error: NodeJS.ErrnoException, host: string, port: number): MoiraiError {
  if (error.code === 'EADDRINUSE') {
    return new MoiraiError('port_in_use', `port ${port} of ${host} is taken`, { cause: error });
  }
  const message = `the gateway cannot listen on ${host}, port ${port}: ${error.message}`;
  return new MoiraiError('config_invalid', message, { cause: error });
}

/** For what is HTTP but no request: a target or a host that is no part of an address. */
function refuseUnreadable(): Response {
  const error = new MoiraiError('bad_input', 'the request has no readable address or host');
  const { code, message, hint } = error;
  return Response.json({ error: { code, message, hint } }, { status: 400 });
}

function urlOf(server: Server): string {
  const { address, port, family } = server.address() as AddressInfo;
  return `http://${family === 'IPv6' ? `[${address}]` : address}:${port}`;
}

async function shut(server: Server): Promise<void> {
  const closed = new Promise<void>((resolve) => server.close(() => resolve()));
  // A connection whose last answer has just ended is idle only now, and would be kept for the next request.
  const sweeping = setInterval(() => server.closeIdleConnections(), SWEEP_MS);
  server.closeIdleConnections();
  await Promise.race([closed, delay(CLOSE_GRACE_MS, undefined, { ref: false })]);
  clearInterval(sweeping);
  server.closeAllConnections();
  await closed;
}

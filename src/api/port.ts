import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { MoiraiError } from '../errors/moirai-error.ts';

export interface OpenPort {
  readonly url: string;
  /** Takes no new requests, and gives what is under way a moment. */
  close(): Promise<void>;
}

/** How long answers that are under way may take after the door is closed. */
const CLOSE_GRACE_MS = 2000;
const SWEEP_MS = 20;

type Answer = (request: Request, env: HttpBindings) => Response | Promise<Response>;

/** Listens, on any free port for 0. Throws `port_in_use` when another program has it. */
export async function openPort(host: string, port: number, answer: Answer): Promise<OpenPort> {
  const listener = getRequestListener((request, env) => answer(request, env as HttpBindings), {
    // The process belongs to others too: its Request and Response stay what they are.
    overrideGlobalObjects: false,
    errorHandler: refuseUnreadable,
  });
  const server = createServer((incoming, outgoing) => void listener(incoming, outgoing));
  await listen(server, host, port);
  return { url: urlOf(server), close: () => shut(server) };
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
  return new MoiraiError('config_invalid', `cannot listen on ${host}, port ${port}: ${error.message}`, {
    cause: error,
  });
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

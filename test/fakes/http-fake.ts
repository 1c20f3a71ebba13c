import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A request as it came, to the byte. */
export interface RecordedRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly raw: string;
  readonly body: RecordedBody;
}

/** What tests look at in the bodies of the protocols; empty when there was no body. */
export interface RecordedBody {
  readonly model: string;
  readonly stream?: boolean;
  readonly system?: unknown;
  readonly messages: readonly RecordedMessage[];
  readonly tools?: readonly Record<string, unknown>[];
  readonly [field: string]: unknown;
}

export interface RecordedMessage {
  readonly role: string;
  readonly content: unknown;
  readonly [field: string]: unknown;
}

export interface HttpFake {
  readonly url: string;
  readonly requests: RecordedRequest[];
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}

type Answer = (request: RecordedRequest, response: ServerResponse, index: number) => Promise<void>;

/** A real server on loopback that remembers every request before it answers. */
export async function startHttpFake(answer: Answer, port = 0): Promise<HttpFake> {
  const requests: RecordedRequest[] = [];
  const server = createServer((incoming, response) => {
    readRequest(incoming)
      .then((request) => answer(request, response, requests.push(request) - 1))
      .catch((error: unknown) => response.destroy(error instanceof Error ? error : undefined));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, '127.0.0.1', resolve);
  });
  const close = () => stop(server);
  const { port: listening } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${listening}`, requests, close, [Symbol.asyncDispose]: close };
}

async function readRequest(incoming: IncomingMessage): Promise<RecordedRequest> {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming as AsyncIterable<Buffer>) chunks.push(chunk);
  const raw = Buffer.concat(chunks).toString('utf8');
  const { method = 'GET', url = '/', headers } = incoming;
  return { method, path: url, headers, raw, body: JSON.parse(raw === '' ? '{}' : raw) as RecordedBody };
}

function stop(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((resolve) => server.close(() => resolve()));
}

export function sendJson(
  response: ServerResponse,
  status: number,
  body: unknown,
  headers: Record<string, string> = {},
) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}

export function openStream(response: ServerResponse): (event: string | null, data: unknown) => void {
  response.writeHead(200, { 'content-type': 'text/event-stream', 'cache-control': 'no-cache' });
  return (event, data) => {
    const body = typeof data === 'string' ? data : JSON.stringify(data);
    response.write(`${event === null ? '' : `event: ${event}\n`}data: ${body}\n\n`);
  };
}

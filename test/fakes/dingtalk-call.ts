import type { IncomingMessage } from 'node:http';

/** A call as it came. */
export interface DingtalkCall {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: Readonly<Record<string, unknown>>;
  readonly raw: Buffer<ArrayBuffer>;
}

export async function readCall(request: IncomingMessage): Promise<DingtalkCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const raw = Buffer.concat(chunks);
  const { pathname: path, searchParams: query } = new URL(request.url ?? '/', 'http://fake');
  const { method = 'GET', headers } = request;
  const isJson = headers['content-type'] === 'application/json' && raw.length > 0;
  const body = isJson ? (JSON.parse(raw.toString('utf8')) as Record<string, unknown>) : {};
  return { method, path, query, headers, body, raw };
}

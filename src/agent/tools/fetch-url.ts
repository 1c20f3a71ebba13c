import { request as httpRequest, type IncomingMessage } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { isIP, type LookupFunction } from 'node:net';
import { z } from 'zod';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { pageText } from './page-text.ts';
import type { WebAccess } from './ports.ts';
import { checkedAddress } from './public-address.ts';
import { type AgentTool, bounded, defineTool } from './tool.ts';

const MAX_BYTES = 2 * 1024 * 1024;
const TIME_LIMIT_MS = 30_000;
const MAX_REDIRECTS = 5;

const schema = z.object({ url: z.string().describe('An http or https address on the public internet') });

export function fetchUrlTool(web: WebAccess): AgentTool {
  return defineTool({
    name: 'fetch_url',
    description: 'Fetches a page or a text from the public internet and returns its text.',
    schema,
    parallelSafe: true,
    run: ({ url }, { signal }) => fetchText(url, web, AbortSignal.any([signal, AbortSignal.timeout(TIME_LIMIT_MS)])),
  });
}

async function fetchText(url: string, web: WebAccess, signal: AbortSignal): Promise<string> {
  let target = parsed(url);
  for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects += 1) {
    const response = await get(target, await checkedAddress(target.hostname, web), signal);
    const { statusCode = 0, headers } = response;
    const { location } = headers;
    const isRedirect = statusCode >= 300 && statusCode < 400 && location !== undefined;
    if (!isRedirect) return describe(response, await readBody(response));
    response.destroy();
    target = parsed(location, target);
  }
  throw new MoiraiError('tool_failed', `${url} leads through more than ${MAX_REDIRECTS} redirects`);
}

function parsed(url: string, base?: URL): URL {
  const target = URL.parse(url, base?.href);
  if (target === null) throw new MoiraiError('tool_failed', `${url} is not an address`);
  if (target.protocol !== 'http:' && target.protocol !== 'https:') {
    throw new MoiraiError('tool_failed', `${target.protocol} is not fetched; only http and https are`);
  }
  return target;
}

/** Connects to the address that was checked, whatever the resolver says by now. */
function get(url: URL, address: string, signal: AbortSignal): Promise<IncomingMessage> {
  const send = url.protocol === 'https:' ? httpsRequest : httpRequest;
  const family = isIP(address);
  const pinned: LookupFunction = (_host, { all }, done) =>
    all ? done(null, [{ address, family }]) : done(null, address, family);
  const headers = {
    'user-agent': 'Moirai',
    accept: 'text/html, text/*;q=0.9, */*;q=0.5',
    'accept-encoding': 'identity',
  };
  return new Promise((resolve, reject) => {
    // No agent: a connection kept from an earlier request would not be to the address just checked.
    const outgoing = send(url, { lookup: pinned, agent: false, signal, headers }, resolve);
    outgoing.once('error', (error) => reject(failed(url, error)));
    outgoing.end();
  });
}

async function readBody(response: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let size = 0;
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk);
      size += chunk.length;
      if (size >= MAX_BYTES) break;
    }
  } catch (error) {
    throw MoiraiError.wrap(error, 'tool_failed');
  }
  return Buffer.concat(chunks).subarray(0, MAX_BYTES);
}

function describe(response: IncomingMessage, body: Buffer): string {
  const type = response.headers['content-type'] ?? 'text/plain';
  const head = `Status ${response.statusCode}, ${type}`;
  if (/html/i.test(type)) return bounded(`${head}\n\n${pageText(body.toString('utf8'))}`);
  if (body.includes(0)) return `${head}, ${body.length} bytes that are not text.`;
  return bounded(`${head}\n\n${body.toString('utf8')}`);
}

function failed(url: URL, error: Error): MoiraiError {
  const why = error.name === 'AbortError' ? `it took more than ${TIME_LIMIT_MS / 1_000} s` : error.message;
  return new MoiraiError('tool_failed', `${url.href} cannot be fetched: ${why}`, { cause: error });
}

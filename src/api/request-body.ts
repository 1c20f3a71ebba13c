import type { MiddlewareHandler } from 'hono';
import { MoiraiError } from '../errors/moirai-error.ts';
import { MAX_TEXT_CHARS } from '../store/limits.ts';
import type { ApiContext, ApiEnv } from './api.ts';
import { PLATFORM_PATH } from './routes/platforms.ts';

export const DEFAULT_BODY_BYTES = 12 * 1024 * 1024;

/** Whatever text the store keeps may be said: three bytes a character at most, and room for what is around it. */
const CHAT_BODY_BYTES = 3 * MAX_TEXT_CHARS + 1024 * 1024;
const CHAT_PATHS = new Set(['/v1/chat', '/v1/chat/completions', '/v1/responses']);

/**
 * Reads the body of a request before its route does: not more than is allowed, and as JSON in UTF-8 only. What is for a
 * platform stays as it came: some bring forms, and signatures are made over the very bytes.
 */
export function readBody(limit: number): MiddlewareHandler<ApiEnv> {
  return async (c, next) => {
    if (c.req.method === 'GET' || c.req.method === 'HEAD') return next();
    const most = bodyLimit(c.req.path, limit);
    if (PLATFORM_PATH.test(c.req.path)) {
      c.req.bodyCache.arrayBuffer = Promise.resolve(await readBytes(c, most)) as never;
      return next();
    }
    const length = Number(c.env.incoming.headers['content-length'] ?? Number.NaN);
    const text = await (length <= Math.min(SHORT, most) ? readShort(c) : readLong(c, most));
    if (text !== '') assertJson(c);
    // Where a body may be left out, an empty one is as good as none. (What is kept there is awaited, whatever its type.)
    c.req.bodyCache.text = Promise.resolve(text.trim() === '' ? '{}' : text) as never;
    return next();
  };
}

/** How many bytes the body of a request to a path may have. */
export function bodyLimit(path: string, limit: number = DEFAULT_BODY_BYTES): number {
  return CHAT_PATHS.has(path) ? Math.max(limit, CHAT_BODY_BYTES) : limit;
}

/** A body as it comes. Throws `body_too_large` before more than is allowed of it was given on. */
export async function* chunksOf(c: ApiContext, limit: number): AsyncGenerator<Buffer> {
  if (Number(c.env.incoming.headers['content-length'] ?? 0) > limit) throw tooLarge(c, limit);
  let bytes = 0;
  // To stop reading must not destroy the connection: the answer that says why goes through it.
  for await (const chunk of c.env.incoming.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += chunk.byteLength;
    // A body sent in chunks says nothing about its length before.
    if (bytes > limit) throw tooLarge(c, limit);
    yield chunk;
  }
}

/** A short body comes in one piece or two: those are put together, the others decoded as they come. */
const SHORT = 65_536;
const shortDecoder = new TextDecoder('utf-8', { fatal: true });

async function readShort(c: ApiContext): Promise<string> {
  const { incoming } = c.env;
  const chunks: Buffer[] = [];
  try {
    await new Promise<void>((resolve, reject) => {
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('end', resolve);
      incoming.on('error', reject);
      incoming.on('close', () => reject(incoming.errored));
    });
    return shortDecoder.decode(chunks.length === 1 ? chunks[0] : Buffer.concat(chunks));
  } catch (thrown) {
    throw brokenBody(thrown);
  }
}

async function readLong(c: ApiContext, limit: number): Promise<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let text = '';
  try {
    for await (const chunk of chunksOf(c, limit)) text += decoder.decode(chunk, { stream: true });
    return text + decoder.decode();
  } catch (thrown) {
    throw thrown instanceof MoiraiError ? thrown : brokenBody(thrown);
  }
}

async function readBytes(c: ApiContext, limit: number): Promise<Uint8Array> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of chunksOf(c, limit)) chunks.push(chunk);
  } catch (thrown) {
    throw thrown instanceof MoiraiError ? thrown : brokenBody(thrown);
  }
  return Buffer.concat(chunks);
}

function brokenBody(thrown: unknown): MoiraiError {
  return new MoiraiError('bad_input', 'the body broke off, or is not UTF-8', { cause: thrown });
}

function tooLarge(c: ApiContext, limit: number): MoiraiError {
  // The rest of the body is on its way; whatever follows it on this connection would have to wait for it.
  c.header('Connection', 'close');
  return new MoiraiError('body_too_large', `the body has more than ${limit} bytes`, { details: { limit } });
}

function assertJson(c: ApiContext): void {
  const { 'content-type': type, 'content-encoding': encoding = 'identity' } = c.env.incoming.headers;
  if (type === undefined) throw new MoiraiError('unsupported_media_type', 'the body has no content type');
  if (!/^application\/([a-z.-]+\+)?json\s*(;|$)/i.test(type)) {
    throw new MoiraiError('unsupported_media_type', `the body is ${type}, not JSON`);
  }
  if (encoding !== 'identity') throw new MoiraiError('unsupported_media_type', `the body is encoded as ${encoding}`);
}

/** What is wrong with a text that is not JSON, and where. */
export function jsonMistake(text: string): string {
  const said = parserSays(text);
  if (said === null) return 'it is not what was expected';
  if (/position \d+/.test(said)) return said;
  if (/end of JSON|Unterminated/.test(said)) return `${said} at position ${text.length}`;
  return text.length > MOST_SEARCHED ? said : `${said} at position ${mistakenAt(text)}`;
}

/** Longer texts are not parsed again and again for the sake of a message. */
const MOST_SEARCHED = 65_536;

function parserSays(text: string): string | null {
  try {
    JSON.parse(text);
    return null;
  } catch (thrown) {
    return thrown instanceof Error ? thrown.message : String(thrown);
  }
}

/** The parser does not place unexpected characters: the shortest beginning that cannot be completed ends with it. */
function mistakenAt(text: string): number {
  let [sound, broken] = [0, text.length];
  while (broken - sound > 1) {
    const middle = (sound + broken) >> 1;
    if (isBeginning(text.slice(0, middle))) sound = middle;
    else broken = middle;
  }
  return broken - 1;
}

function isBeginning(text: string): boolean {
  const said = parserSays(text);
  return said === null || /end of JSON|Unterminated/.test(said) || said.includes(`position ${text.length} `);
}

import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { PageHook } from '../api/access.ts';
import { knowsTag } from '../api/entity-tag.ts';

/** Where the page is built: beside `src` and `dist`. */
const BUILT = fileURLToPath(new URL('../../web/', import.meta.url));

/** What a page is made of. Nothing else is given out, whatever lies in the folder. */
const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  png: 'image/png',
  svg: 'image/svg+xml',
  ico: 'image/x-icon',
  woff2: 'font/woff2',
};

/** The page loads only its own files, and calls only the server that gave it out. */
const PAGE_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "font-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

interface PageFile {
  readonly bytes: Buffer<ArrayBuffer>;
  readonly headers: Readonly<Record<string, string>>;
  readonly etag: string;
}

/**
 * Gives the built page. It is read once, whole, at the first request: only what was there then has a path, and files of
 * two builds never meet. While there is no page, its first file says how to get it.
 */
export function builtPage(folder: string = BUILT): PageHook {
  let files: ReadonlyMap<string, PageFile> | null | undefined;
  return (path, knownTags) => {
    const isFirst = path === '/' || path === '/index.html';
    // Without a page the folder is read again when the first file is asked for, and not for every other request.
    if (files === undefined || (files === null && isFirst)) files = readPage(folder);
    const file = files?.get(isFirst ? '/index.html' : path);
    if (file !== undefined) return answer(file, knownTags);
    return isFirst ? notBuilt() : null;
  };
}

function answer({ bytes, headers, etag }: PageFile, knownTags?: string): Response {
  if (knowsTag(knownTags, etag)) return new Response(null, { status: 304, headers });
  return new Response(bytes, { headers: { ...headers, 'content-length': String(bytes.length) } });
}

/** Every file by its path; null when there is no page. */
function readPage(folder: string): ReadonlyMap<string, PageFile> | null {
  const files = new Map<string, PageFile>();
  for (const name of namesIn(folder)) {
    const type = TYPES[/\.([a-z0-9]+)$/.exec(name)?.[1] ?? ''];
    if (type !== undefined) files.set(`/${name}`, readFile(join(folder, name), name, type));
  }
  return files.has('/index.html') ? files : null;
}

function namesIn(folder: string): string[] {
  try {
    const entries = readdirSync(folder, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
    return entries.map(({ parentPath, name }) => relative(folder, join(parentPath, name)).replaceAll(sep, '/'));
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return []; // Not built: the answer says so.
    throw thrown;
  }
}

function readFile(file: string, name: string, type: string): PageFile {
  const bytes = readFileSync(file);
  const etag = `"${createHash('sha256').update(bytes).digest('base64url').slice(0, 22)}"`;
  // Names under assets/ have a digest of what is in them; another content is another name.
  const lasting = name.startsWith('assets/');
  return {
    bytes,
    etag,
    headers: {
      'content-type': type,
      'cache-control': lasting ? 'public, max-age=31536000, immutable' : 'no-cache',
      etag,
      ...(name.endsWith('.html') ? { 'content-security-policy': PAGE_POLICY } : {}),
    },
  };
}

function notBuilt(): Response {
  const text = 'The page has not been built. Run `npm run build:page`, then load it again.\n';
  const headers = { 'content-type': 'text/plain; charset=utf-8', 'cache-control': 'no-store' };
  return new Response(text, { status: 503, headers });
}

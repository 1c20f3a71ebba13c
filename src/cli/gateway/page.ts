import { readFileSync } from 'node:fs';
import type { PageHook } from '../../api/app.ts';

const FILES: Readonly<Record<string, { readonly name: string; readonly type: string }>> = {
  '/': { name: 'index.html', type: 'text/html; charset=utf-8' },
  '/chat.js': { name: 'chat.js', type: 'text/javascript; charset=utf-8' },
  '/chat.css': { name: 'chat.css', type: 'text/css; charset=utf-8' },
};

/** The web chat, from the files beside the program. */
export const webPage: PageHook = (path) => {
  const file = FILES[path];
  if (file === undefined) return null;
  const bytes = readFileSync(new URL(`../../../web/${file.name}`, import.meta.url));
  return new Response(bytes, { headers: { 'content-type': file.type, 'cache-control': 'no-cache' } });
};

import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { builtPage } from './page-files.ts';

let folder: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'moirai-page-'));
});

afterEach(() => rmSync(folder, { recursive: true, force: true }));

function build(): void {
  mkdirSync(join(folder, 'assets'));
  writeFileSync(join(folder, 'index.html'), '<h1>Moirai</h1>');
  writeFileSync(join(folder, 'favicon.ico'), 'icon');
  writeFileSync(join(folder, 'assets', 'main-a1b2.js'), 'run()');
  writeFileSync(join(folder, 'assets', 'people-c3d4.png'), 'png');
  writeFileSync(join(folder, 'notes.txt'), 'not a part of it');
}

const headersOf = (answer: Response | null) => Object.fromEntries(answer?.headers ?? []);

test('the first file is asked for each time, and says what the page may load', async () => {
  build();
  const page = builtPage(folder);
  for (const path of ['/', '/index.html']) {
    const answer = page(path, undefined);
    expect(headersOf(answer)).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'cache-control': 'no-cache',
    });
    expect(headersOf(answer)['content-security-policy']).toMatch(/^default-src 'none'; script-src 'self';/);
    expect(await answer?.text()).toBe('<h1>Moirai</h1>');
  }
});

test('what has a digest in its name is kept for good', () => {
  build();
  const page = builtPage(folder);
  const lasting = 'public, max-age=31536000, immutable';
  const typeOf = (path: string) => {
    const { 'content-type': type, 'cache-control': kept } = headersOf(page(path, undefined));
    return [type, kept];
  };
  expect(typeOf('/assets/main-a1b2.js')).toEqual(['text/javascript; charset=utf-8', lasting]);
  expect(typeOf('/assets/people-c3d4.png')).toEqual(['image/png', lasting]);
  expect(typeOf('/favicon.ico')).toEqual(['image/x-icon', 'no-cache']);
});

test('a file that the browser has is not sent again, another one is', () => {
  build();
  const page = builtPage(folder);
  const { etag = '' } = headersOf(page('/', undefined));
  for (const known of [etag, `W/${etag}`, `"other", ${etag}`]) expect(page('/', known)?.status).toBe(304);
  expect(page('/', '"other"')?.status).toBe(200);
  expect(page('/favicon.ico', etag)?.status).toBe(200);
});

test('nothing but files of the page has a path', () => {
  build();
  const secret = `${folder}.secret.js`;
  writeFileSync(secret, 'secret');
  symlinkSync(secret, join(folder, 'linked.js'));
  const page = builtPage(folder);
  const paths = ['/notes.txt', '/assets', '/assets/', '/linked.js', '', '/index.html/', '/constructor', '/__proto__'];
  const up = [`/../${secret.split('/').at(-1)}`, `/assets/../index.html`, '/assets\\main-a1b2.js', '//index.html'];
  for (const path of [...paths, ...up]) expect([path, page(path, undefined)]).toEqual([path, null]);
  rmSync(secret);
});

test('without a page its address says how to build it, until it is there', async () => {
  const page = builtPage(folder);
  for (const missing of [page, builtPage(join(folder, 'nowhere'))]) {
    const answer = missing('/', undefined);
    expect([answer?.status, await answer?.text()]).toEqual([503, expect.stringContaining('npm run build:page')]);
    expect(missing('/assets/main-a1b2.js', undefined)).toBeNull();
  }
  build();
  expect(page('/', undefined)?.status).toBe(200);
  expect(page('/assets/main-a1b2.js', undefined)?.status).toBe(200);
});

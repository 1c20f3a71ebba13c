import { afterAll, beforeAll, expect, test } from 'vitest';
import { fetchUrlTool } from '../../src/agent/tools/fetch-url.ts';
import type { WebAccess } from '../../src/agent/tools/ports.ts';
import { isPublic } from '../../src/agent/tools/public-address.ts';
import { type HttpFake, startHttpFake } from '../fakes/http-fake.ts';

const PAGE = `<html><head><title>A &amp; B</title><style>x{}</style></head>
<body><h1>Hi</h1><script>alert(1)</script><p>One<br>two &#8211; three</p><ul><li>item</ul></body></html>`;

let server: HttpFake;

beforeAll(async () => {
  server = await startHttpFake(async ({ path }, response) => {
    if (path === '/page') response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(PAGE);
    else if (path === '/json') response.writeHead(200, { 'content-type': 'application/json' }).end('{"a":1}');
    else if (path === '/binary') response.writeHead(200, { 'content-type': 'image/png' }).end(Buffer.from([1, 0, 1]));
    else if (path === '/big') response.writeHead(200, { 'content-type': 'text/plain' }).end('b'.repeat(5_000_000));
    else if (path.startsWith('/repeat?')) {
      const unit = decodeURIComponent(path.slice('/repeat?'.length));
      response.writeHead(200, { 'content-type': 'text/html' }).end(unit.repeat(200_000 / unit.length));
    } else if (path === '/hop') response.writeHead(302, { location: '/json' }).end();
    else if (path === '/loop') response.writeHead(302, { location: '/loop' }).end();
    else if (path.startsWith('/to?')) response.writeHead(302, { location: path.slice(4) }).end();
    else response.writeHead(404, { 'content-type': 'text/plain' }).end('nothing here');
  });
});

afterAll(() => server.close());

const signal = new AbortController().signal;
const context = { sessionId: 's1', turnId: 't1', platform: 'api', userId: null, signal };
const fetchUrl = (url: string, web: WebAccess = { allowLoopback: true }) => fetchUrlTool(web).run({ url }, context);

test('a page is told as text, other texts as they are', async () => {
  expect(await fetchUrl(`${server.url}/page`)).toBe(
    'Status 200, text/html; charset=utf-8\n\nA & B\n\nHi\n\nOne\ntwo – three\n\n- item',
  );
  expect(await fetchUrl(`${server.url}/json`)).toBe('Status 200, application/json\n\n{"a":1}');
  expect(await fetchUrl(`${server.url}/hop`)).toContain('{"a":1}');
  expect(await fetchUrl(`${server.url}/binary`)).toContain('3 bytes that are not text');
  expect(await fetchUrl(`${server.url}/none`)).toContain('Status 404');
  expect((await fetchUrl(`${server.url}/big`)).length).toBeLessThan(33_000);
});

test('a page of 200 KB that was made to take long is read at once', async () => {
  for (const unit of [
    '<!--',
    '<!-',
    '<',
    '<script',
    '<script>',
    '<title',
    '<a href="',
    '&#',
    '</',
    ' \t',
    '\n ',
    '-->',
  ]) {
    const before = process.threadCpuUsage();
    await fetchUrl(`${server.url}/repeat?${encodeURIComponent(unit)}`);
    const { user } = process.threadCpuUsage(before);
    expect(user / 1000, unit).toBeLessThan(500);
  }
});

test('what leads nowhere ends', async () => {
  await expect(fetchUrl(`${server.url}/loop`)).rejects.toThrow('redirects');
  await expect(fetchUrl('file:///etc/passwd')).rejects.toThrow('only http and https');
  await expect(fetchUrl('no address')).rejects.toThrow('not an address');
});

test.each([
  ...['127.0.0.1', '0.0.0.0', '10.1.2.3', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.64.0.1', '224.0.0.1'],
  ...['::1', '::', '::ffff:127.0.0.1', '::ffff:10.0.0.1', 'fe80::1', 'fc00::1', 'fd12::1', 'ff02::1', '64:ff9b::a00:1'],
  ...['2002:7f00:1::', '2001:db8::1', 'not an address'],
])('%s is not public', (address) => {
  expect(isPublic(address)).toBe(false);
});

test.each(['1.1.1.1', '93.184.216.34', '2606:4700::1111'])('%s is public', (address) => {
  expect(isPublic(address)).toBe(true);
});

test('private addresses are refused however they are written', async () => {
  const { port } = new URL(server.url);
  const hosts = [
    '127.0.0.1',
    '[::1]',
    '2130706433',
    '0x7f.1',
    '127.1',
    'localhost',
    '169.254.169.254',
    '[::ffff:7f00:1]',
  ];
  for (const host of hosts) {
    await expect(fetchUrl(`http://${host}:${port}/json`, {})).rejects.toThrow('not a public address');
  }
  expect(server.requests.filter(({ headers }) => String(headers.host).startsWith('localhost'))).toEqual([]);
});

test('a name with a private address among its addresses is refused', async () => {
  const resolve = async () => ['93.184.216.34', '10.0.0.1'];
  await expect(fetchUrl('http://mixed.example/', { resolve })).rejects.toThrow('not a public address');
});

test('a redirect to a private address is refused', async () => {
  await expect(fetchUrl(`${server.url}/to?http://10.0.0.1/`)).rejects.toThrow('not a public address');
  await expect(
    fetchUrl(`${server.url}/to?http://metadata.example/`, {
      allowLoopback: true,
      resolve: async () => ['169.254.169.254'],
    }),
  ).rejects.toThrow('not a public address');
});

test('the address that was checked is the one connected to, whatever the name means a moment later', async () => {
  const { port } = new URL(server.url);
  let asked = 0;
  const resolve = async () => (asked++ === 0 ? ['127.0.0.1'] : ['10.0.0.1']);
  const before = server.requests.length;
  expect(await fetchUrl(`http://rebound.example:${port}/json`, { allowLoopback: true, resolve })).toContain('{"a":1}');
  expect(asked).toBe(1);
  expect(server.requests[before]?.headers.host).toBe(`rebound.example:${port}`);
  // The same name again is asked again, and what it means by then is judged.
  await expect(fetchUrl(`http://rebound.example:${port}/json`, { allowLoopback: true, resolve })).rejects.toThrow(
    'public',
  );
});

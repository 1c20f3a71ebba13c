import { networkInterfaces } from 'node:os';
import { describe, expect, test } from 'vitest';
import { startApi } from '../../src/api/server.ts';
import { apiFixture, ask } from './support/api-fixture.ts';

const KEY = 'a-key-of-the-loom';

describe('without a key', () => {
  const fixture = apiFixture();

  test.each(['127.0.0.1:8787', '127.0.0.1', 'localhost', 'localhost:1', 'LOCALHOST:80', '[::1]:8787', '127.8.9.1'])(
    'the host %s is this machine',
    async (host) => {
      expect((await ask(fixture.api, '/v1/sessions', { headers: { host } })).status).toBe(200);
    },
  );

  test.each(['example.org', 'example.org:8787', '127.0.0.1.example.org', 'localhost.example.org', '10.0.0.1', '[::2]'])(
    'the host %s is refused: it may be a page that calls us by its own name',
    async (host) => {
      const answer = await ask(fixture.api, '/v1/sessions', { headers: { host } });
      expect([answer.status, answer.json.error.code]).toEqual([403, 'forbidden_host']);
    },
  );

  test('a page of another origin is refused, a page of ours and whoever is no page is not', async () => {
    const own = new URL(fixture.api.url).host;
    const code = async (origin: string) =>
      (await ask(fixture.api, '/v1/sessions', { headers: { origin } })).json.error?.code;
    expect(await code(`http://${own}`)).toBeUndefined();
    for (const other of ['http://example.org', 'null', `http://${own}0`, 'https://localhost', `ftp://${own}`]) {
      expect([other, await code(other)]).toEqual([other, 'forbidden_origin']);
    }
  });

  test('health answers everybody', async () => {
    const headers = { host: 'example.org', origin: 'http://example.org' };
    expect((await ask(fixture.api, '/health', { headers })).json).toEqual({ status: 'ok', version: '0.0.0-test' });
  });

  test('a configured origin may call, and asks before it does', async () => {
    const origin = 'https://space.example';
    await fixture.reopen({ allowedOrigins: [origin] });
    const answer = await ask(fixture.api, '/v1/sessions', { headers: { origin } });
    expect([answer.status, answer.headers['access-control-allow-origin']]).toEqual([200, origin]);
    const headers = { origin, 'access-control-request-method': 'POST' };
    const preflight = await ask(fixture.api, '/v1/chat', { method: 'OPTIONS', headers });
    expect([preflight.status, preflight.headers['access-control-allow-methods']]).toEqual([204, 'GET, POST']);
    expect(preflight.headers['access-control-allow-headers']).toContain('Authorization');
  });

  /** An address by which this machine reaches itself as another one would; not every machine has one. */
  const outer = Object.values(networkInterfaces())
    .flat()
    .find((one) => one !== undefined && !one.internal && one.family === 'IPv4')?.address;

  test.skipIf(outer === undefined)('another machine is refused, whatever it calls us', async () => {
    await fixture.reopen({ host: '0.0.0.0' });
    const url = `http://${outer}:${new URL(fixture.api.url).port}`;
    const answer = await ask({ ...fixture.api, url }, '/v1/sessions', { headers: { host: 'localhost' } });
    expect([answer.status, answer.json.error.code]).toEqual([403, 'forbidden_client']);
  });

  test.each(['X-Forwarded-For', 'Forwarded', 'X-Real-IP', 'Via', 'X-Forwarded-Proto'])(
    'what a proxy on this machine passes on is refused, which %s tells',
    async (name) => {
      const answer = await ask(fixture.api, '/v1/sessions', { headers: { [name]: '127.0.0.1' } });
      expect([answer.status, answer.json.error.code]).toEqual([403, 'forbidden_client']);
    },
  );

  test('a request without a readable host or address gets a coded error', async () => {
    const answer = await ask(fixture.api, '/v1/sessions', { headers: { host: 'a b' } });
    expect([answer.status, answer.json.error.code]).toEqual([400, 'bad_input']);
  });
});

describe('with a key', () => {
  const fixture = apiFixture({ apiKey: KEY });
  const bearer = (key: string) => ({ headers: { authorization: `Bearer ${key}` } });

  test('everything but health asks for it, whatever the host', async () => {
    for (const path of ['/v1/sessions', '/ready', '/metrics', '/openapi.json', '/', '/v1/models', '/space.json']) {
      const answer = await ask(fixture.api, path);
      expect([path, answer.status, answer.json.error.code]).toEqual([path, 401, 'unauthorized']);
      expect(answer.headers['www-authenticate']).toBe('Bearer');
    }
    expect((await ask(fixture.api, '/health')).status).toBe(200);
    const headers = { host: 'moirai.example', authorization: `Bearer ${KEY}` };
    expect((await ask(fixture.api, '/v1/sessions', { headers })).status).toBe(200);
  });

  describe('and a page', () => {
    const html = { headers: { 'content-type': 'text/html' } };
    const page = (path: string) => (['/', '/a.js'].includes(path) ? new Response(`at ${path}`, html) : null);

    test('gives its files without the key, since it asks for it, and nothing else', async () => {
      await fixture.reopen({ apiKey: KEY, page });
      for (const path of ['/', '/a.js']) {
        const file = await ask(fixture.api, path, { headers: { host: 'moirai.example' } });
        expect([file.status, file.text]).toEqual([200, `at ${path}`]);
        expect((await ask(fixture.api, path, { method: 'HEAD' })).status).toBe(200);
      }
      expect((await ask(fixture.api, '/', bearer('wrong'))).status).toBe(200);
      const others = ['/space.json', '/v1/sessions', '/b.js', '/a.js/', '/a.js/../v1/sessions', '//v1/sessions'];
      for (const path of [...others, '/a.js?/../v1/sessions/..', '/a.js%2f..%2fv1%2fsessions']) {
        const answer = await ask(fixture.api, path);
        const told = answer.json?.error.code ?? answer.text;
        expect([path, told]).toEqual([path, path.startsWith('/a.js?') ? 'at /a.js' : 'unauthorized']);
      }
      expect((await ask(fixture.api, '/', { body: {} })).json.error.code).toBe('unauthorized');
    });

    test('does not give them to pages of other origins', async () => {
      await fixture.reopen({ apiKey: KEY, page });
      const answer = await ask(fixture.api, '/', { headers: { origin: 'https://example.org' } });
      expect([answer.status, answer.json.error.code]).toEqual([403, 'forbidden_origin']);
    });

    test('that has the path of a route hides it, and never opens it', async () => {
      await fixture.reopen({ apiKey: KEY, page: (path) => (path === '/v1/sessions' ? new Response('mine') : null) });
      expect((await ask(fixture.api, '/v1/sessions')).text).toBe('mine');
    });
  });

  test('a platform needs none: it proves itself in its own way, and reaches nothing else', async () => {
    const bring = (name: string, feather: string) =>
      ask(fixture.api, `/platforms/${name}`, { body: {}, headers: { host: 'bot.example.org', 'x-feather': feather } });
    expect((await bring('pigeon', 'grey')).status).toBe(200);
    expect((await bring('pigeon', 'white')).status).toBe(401);
    expect((await bring('crow', 'grey')).json.error.code).toBe('not_found');
    expect((await ask(fixture.api, '/platforms/pigeon/../v1/sessions', {})).status).not.toBe(200);
    expect((await ask(fixture.api, '/platforms/pigeon%2f..%2f..%2fv1%2fsessions', {})).status).not.toBe(200);
  });

  test('keys that are nearly right are wrong', async () => {
    for (const key of [`${KEY}x`, KEY.slice(1), KEY.toUpperCase(), 'x']) {
      expect((await ask(fixture.api, '/v1/sessions', bearer(key))).status).toBe(401);
    }
    expect((await ask(fixture.api, '/v1/sessions', { headers: { authorization: `Basic ${KEY}` } })).status).toBe(401);
    expect((await ask(fixture.api, '/v1/sessions', bearer(KEY))).status).toBe(200);
  });

  test('more than ten wrong keys in a minute are answered late, and lock the right key of the address out never', async () => {
    for (let i = 0; i < 10; i++) {
      expect((await ask(fixture.api, '/v1/sessions', bearer(`guess-${i}`))).status).toBe(401);
    }
    const started = performance.now();
    const answer = await ask(fixture.api, '/v1/sessions', bearer('guess-10'));
    expect([answer.status, answer.json.error.code]).toEqual([429, 'too_many_failures']);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
    expect(performance.now() - started).toBeGreaterThan(400);
    expect((await ask(fixture.api, '/v1/sessions', bearer(KEY))).status).toBe(200);
    expect((await ask(fixture.api, '/health')).status).toBe(200);
  });

  test('wrong keys behind a trusted proxy count for the client it names, and for the proxy where it is not trusted', async () => {
    const guess = async (client: string) => {
      const headers = { ...bearer('wrong').headers, 'x-forwarded-for': client };
      return (await ask(fixture.api, '/v1/sessions', { headers })).status;
    };
    await fixture.reopen({ apiKey: KEY, trustedProxies: ['127.0.0.1'] });
    for (let i = 0; i < 10; i++) expect(await guess('203.0.113.9')).toBe(401);
    expect(await guess('203.0.113.9')).toBe(429);
    expect(await guess('203.0.113.8')).toBe(401);
    // What a client writes into the header stands before what the proxy adds.
    expect(await guess('203.0.113.7, 203.0.113.9')).toBe(429);
    await fixture.reopen({ apiKey: KEY });
    for (let i = 0; i < 10; i++) expect(await guess(`203.0.113.${i}`)).toBe(401);
    expect(await guess('203.0.113.200')).toBe(429);
  });

  test('a request that a trusted proxy passes on is none of this machine, whatever it claims', async () => {
    await fixture.reopen({ apiKey: null, trustedProxies: ['127.0.0.1'] });
    const headers = { 'x-forwarded-for': '127.0.0.1', host: 'localhost' };
    expect((await ask(fixture.api, '/v1/sessions', { headers })).json.error.code).toBe('forbidden_client');
    expect((await ask(fixture.api, '/v1/sessions')).status).toBe(200);
  });

  test('requests without any key are not guesses', async () => {
    for (let i = 0; i < 20; i++) expect((await ask(fixture.api, '/v1/sessions')).status).toBe(401);
    expect((await ask(fixture.api, '/v1/sessions', bearer(KEY))).status).toBe(200);
  });
});

describe('the port', () => {
  const fixture = apiFixture();

  test('that is taken is reported as such', async () => {
    const port = Number(new URL(fixture.api.url).port);
    const { backend, engine } = fixture;
    const again = startApi({
      ...{ host: '127.0.0.1', port, apiKey: null, allowedOrigins: [], version: '0', backend, engine },
    });
    await expect(again).rejects.toMatchObject({ code: 'port_in_use' });
  });

  test('serves a page that others made, under the same rules', async () => {
    const html = { headers: { 'content-type': 'text/html', 'cache-control': 'max-age=60' } };
    await fixture.reopen({ page: (path) => (path === '/' ? new Response('<h1>Moirai</h1>', html) : null) });
    const page = await ask(fixture.api, '/');
    expect([page.status, page.text]).toEqual([200, '<h1>Moirai</h1>']);
    expect(page.headers).toMatchObject({
      'content-type': 'text/html',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cache-control': 'max-age=60',
      'x-frame-options': 'DENY',
    });
    expect((await ask(fixture.api, '/nothing')).json.error.code).toBe('not_found');
    expect((await ask(fixture.api, '/', { headers: { host: 'example.org' } })).status).toBe(403);
  });

  test('tells the page that it shows this gateway', async () => {
    const { status, json } = await ask(fixture.api, '/space.json');
    expect([status, json]).toEqual([200, { sources: [{ name: expect.any(String), base: '' }], chat: true }]);
    expect(json.sources[0].name).not.toBe('');
  });
});

import { once } from 'node:events';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createPlainServer } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import type { OpenPort } from '../../src/api/port.ts';
import type { SpaceGateway } from '../../src/space/gateway-link.ts';
import { type SpaceOptions, startSpace } from '../../src/space/space-server.ts';
import { apiFixture, ask, listen, until } from '../api/support/api-fixture.ts';
import { freePort } from '../support/free-port.ts';
import { patience } from '../support/patience.ts';
import { chatConversation } from '../support/stores.ts';

const GATEWAY_KEY = 'the-gateway-Schlüssel';
const SPACE_KEY = 'the-key-of-the-page';
const FILE = { headers: { 'content-type': 'text/html' } };

const opened: (() => Promise<unknown>)[] = [];
const logged: string[] = [];
afterEach(async () => {
  for (const close of opened.splice(0)) await close();
  expect(logged.splice(0)).toEqual([]);
});

async function openSpace(
  gateways: readonly (Partial<SpaceGateway> & { url: string })[],
  options: Partial<SpaceOptions> = {},
): Promise<OpenPort> {
  const note = (message: string, fields: Readonly<Record<string, unknown>> = {}): void =>
    void logged.push(`${message}: ${String(fields.error)}`);
  const space = await startSpace({
    ...{ host: '127.0.0.1', port: 0, key: null, version: '0.0.0-test', log: { error: note, warn: note } },
    page: (path) => (path === '/' ? new Response('<h1>Space</h1>', FILE) : null),
    ...options,
    gateways: gateways.map((gateway, i) => ({ name: `g${i}`, key: null, ...gateway })),
  });
  opened.push(() => space.close());
  return space;
}

interface Fake {
  readonly url: string;
  readonly server: Server;
  /** What came, in its order. */
  readonly requests: IncomingMessage[];
}

/** Somebody at the place of a gateway. */
async function fake(answer: (incoming: IncomingMessage, outgoing: ServerResponse) => void): Promise<Fake> {
  const requests: IncomingMessage[] = [];
  const server = createServer((incoming, outgoing) => {
    requests.push(incoming);
    answer(incoming, outgoing);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  opened.push(async () => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, server, requests };
}

const well = (): Promise<Fake> => fake((_, outgoing) => outgoing.end('{"ok":true}'));

/** A stream that is left open, as it comes: its text so far, and how it ended. */
function follow(space: OpenPort, path: string) {
  const seen = { status: 0, text: '', end: null as 'whole' | 'broken' | null, endedAt: 0 };
  const sent = request(new URL(path, space.url), { agent: false, headers: { accept: 'text/event-stream' } });
  const end = (how: 'whole' | 'broken') => () => {
    seen.end ??= how;
    seen.endedAt ||= performance.now();
  };
  sent.on('response', (answer) => {
    seen.status = answer.statusCode ?? 0;
    answer.on('data', (chunk: Buffer) => {
      seen.text += chunk.toString();
    });
    answer.on('end', end('whole'));
    answer.on('error', end('broken'));
  });
  sent.on('error', end('broken'));
  sent.end();
  opened.push(async () => sent.destroy());
  return { seen, leave: () => sent.destroy() };
}

describe('over a real gateway', () => {
  const fixture = apiFixture({ apiKey: GATEWAY_KEY });
  const open = () => openSpace([{ url: fixture.api.url, key: GATEWAY_KEY }]);

  test('the page finds every gateway by its name, and no key', async () => {
    const space = await openSpace([
      { name: 'loom', url: fixture.api.url, key: GATEWAY_KEY },
      { name: 'north', url: 'http://127.0.0.1:1', key: 'another-key' },
    ]);
    const sources = [
      { name: 'loom', base: '/gateways/0' },
      { name: 'north', base: '/gateways/1' },
    ];
    const { text, json } = await ask(space, '/space.json');
    expect(json).toEqual({ sources, chat: true });
    expect(text).not.toContain('key');
    expect((await ask(space, '/health')).json).toEqual({ status: 'ok', version: '0.0.0-test' });
    expect((await ask(space, '/')).text).toBe('<h1>Space</h1>');
    expect((await ask(space, '/nothing')).json.error.code).toBe('not_found');
  });

  test('what is asked and said reaches it under its key', async () => {
    const space = await open();
    expect((await ask(fixture.api, '/v1/sessions')).status).toBe(401);
    expect((await ask(space, '/gateways/0/ready')).json).toMatchObject({ state: 'ready' });
    const said = await ask(space, '/gateways/0/v1/chat', { body: { text: 'hello', conversation: 'space' } });
    expect([said.status, said.json.reply]).toEqual([200, 'You said: hello']);
    const path = `/gateways/0/v1/sessions?key=${encodeURIComponent('agent:main:api:dm:space')}`;
    const { json } = await ask(space, path);
    expect(json.data).toMatchObject([{ id: said.json.session_id, state: 'open' }]);
    const ended = await ask(space, `/gateways/0/v1/sessions/${said.json.session_id}/end`, { body: {} });
    expect(ended.json).toMatchObject({ state: 'ended', end_reason: 'api_close' });
  });

  test('its errors are its own', async () => {
    const space = await open();
    const missing = await ask(space, '/gateways/0/v1/sessions/ses_nobody');
    expect([missing.status, missing.json.error.code]).toEqual([404, 'session_not_found']);
    const bad = await ask(space, '/gateways/0/v1/chat', { body: '{', headers: { 'content-type': 'application/json' } });
    expect([bad.status, bad.json.error.code]).toEqual([400, 'bad_input']);
    await fixture.backend.drain();
    const draining = await ask(space, '/gateways/0/ready');
    expect([draining.status, draining.json.state]).toEqual([503, 'draining']);
  });

  test('what has not changed is not sent again', async () => {
    const space = await open();
    const { headers } = await ask(space, '/gateways/0/v1/space/activity');
    const etag = String(headers.etag);
    const again = await ask(space, '/gateways/0/v1/space/activity', { headers: { 'if-none-match': etag } });
    expect([again.status, again.text, again.headers.etag]).toEqual([304, '', etag]);
  });

  test('streams are passed on as they come, from where the page was', async () => {
    const space = await open();
    const { id } = await fixture.engine.start(chatConversation('followed'));
    const { next } = (await ask(space, '/gateways/0/v1/events?after=now')).json;
    const tail = listen(space, '/gateways/0/v1/events', { headers: { 'last-event-id': String(next - 1) } });
    expect((await tail.next()).value).toMatchObject({ id: String(next), data: { type: 'session:start' } });
    await fixture.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    expect((await tail.next()).value).toMatchObject({ data: { type: 'session:end', session_id: id } });
    await tail.return(undefined);
  });

  test('a reply is heard while it is written', async () => {
    let finish = (): void => undefined;
    const finished = new Promise<void>((resolve) => {
      finish = resolve;
    });
    fixture.backend.script = async (_, show) => {
      show({ type: 'text', text: 'once' });
      await finished;
      return { text: 'once upon a time' };
    };
    const space = await open();
    const init = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{"text":"tell me"}' };
    const stream = listen(space, '/gateways/0/v1/chat', init);
    expect((await firstOfKind(stream, 'text')).data).toEqual({ text: 'once' });
    finish();
    expect((await firstOfKind(stream, 'done')).data).toMatchObject({ reply: 'once upon a time', outcome: 'done' });
  });

  async function firstOfKind(stream: ReturnType<typeof listen>, kind: string) {
    for (;;) {
      const { value, done } = await stream.next();
      if (done) throw new TypeError(`the stream ended before any ${kind}`);
      if (value.event === kind) return value;
    }
  }

  test('a gateway that closes ends the streams, and is found again when it is back', async () => {
    const port = await freePort();
    await fixture.reopen({ port });
    const space = await open();
    const stream = follow(space, '/gateways/0/v1/events?after=now');
    await until('it streams', () => stream.seen.text !== '');
    await fixture.api.close();
    await until('the page is told', () => stream.seen.end !== null);
    const gone = await ask(space, '/gateways/0/ready');
    expect([gone.status, gone.json.error.code]).toEqual([502, 'gateway_unreachable']);
    await fixture.reopen({ port });
    expect((await ask(space, '/gateways/0/ready')).status).toBe(200);
  });
});

describe('what is passed on', () => {
  test('is the request, and nothing that says who asked', async () => {
    const upstream = await fake((_, outgoing) => {
      outgoing.writeHead(200, {
        ...{ 'content-type': 'application/json', etag: '"7"', 'set-cookie': 'a=b', 'x-powered-by': 'php' },
        ...{ 'access-control-allow-origin': '*', 'content-security-policy': "default-src 'self'" },
      });
      outgoing.end('{}');
    });
    const space = await openSpace([{ url: upstream.url, key: GATEWAY_KEY }], { key: SPACE_KEY });
    const kept = {
      ...{ accept: 'application/json', 'content-type': 'application/json', 'if-none-match': '"6"' },
      ...{ 'last-event-id': '12', 'idempotency-key': 'once' },
    };
    const own = {
      ...{ authorization: `Bearer ${SPACE_KEY}`, cookie: 'a=b', origin: space.url, referer: space.url },
      ...{ 'x-forwarded-for': '10.0.0.1', 'accept-encoding': 'gzip', 'user-agent': 'me', te: 'trailers' },
    };
    const answer = await ask(space, '/gateways/0/v1/chat?a=%2F&b=1', { body: '{"a":1}', headers: { ...kept, ...own } });
    const [{ headers, method, url } = {} as IncomingMessage] = upstream.requests;
    const bearer = `Bearer ${Buffer.from(GATEWAY_KEY).toString('latin1')}`;
    expect([method, url]).toEqual(['POST', '/v1/chat?a=%2F&b=1']);
    expect(headers).toEqual({
      ...kept,
      ...{ authorization: bearer, host: new URL(upstream.url).host, connection: 'close' },
      ...{ 'accept-encoding': 'identity', 'content-length': '7' },
    });
    expect([answer.status, answer.headers['content-type'], answer.headers.etag]).toEqual([
      ...[200, 'application/json', '"7"'],
    ]);
    for (const name of ['set-cookie', 'x-powered-by']) expect(answer.headers[name]).toBeUndefined();
    expect(answer.headers).toMatchObject({
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
    });
  });

  test('goes below the path of a gateway that has one', async () => {
    const upstream = await well();
    const space = await openSpace([{ url: `${upstream.url}/moirai/` }, { url: `${upstream.url}/other` }]);
    for (const n of [0, 1]) expect((await ask(space, `/gateways/${n}/v1/sessions?q=a`)).json).toEqual({ ok: true });
    expect(upstream.requests.map(({ url }) => url)).toEqual(['/moirai/v1/sessions?q=a', '/other/v1/sessions?q=a']);
    expect(upstream.requests[0]?.headers.authorization).toBeUndefined();
  });

  test('is what the page needs, and nothing beside it', async () => {
    const upstream = await well();
    const space = await openSpace([{ url: upstream.url }]);
    const paths = ['/metrics', '/openapi.json', '/', '', '/v1', '/v1/', '/v2/x', '/ready/x', '/platforms/telegram'];
    const tricks = ['/v1/../metrics', '/v1/%2e%2e/metrics', '/v1/..%2fmetrics', '/v1/..%5cmetrics', '/v1/%'];
    for (const path of [...paths, ...tricks]) {
      const { json } = await ask(space, `/gateways/0${path}`);
      expect([path, json.error.code]).toEqual([path, 'not_found']);
    }
    for (const path of ['/gateways/1/ready', '/gateways/-1/ready', '/gateways/x/ready', '/gateways//ready']) {
      expect([path, (await ask(space, path)).json.error.code]).toEqual([path, 'not_found']);
    }
    for (const method of ['DELETE', 'PUT', 'PATCH', 'HEAD', 'OPTIONS']) {
      const { status, headers } = await ask(space, '/gateways/0/v1/sessions', { method });
      expect([method, status, headers.allow]).toEqual([method, 405, 'GET, POST']);
    }
    expect(upstream.requests).toEqual([]);
    for (const path of ['/health', '/ready', '/v1/a%2Fb']) await ask(space, `/gateways/0${path}`);
    expect(upstream.requests.map(({ url }) => url)).toEqual(['/health', '/ready', '/v1/a%2Fb']);
  });

  test('has a length: as in the gateway, and known before or not', async () => {
    const upstream = await fake((incoming, outgoing) => {
      let bytes = 0;
      incoming.on('error', () => undefined); // Cut off, as it should be.
      incoming.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      incoming.on('end', () => outgoing.end(String(bytes)));
    });
    const space = await openSpace([{ url: upstream.url }]);
    const long = 'x'.repeat(13 * 1024 * 1024);
    const known = { 'content-length': String(long.length) };
    for (const headers of [known, { 'transfer-encoding': 'chunked' }]) {
      const refused = await ask(space, '/gateways/0/v1/sessions/a/end', { body: long, headers });
      expect([refused.status, refused.json?.error.code]).toEqual([413, 'body_too_large']);
      const said = await ask(space, '/gateways/0/v1/chat', { body: long, headers });
      expect([said.status, said.text]).toEqual([200, String(long.length)]);
    }
  });
});

describe('a gateway', () => {
  test('that is down, or no gateway at all, is unreachable', async () => {
    const chatter = createPlainServer((socket) => {
      socket.on('error', () => undefined); // It is hung up on.
      socket.end('220 mail.example ready\r\n');
    }).listen(0, '127.0.0.1');
    await once(chatter, 'listening');
    opened.push(async () => chatter.close());
    const space = await openSpace([
      { name: 'north', url: `http://127.0.0.1:${await freePort()}`, key: GATEWAY_KEY },
      { name: 'mail', url: `http://127.0.0.1:${(chatter.address() as AddressInfo).port}` },
      { name: 'nowhere', url: 'http://moirai.invalid' },
    ]);
    for (const [i, why] of ['ECONNREFUSED', 'HPE_', /ENOTFOUND|EAI_AGAIN/].entries()) {
      const { status, json, text } = await ask(space, `/gateways/${i}/ready`);
      expect([status, json.error.code]).toEqual([502, 'gateway_unreachable']);
      expect(json.error.message).toMatch(why);
      expect(json.error.message).toContain(['north', 'mail', 'nowhere'][i]);
      expect(text).not.toContain(GATEWAY_KEY);
    }
  });

  test('that does not answer is slow, unless it is asked for a turn', async () => {
    const upstream = await fake((_, outgoing) => void setTimeout(() => outgoing.end('{"late":true}'), 600));
    const space = await openSpace([{ url: upstream.url }], { patience: { headersMs: 200, refusedMs: 1000 } });
    for (const asking of [{}, { body: {} }]) {
      const slow = await ask(space, '/gateways/0/v1/sessions', asking);
      expect([slow.status, slow.json.error.code]).toEqual([504, 'gateway_slow']);
      expect(slow.json.error.message).toContain('g0');
    }
    expect((await ask(space, '/gateways/0/v1/chat', { body: {} })).json).toEqual({ late: true });
    const headers = { accept: 'text/event-stream' };
    const stream = await ask(space, '/gateways/0/v1/chat', { body: {}, headers });
    expect(stream.json.error.code).toBe('gateway_slow');
  });

  test.each([
    [401, null, 'none was given'],
    [401, GATEWAY_KEY, 'is wrong'],
    [403, GATEWAY_KEY, 'does not let this machine in'],
    [429, GATEWAY_KEY, 'too many wrong keys'],
  ])('that answers %i to the key %s has refused it, and is left alone for a while', async (status, key, why) => {
    const upstream = await fake((_, outgoing) => outgoing.writeHead(status).end('{"error":{"code":"unauthorized"}}'));
    const space = await openSpace([{ url: upstream.url, key }]);
    for (let i = 0; i < 3; i++) {
      const refused = await ask(space, '/gateways/0/v1/sessions');
      expect([refused.status, refused.json.error.code]).toEqual([502, 'gateway_refused_key']);
      expect(refused.json.error.message).toContain(why);
      expect(refused.text).not.toContain(GATEWAY_KEY);
    }
    expect(upstream.requests).toHaveLength(1);
  });

  test('whose key has too few scopes for a request is not left alone: the answer is passed on', async () => {
    const challenge = { 'www-authenticate': 'Bearer error="insufficient_scope"', 'content-type': 'application/json' };
    const body = '{"error":{"code":"forbidden_scope","message":"this needs read","hint":""}}';
    const upstream = await fake((_, outgoing) => outgoing.writeHead(403, challenge).end(body));
    const space = await openSpace([{ url: upstream.url, key: GATEWAY_KEY }]);
    for (let i = 0; i < 2; i++) {
      const refused = await ask(space, '/gateways/0/v1/subscribers');
      expect([refused.status, refused.json.error.code]).toEqual([403, 'forbidden_scope']);
    }
    expect(upstream.requests).toHaveLength(2);
  });

  test('that refused the key is asked again after a while', async () => {
    const upstream = await fake((_, outgoing) => outgoing.writeHead(upstream.requests.length === 1 ? 401 : 200).end());
    const space = await openSpace([{ url: upstream.url }], { patience: { headersMs: 10_000, refusedMs: 50 } });
    expect((await ask(space, '/gateways/0/ready')).status).toBe(502);
    await sleep(60);
    expect((await ask(space, '/gateways/0/ready')).status).toBe(200);
  });

  test('that says how long to wait is waited for', async () => {
    const upstream = await fake((_, outgoing) => outgoing.writeHead(429, { 'retry-after': '41' }).end());
    const space = await openSpace([{ url: upstream.url }], { patience: { headersMs: 10_000, refusedMs: 1 } });
    expect((await ask(space, '/gateways/0/ready')).headers['retry-after']).toBe('41');
    await sleep(20);
    await ask(space, '/gateways/0/ready');
    expect(upstream.requests).toHaveLength(1);
  });

  test('that sends elsewhere is not followed', async () => {
    const elsewhere = await well();
    const upstream = await fake((_, outgoing) => outgoing.writeHead(307, { location: `${elsewhere.url}/v1/x` }).end());
    const space = await openSpace([{ url: upstream.url, key: GATEWAY_KEY }]);
    const answer = await ask(space, '/gateways/0/v1/sessions');
    expect([answer.status, answer.json.error.code]).toEqual([502, 'gateway_unreachable']);
    expect(answer.json.error.message).toContain('another address (307)');
    expect(answer.headers.location).toBeUndefined();
    expect(elsewhere.requests).toEqual([]);
  });

  test('of another version answers what it answers', async () => {
    const upstream = await fake(({ url }, outgoing) => {
      if (url === '/v1/space/activity') outgoing.writeHead(200).end('{"rooms":[]}');
      else outgoing.writeHead(404, { 'content-type': 'text/html' }).end('<h1>404</h1>');
    });
    const space = await openSpace([{ url: upstream.url }]);
    expect((await ask(space, '/gateways/0/v1/space/activity')).json).toEqual({ rooms: [] });
    const missing = await ask(space, '/gateways/0/v1/space/timeline');
    expect([missing.status, missing.text]).toEqual([404, '<h1>404</h1>']);
    expect(missing.headers['content-security-policy']).toContain("default-src 'none'");
  });

  test('that dies in a stream breaks it off at once', async () => {
    const upstream = await fake((_, outgoing) => {
      outgoing.writeHead(200, { 'content-type': 'text/event-stream' });
      outgoing.write('data: 1\n\n');
    });
    const space = await openSpace([{ url: upstream.url }]);
    const stream = follow(space, '/gateways/0/v1/events');
    await until('the first event is here', () => stream.seen.text === 'data: 1\n\n');
    expect([stream.seen.status, stream.seen.end]).toEqual([200, null]);
    const died = performance.now();
    upstream.requests[0]?.socket.resetAndDestroy();
    await until('it is noticed', () => stream.seen.end !== null);
    expect(stream.seen.end).toBe('broken');
    expect(stream.seen.endedAt - died).toBeLessThan(patience(500));
  });

  test('that dies in the middle of a plain answer does not leave half of it as a whole', async () => {
    const upstream = await fake((_, outgoing) => {
      outgoing.write('{"data":[');
      setTimeout(() => outgoing.destroy(), 20);
    });
    const space = await openSpace([{ url: upstream.url }]);
    await expect(ask(space, '/gateways/0/v1/sessions')).rejects.toMatchObject({ code: 'ECONNRESET' });
  });

  test('is left when the page leaves, in a stream and before the answer', async () => {
    const upstream = await fake(({ url }, outgoing) => {
      if (url === '/v1/events') outgoing.write('data: 1\n\n');
    });
    const space = await openSpace([{ url: upstream.url }]);
    for (const path of ['/gateways/0/v1/events', '/gateways/0/v1/silence']) {
      const before = upstream.requests.length;
      const stream = follow(space, path);
      await until('it is asked', () => upstream.requests.length > before);
      if (path.endsWith('events')) await until('it streams', () => stream.seen.text !== '');
      const { socket } = upstream.requests[before]!;
      expect(socket.destroyed).toBe(false);
      stream.leave();
      // Sooner than it would be given up as slow.
      await until('the gateway is left', () => socket.destroyed, 5000);
    }
  });

  test('is left, and so is the page, when Space closes', async () => {
    const upstream = await fake((_, outgoing) => void outgoing.write('data: 1\n\n'));
    const space = await openSpace([{ url: upstream.url }]);
    const stream = follow(space, '/gateways/0/v1/events');
    await until('it streams', () => stream.seen.text !== '');
    // Without waiting for what is under way, which takes two seconds.
    expect(await Promise.race([space.close(), sleep(patience(1500), 'late')])).not.toBe('late');
    await until('both are told', () => stream.seen.end === 'broken' && upstream.requests[0]!.socket.destroyed);
  });

  test('is fast or slow by itself: a page that does not read holds nothing up for the others', async () => {
    const upstream = await fake(({ url }, outgoing) => {
      if (url === '/v1/flood') outgoing.end('x'.repeat(32 * 1024 * 1024));
      else outgoing.end('{"ok":true}');
    });
    const space = await openSpace([{ url: upstream.url }]);
    const idle = request(new URL('/gateways/0/v1/flood', space.url), { agent: false });
    idle.on('error', () => undefined); // It leaves in the middle.
    idle.end();
    const [answer] = (await once(idle, 'response')) as [IncomingMessage];
    answer.on('error', () => undefined); // As above.
    answer.pause();
    expect((await ask(space, '/gateways/0/ready')).json).toEqual({ ok: true });
    const { socket } = upstream.requests[0]!;
    await sleep(100);
    expect(socket.writableLength).toBeGreaterThan(8 * 1024 * 1024);
    idle.destroy();
  });
});

describe('who is let in', () => {
  test('without a key: this machine, by a name of its own', async () => {
    const upstream = await well();
    const space = await openSpace([{ url: upstream.url, key: GATEWAY_KEY }]);
    for (const path of ['/', '/space.json', '/gateways/0/ready']) {
      expect((await ask(space, path)).status).toBe(200);
      const wrong = await ask(space, path, { headers: { host: 'example.org' } });
      expect([wrong.status, wrong.json.error.code]).toEqual([403, 'forbidden_host']);
      const page = await ask(space, path, { headers: { origin: 'https://example.org' } });
      expect([page.status, page.json.error.code]).toEqual([403, 'forbidden_origin']);
    }
    expect(upstream.requests).toHaveLength(1);
  });

  test.each(['0.0.0.0', '::', 'example.org', '10.0.0.1'])('nobody at %s, as long as there is no key', async (host) => {
    await expect(openSpace([], { host })).rejects.toMatchObject({ code: 'config_invalid' });
  });

  test('with a key: whoever has it, and the page without', async () => {
    const upstream = await well();
    const space = await openSpace([{ url: upstream.url, key: GATEWAY_KEY }], { host: '0.0.0.0', key: SPACE_KEY });
    const port = new URL(space.url).port;
    const here = { ...space, url: `http://127.0.0.1:${port}` };
    expect((await ask(here, '/', { headers: { host: 'space.example' } })).text).toBe('<h1>Space</h1>');
    expect((await ask(here, '/health')).status).toBe(200);
    for (const path of ['/space.json', '/gateways/0/ready', '/gateways/0/v1/sessions', '/nothing']) {
      for (const headers of [{}, { authorization: `Bearer ${Buffer.from(GATEWAY_KEY).toString('latin1')}` }]) {
        const refused = await ask(here, path, { headers });
        expect([path, refused.status, refused.json.error.code]).toEqual([path, 401, 'unauthorized']);
      }
    }
    expect(upstream.requests).toEqual([]);
    const headers = { authorization: `Bearer ${SPACE_KEY}`, host: 'space.example' };
    expect((await ask(here, '/gateways/0/ready', { headers })).json).toEqual({ ok: true });
  });

  test('whoever guesses is slowed down here, and the gateway never hears of it', async () => {
    const upstream = await well();
    const space = await openSpace([{ url: upstream.url }], { key: SPACE_KEY });
    const guess = (key: string) => ask(space, '/gateways/0/ready', { headers: { authorization: `Bearer ${key}` } });
    for (let i = 0; i < 10; i++) expect((await guess(`guess-${i}`)).status).toBe(401);
    const slowed = await guess('guess-10');
    expect([slowed.status, slowed.json.error.code]).toEqual([429, 'too_many_failures']);
    expect(upstream.requests).toEqual([]);
    expect((await guess(SPACE_KEY)).status).toBe(200);
  });
});

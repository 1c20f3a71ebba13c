import { fileURLToPath } from 'node:url';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { ROUTE_ACCESS, type RouteAccess } from '../../src/api/key-scope.ts';
import { addApiKey } from '../../src/people/api-keys.ts';
import { apiFixture, ask, firstOf, listen, type RequestOptions } from './support/api-fixture.ts';

const KEY = 'the-key-of-the-configuration';
const COLUMNS = ['no key', 'wrong key', 'revoked', 'chat', 'read', 'admin'] as const;
type Column = (typeof COLUMNS)[number];

const PROXY = ['127.0.0.1', '::1'];
const fixture = apiFixture({ apiKey: KEY, trustedProxies: PROXY });
const keys: Record<string, string> = {};
beforeAll(async () => {
  const { store } = fixture.opened;
  for (const scope of ['chat', 'read', 'admin'] as const) keys[scope] = await addApiKey(store, scope, [scope]);
  keys.other = await addApiKey(store, 'other', ['chat']);
  keys.both = await addApiKey(store, 'both', ['chat', 'read']);
  keys.revoked = await addApiKey(store, 'revoked', ['admin']);
  await store.write('revokeApiKey', { name: 'revoked' });
  keys['wrong key'] = `moirai_${'x'.repeat(43)}`;
});

const bearer = (key: string | undefined): { headers: Record<string, string> } => ({
  headers: key === undefined ? {} : { authorization: `Bearer ${key}` },
});

let clients = 0;
/** By a proxy that names another client each time: so many wrong keys of one address would be slowed down. */
function as(name: string, path: string, options: RequestOptions = {}) {
  const client = ++clients;
  const headers = { ...bearer(keys[name]).headers, 'x-forwarded-for': `10.0.${client >> 8}.${client & 255}` };
  return ask(fixture.api, path, { ...options, headers });
}

/** A conversation of somebody, with one message answered; its session. */
async function talk(name: string, conversation: string): Promise<string> {
  return (await say(name, conversation)).session_id;
}

async function say(name: string, conversation: string): Promise<{ session_id: string; turn_id: string }> {
  const answer = await as(name, '/v1/chat', { body: { text: 'hello', conversation } });
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer.json;
}

interface Operation {
  readonly operationId: string;
  readonly 'x-moirai-access'?: string;
}

async function operations() {
  const { json } = await as('admin', '/openapi.json');
  const paths = Object.entries(json.paths) as [string, Record<string, Operation>][];
  return paths.flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
  );
}

/** What is sent where a request without a body would be refused for that. */
const BODIES: Readonly<Record<string, unknown>> = {
  chat: { text: 'hello' },
  createChatCompletion: { messages: [{ role: 'user', content: 'hello' }] },
  createResponse: { input: 'hello' },
  setTitle: { title: 'harbour' },
  answerApproval: { decision: 'deny' },
  addJob: { schedule: 'every 1h', prompt: 'look', deliver: 'local' },
};

let conversations = 0;
/** A path of the specification as a request writes it: ids are those of a fresh conversation of somebody's. */
async function pathFor(path: string, whose: string): Promise<string> {
  if (path.includes('/{id}')) {
    const { session_id, turn_id } = await say(whose, `matrix-${++conversations}`);
    return path.replace('{id}', path.startsWith('/v1/turns/') ? turn_id : session_id);
  }
  if (path.includes('/{job}')) {
    const { json } = await as('admin', '/v1/cron', { body: BODIES.addJob });
    return path.replace('{job}', json.id);
  }
  if (path.includes('/subscribers/')) {
    await fixture.opened.store.write('subscribe', { name: 'matrix', patterns: ['*'], from: 'now' });
    return path.replace('{name}', 'matrix');
  }
  return path.replace('{model}', 'loom-1').replace('{name}', 'pigeon');
}

async function cell(one: Awaited<ReturnType<typeof operations>>[number], column: Column): Promise<string> {
  const { method, path, operation } = one;
  const statusOf = async (whose: string): Promise<number> => {
    const body = method === 'POST' ? (BODIES[operation.operationId] ?? {}) : undefined;
    const options = { method, ...(body === undefined ? {} : { body }) };
    const { status } = await as(column === 'no key' ? 'none' : column, await pathFor(path, whose), options);
    // What one request changes, the next must not find.
    await fixture.backend.undrain();
    return status;
  };
  if (!path.includes('/{id}')) return String(await statusOf('admin'));
  const own = column === 'chat' || column === 'admin' ? column : 'admin';
  const [mine, others] = [await statusOf(own), await statusOf('other')];
  return mine === others ? String(mine) : `own ${mine}, other ${others}`;
}

describe('every route', () => {
  test('declares which scope opens it, and the specification says so', async () => {
    const all = await operations();
    expect(all.length).toBeGreaterThan(20);
    const known = Object.keys(ROUTE_ACCESS);
    const undeclared = all.filter(({ operation }) => !known.includes(operation['x-moirai-access'] ?? ''));
    expect(undeclared.map(({ method, path }) => `${method} ${path}`)).toEqual([]);
  });

  test('answers each kind of key as docs/key-matrix.md says (npx vitest run test/api/keys.test.ts -u writes it)', async () => {
    const rows: string[] = [];
    for (const one of await operations()) {
      const access = one.operation['x-moirai-access'] as RouteAccess;
      const cells: string[] = [];
      for (const column of COLUMNS) cells.push(await cell(one, column));
      rows.push(`| ${one.method} \`${one.path}\` | ${ROUTE_ACCESS[access].says} | ${cells.join(' | ')} |`);
      if (access === 'open') continue;
      expect([one.path, ...cells.slice(0, 3)]).toEqual([one.path, '401', '401', '401']);
      const refused = (column: 'chat' | 'read') => !(ROUTE_ACCESS[access].scopes as readonly string[]).includes(column);
      expect([one.path, cells[3] === '403', cells[4] === '403', cells[5] === '403']).toEqual([
        ...[one.path, refused('chat'), refused('read'), false],
      ]);
    }
    const page = [
      '# Which key opens which route',
      '',
      'What a running gateway answers, as a test found it, with `gateway.api_key` set. The scopes are told in [security.md](security.md). "own" is a',
      'conversation of the same key, "other" one of another key; a conversation of others answers as one that does not exist.',
      '',
      `| route | opened by, beside \`admin\` | ${COLUMNS.join(' | ')} |`,
      `|---|---|${COLUMNS.map(() => '---|').join('')}`,
      ...rows,
      '',
    ].join('\n');
    await expect(page).toMatchFileSnapshot(fileURLToPath(new URL('../../docs/key-matrix.md', import.meta.url)));
  });
});

describe('a key with the scope chat', () => {
  let mine: string;
  let others: string;
  let operators: string;
  beforeEach(async () => {
    mine = await talk('chat', 'harbour');
    others = await talk('other', 'harbour');
    operators = await talk('admin', 'harbour');
  });

  test('has conversations of its own, also when others call theirs the same', async () => {
    expect(new Set([mine, others, operators]).size).toBe(3);
    const { json } = await as('chat', `/v1/sessions/${mine}`);
    expect(json.key).toBe('agent:main:api:dm:chat:harbour:');
    expect((await as('admin', `/v1/sessions/${operators}`)).json.key).toBe('agent:main:api:dm:harbour');
    expect(await talk('chat', 'harbour')).toBe(mine);
  });

  test('lists its own sessions and no others, whatever filter it sends', async () => {
    const listed = async (query: string) =>
      (await as('chat', `/v1/sessions?limit=500&${query}`)).json.data.map((one: { id: string }) => one.id);
    expect(await listed('')).toContain(mine);
    for (const query of [
      '',
      'kind=all',
      'key=agent:main:api:dm:other:harbour:',
      'platform=api',
      `q=${others.slice(0, 12)}`,
    ]) {
      const ids = await listed(query);
      expect(ids).not.toContain(others);
      expect(ids).not.toContain(operators);
    }
    const all = (await as('read', '/v1/sessions?limit=500')).json.data.map((one: { id: string }) => one.id);
    expect(all).toEqual(expect.arrayContaining([mine, others, operators]));
  });

  test('finds a conversation of its own by the key without its namespace', async () => {
    const found = await as('chat', '/v1/sessions?key=agent:main:api:dm:harbour');
    expect(found.json.data.map((one: { id: string }) => one.id)).toEqual([mine]);
    expect((await as('chat', '/v1/sessions?key=nonsense')).json.error.code).toBe('bad_key');
  });

  test('is told of sessions of others what it is told of those that are not there', async () => {
    for (const [method, path] of [
      ['GET', ''],
      ['GET', '/messages'],
      ['GET', '/events'],
      ['POST', '/end'],
      ['POST', '/resume'],
    ] as const) {
      const body = method === 'POST' ? {} : undefined;
      const told = async (id: string) => {
        const answer = await as('chat', `/v1/sessions/${id}${path}`, { method, body });
        return [answer.status, answer.text.replaceAll(id, 'ID')];
      };
      expect(await told(others)).toEqual(await told('ses_nobody'));
    }
    expect((await as('other', `/v1/sessions/${others}`)).json.state).toBe('open');
    // Any beginning of an id is one session's alone among those it reaches.
    expect((await as('chat', `/v1/sessions/${mine.slice(0, -1)}`)).json.id).toBe(mine);
  });

  test('reads and follows the events of its own sessions only', async () => {
    const page = (await as('chat', '/v1/events?after=0&limit=500')).json.data;
    expect(page.length).toBeGreaterThan(0);
    for (const event of page) expect(event.session_key).toMatch(/^agent:main:api:dm:chat:/);
    const after = (await as('read', '/v1/events?after=now')).json.next;
    const stream = firstOf(listen(fixture.api, `/v1/events?after=${after}`, bearer(keys.chat)), 2);
    await talk('other', 'tower');
    const session = await talk('chat', 'tower');
    expect((await stream).map(({ data }) => data.session_id)).toEqual([session, session]);
  });

  test('sees its own sessions in the activity, as a snapshot, a delta and a stream, and not the machine', async () => {
    const { json, headers } = await as('chat', '/v1/space/activity');
    const ids = json.sessions.map((one: { id: string }) => one.id);
    expect(ids).toContain(mine);
    expect(ids).not.toContain(others);
    expect(json.totals.open).toBe(ids.length);
    expect(json.gateways[0]).toMatchObject({ host: '', pid: 0, sessions: 0 });
    expect((await as('read', '/v1/space/activity')).headers.etag).not.toBe(headers.etag);
    const stream = listen(fixture.api, `/v1/space/activity?after=${json.seq}`, bearer(keys.chat));
    await as('other', `/v1/sessions/${others}/end`, { body: {} });
    await as('chat', `/v1/sessions/${mine}/end`, { body: {} });
    await expect
      .poll(async () => {
        const delta = (await as('chat', `/v1/space/activity?after=${json.seq}`)).json;
        return delta.ended.map((one: { id: string }) => one.id);
      })
      .toEqual([mine]);
    for await (const { data } of stream) {
      const told = JSON.stringify(data);
      expect(told).not.toContain(others);
      expect(told).not.toContain(operators);
      if (data.ended.some((one: { id: string }) => one.id === mine)) break;
    }
  });

  test('lists what its own conversations wait to be allowed, and answers none of it here', async () => {
    const question = { turnId: 't', tool: 'run_command', summary: 'ls', askedAt: 1, expiresAt: 2 };
    const unanswered = { decision: null, answeredBy: null };
    for (const [id, sessionId, name] of [
      ['a1', mine, 'chat:harbour:'],
      ['a2', others, 'other:harbour:'],
      ['a3', operators, 'harbour'],
    ] as const) {
      fixture.backend.asked.push({
        id,
        sessionId,
        sessionKey: `agent:main:api:dm:${name}`,
        ...question,
        ...unanswered,
      });
    }
    const listed = async (name: string) =>
      (await as(name, '/v1/approvals')).json.data.map((approval: { id: string }) => approval.id);
    expect([await listed('chat'), await listed('read')]).toEqual([['a1'], ['a1', 'a2', 'a3']]);
    expect((await as('chat', '/v1/approvals/a1', { body: { decision: 'once' } })).status).toBe(403);
  });

  test('has idempotency keys of its own', async () => {
    const body = { text: 'once', conversation: 'bridge', idempotency_key: 'same' };
    const first = await as('chat', '/v1/chat', { body });
    expect((await as('chat', '/v1/chat', { body })).json.turn_id).toBe(first.json.turn_id);
    expect((await as('other', '/v1/chat', { body })).json.turn_id).not.toBe(first.json.turn_id);
  });
});

test('a key with chat and read sees everything, and changes its own conversations only', async () => {
  const others = await talk('other', 'gate');
  expect((await as('both', `/v1/sessions/${others}`)).status).toBe(200);
  expect((await as('both', `/v1/sessions/${others}/end`, { body: {} })).status).toBe(404);
  expect((await as('both', '/v1/chat', { body: { text: 'hello' } })).status).toBe(200);
});

test('a key that is revoked is wrong from the next request on', async () => {
  const { store } = fixture.opened;
  keys.short = await addApiKey(store, 'short', ['read']);
  expect((await as('short', '/v1/sessions')).status).toBe(200);
  await store.write('revokeApiKey', { name: 'short' });
  expect((await as('short', '/v1/sessions')).status).toBe(401);
});

test('keys of the configuration have their scopes', async () => {
  const loom = { name: 'loom', key: 'a-configured-key-of-the-loom', scopes: ['chat'] as const };
  await fixture.reopen({ apiKey: null, keys: [loom], trustedProxies: PROXY });
  keys.loom = loom.key;
  expect((await ask(fixture.api, '/v1/sessions')).status).toBe(401);
  expect((await as('loom', '/v1/subscribers')).json.error.code).toBe('forbidden_scope');
  expect((await as('loom', `/v1/sessions/${await talk('loom', 'x')}`)).json.key).toBe('agent:main:api:dm:loom:x:');
});

describe('while no key is configured', () => {
  beforeEach(() => fixture.reopen({ apiKey: null, trustedProxies: [] }));

  test('programs of this machine are let in without one, and keys of the store have their scopes', async () => {
    expect((await ask(fixture.api, '/v1/subscribers')).status).toBe(200);
    expect((await as('chat', '/v1/subscribers')).status).toBe(403);
    expect((await as('read', '/v1/subscribers')).status).toBe(200);
  });

  test('a key of the store counts under any host name, and a revoked one does not become that of this machine', async () => {
    const headers = { ...bearer(keys.read).headers, host: 'moirai.example' };
    expect((await ask(fixture.api, '/v1/subscribers', { headers })).status).toBe(200);
    expect((await as('revoked', '/v1/subscribers')).status).toBe(401);
    // What clients send who must send something is no key of ours.
    expect((await ask(fixture.api, '/v1/subscribers', bearer('not-needed'))).status).toBe(200);
  });
});

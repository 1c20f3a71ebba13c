import { beforeAll, describe, expect, test } from 'vitest';
import { sessionView } from '../../src/engine/views.ts';
import type { Session } from '../../src/lifecycle/session.ts';
import { chatConversation } from '../support/stores.ts';
import { apiFixture, ask } from './support/api-fixture.ts';

const fixture = apiFixture();
const get = (path: string) => ask(fixture.api, path);
const post = (path: string, body?: unknown) =>
  ask(fixture.api, path, { method: 'POST', ...(body === undefined ? {} : { body }) });

/** One message and its answer in a conversation of its own. */
async function talk(chat: string): Promise<Session> {
  const conversation = chatConversation(chat);
  const { session, turn } = await fixture.engine.receive({
    conversation,
    text: `hello ${chat}`,
    originRef: null,
    by: 'user',
  });
  const loaded = await fixture.engine.finish({ sessionId: session.id, epoch: session.epoch }, turn.id, {
    ...{ outcome: 'done', response: 'hi', model: null, usage: null },
    messages: [
      { role: 'user', text: `hello ${chat}`, turnId: turn.id },
      { role: 'assistant', text: 'hi', turnId: turn.id },
    ],
  });
  return loaded.session;
}

describe('the listing', () => {
  const ids: string[] = [];
  beforeAll(async () => {
    for (const chat of ['a1', 'a2', 'a3', 'a4', 'a5']) ids.unshift((await talk(chat)).id);
    await fixture.engine.setTitle(ids[0] ?? '', 'Weaving by night');
    await fixture.engine.end(ids[1] ?? '', { reason: 'admin_close', trigger: 'api' });
    const key = 'agent:main:batch:dm:b';
    await fixture.engine.start({ key, kind: 'batch', platform: 'cli', userId: null, origin: null, attached: true });
  });
  const idsOf = async (query: string) => {
    const { status, json } = await get(`/v1/sessions?${query}`);
    expect([query, status]).toEqual([query, 200]);
    return json.data.map(({ id }: { id: string }) => id);
  };

  test('goes page by page, newest first, and says the same of a session as the session itself', async () => {
    const seen: string[] = [];
    let cursor = '';
    for (let pages = 1; ; pages++) {
      const { json } = await get(`/v1/sessions?limit=2${cursor}`);
      seen.push(...json.data.map(({ id }: { id: string }) => id));
      if (json.next === null) {
        expect(pages).toBe(3);
        break;
      }
      cursor = `&cursor=${encodeURIComponent(json.next)}`;
    }
    expect(seen).toEqual(ids);
    const { json } = await get('/v1/sessions?limit=1');
    expect(json.data[0]).toEqual((await get(`/v1/sessions/${ids[0]}`)).json);
    const session = await fixture.engine.store.read('getSession', { sessionId: ids[0] ?? '' });
    expect(json.data[0]).toEqual(JSON.parse(JSON.stringify(sessionView(session as Session))));
  });

  test('filters by everything, several values with commas', async () => {
    expect(await idsOf('state=ended')).toEqual([ids[1]]);
    expect(await idsOf('state=open,ended&platform=telegram,discord')).toEqual(ids);
    expect(await idsOf('platform=discord')).toEqual([]);
    expect(await idsOf('reason=admin_close,reaped')).toEqual([ids[1]]);
    expect(await idsOf('user=user-a3')).toEqual([ids[2]]);
    expect(await idsOf('q=weaving')).toEqual([ids[0]]);
    expect(await idsOf('since=1h')).toEqual(ids);
    expect(await idsOf('since=2100-01-01T00:00:00Z')).toEqual([]);
    expect(await idsOf('kind=batch')).toHaveLength(1);
    expect(await idsOf('kind=all')).toHaveLength(6);
    expect(await idsOf('key=agent:main:batch:dm:b')).toHaveLength(1);
    expect(await idsOf('key=agent:main:telegram:dm:a1')).toEqual([ids[4]]);
  });

  test.each([
    ['state=opne', 'open'],
    ['kind=chta', 'chat'],
    ['reason=reapt', 'reaped'],
    ['since=yesterday', '24h'],
    ['limit=0', 'limit'],
    ['limit=501', '500'],
    ['limit=many', 'limit'],
    ['cursor=nonsense', 'cursor'],
  ])('refuses %s and says what would do', async (query, said) => {
    const { status, json } = await get(`/v1/sessions?${query}`);
    expect([status, json.error.code]).toEqual([400, 'bad_input']);
    expect(json.error.message).toContain(said);
  });
});

describe('a session', () => {
  test('is found by any beginning that is its alone', async () => {
    const { id } = await talk('b1');
    await talk('b2');
    expect((await get(`/v1/sessions/${id}`)).json.id).toBe(id);
    expect((await get(`/v1/sessions/${id.slice(0, -1)}`)).json.id).toBe(id);
    expect((await get('/v1/sessions/ses_')).json.error.code).toBe('session_ambiguous');
    const missing = await get('/v1/sessions/ses_nobody');
    expect([missing.status, missing.json.error.code]).toEqual([404, 'session_not_found']);
    expect(missing.json.error.hint).not.toBe('');
  });

  test('shows its transcript oldest first, page by page', async () => {
    const { id } = await talk('c1');
    const first = await get(`/v1/sessions/${id}/messages?limit=1`);
    expect(first.json).toMatchObject({ data: [{ role: 'user', text: 'hello c1', position: 1 }], next: '1' });
    const second = await get(`/v1/sessions/${id}/messages?limit=1&cursor=${first.json.next}`);
    expect(second.json).toMatchObject({ data: [{ role: 'assistant', text: 'hi', session_id: id }], next: null });
    expect((await get(`/v1/sessions/${id}/messages?cursor=x`)).status).toBe(400);
    expect((await get('/v1/sessions/ses_nobody/messages')).status).toBe(404);
  });

  test('ends once, for one of two reasons, and ending it twice returns the first end', async () => {
    const { id } = await talk('d1');
    const ended = await post(`/v1/sessions/${id}/end`);
    expect([ended.status, ended.json]).toMatchObject([200, { id, state: 'ended', end_reason: 'api_close' }]);
    const again = await post(`/v1/sessions/${id}/end`, { reason: 'admin_close' });
    expect([again.status, again.json]).toEqual([200, ended.json]);
    const other = await talk('d2');
    const refused = await post(`/v1/sessions/${other.id}/end`, { reason: 'reaped' });
    expect([refused.status, refused.json.error.code]).toEqual([400, 'bad_reason']);
    const admin = await post(`/v1/sessions/${other.id}/end`, { reason: 'admin_close' });
    expect(admin.json).toMatchObject({ end_reason: 'admin_close' });
    const { json } = await get(`/v1/sessions/${other.id}/events?types=session:end`);
    expect(json.data).toMatchObject([{ reason: 'admin_close', trigger: 'api', session_id: other.id }]);
    expect((await post('/v1/sessions/ses_nobody/end')).status).toBe(404);
  });

  test('is resumed in a new one that is linked to it, and an open one is returned as it is', async () => {
    const old = await talk('e1');
    const open = await post(`/v1/sessions/${old.id}/resume`);
    expect([open.status, open.json.id]).toEqual([200, old.id]);
    await post(`/v1/sessions/${old.id}/end`);
    const newer = await talk('e1');
    const resumed = await post(`/v1/sessions/${old.id}/resume`);
    expect(resumed.status).toBe(201);
    expect(resumed.json).toMatchObject({ parent_id: old.id, lineage: 'resume', state: 'open', key: old.key });
    expect((await get(`/v1/sessions/${newer.id}`)).json).toMatchObject({ state: 'ended', end_reason: 'switched' });
    expect(await fixture.engine.store.read('lineageOf', { sessionId: resumed.json.id })).toEqual([
      old.id,
      resumed.json.id,
    ]);
  });

  test('is branched under a name', async () => {
    const { id } = await talk('f1');
    const branched = await post(`/v1/sessions/${id}/branch`, { title: 'Another way' });
    expect(branched.status).toBe(201);
    expect(branched.json).toMatchObject({ parent_id: id, lineage: 'branch', title: 'Another way' });
    expect((await get(`/v1/sessions/${id}`)).json.end_reason).toBe('branched');
  });

  test('that was one-shot goes on without a process to be attached to', async () => {
    const { json } = await post('/v1/chat', { text: 'once' });
    const resumed = await post(`/v1/sessions/${json.session_id}/resume`);
    expect([resumed.status, resumed.json.owner]).toEqual([201, null]);
  });

  test('gets a title, and loses it', async () => {
    const { id } = await talk('g1');
    const titled = await post(`/v1/sessions/${id}/title`, { title: 'Threads' });
    expect([titled.status, titled.json]).toMatchObject([200, { id, title: 'Threads' }]);
    expect((await post(`/v1/sessions/${id}/title`, { title: null })).json.title).toBeNull();
    expect((await post(`/v1/sessions/${id}/title`, {})).status).toBe(400);
    await post(`/v1/sessions/${id}/end`);
    const late = await post(`/v1/sessions/${id}/title`, { title: 'Too late' });
    expect([late.status, late.json.error.code]).toEqual([409, 'session_ended']);
  });
});

test('an operator parks a session and releases it, and doing so twice changes nothing', async () => {
  const { id } = await talk('parked');
  for (const _ of [1, 2]) {
    const { status, json } = await post(`/v1/sessions/${id}/suspend`);
    expect({ status, json }).toMatchObject({
      status: 200,
      json: { id, state: 'suspended', suspend_reason: 'operator' },
    });
  }
  for (const _ of [1, 2]) {
    const { status, json } = await post(`/v1/sessions/${id}/release`);
    expect({ status, json }).toMatchObject({ status: 200, json: { id, state: 'open', suspend_reason: null } });
  }
  const { json } = await get(`/v1/sessions/${id}/events`);
  const types = json.data.map(({ type }: { type: string }) => type);
  expect(types.slice(-2)).toEqual(['session:suspend', 'session:release']);
  await post(`/v1/sessions/${id}/end`);
  expect(await post(`/v1/sessions/${id}/suspend`)).toMatchObject({ status: 409 });
});

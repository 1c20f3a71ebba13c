import { describe, expect, test } from 'vitest';
import { bootTestEngine, chatConversation } from '../support/stores.ts';
import { apiFixture, ask, until } from './support/api-fixture.ts';

const fixture = apiFixture();
const get = (path: string, headers: Record<string, string> = {}) => ask(fixture.api, path, { headers });
const post = (path: string, body?: unknown) =>
  ask(fixture.api, path, { method: 'POST', ...(body === undefined ? {} : { body }) });

describe('the gateway', () => {
  test('is ready, drains, and takes messages again', async () => {
    const ready = await get('/ready');
    expect([ready.status, ready.json]).toEqual([
      200,
      { state: 'ready', checks: { store: { ok: true, detail: 'sqlite' } } },
    ]);
    expect((await post('/v1/gateway/drain')).json.state).toBe('draining');
    expect((await get('/ready')).status).toBe(503);
    expect((await get('/health')).status).toBe(200);
    expect((await post('/v1/gateway/undrain')).json.state).toBe('ready');
    expect((await get('/ready')).status).toBe(200);
  });

  test('gives figures to Prometheus, counted at most once a second', async () => {
    const { id } = await fixture.engine.start(chatConversation('m1'));
    await fixture.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    await fixture.engine.start(chatConversation('m2'));
    await fixture.opened.store.write('subscribe', { name: 'counted', patterns: ['*'], from: 'start' });
    await get('/v1/sessions'); // The first read of a store starts its reader, which takes as long as many counts.
    const { text, headers } = await get('/metrics');
    expect(headers['content-type']).toContain('version=0.0.4');
    for (const line of [
      'moirai_sessions_open 1',
      'moirai_sessions_open_unowned 0',
      'moirai_sessions_ended{reason="admin_close"} 1',
      'moirai_subscriber_lag{subscriber="counted"} 3',
      'moirai_subscriber_dead_letters{subscriber="counted"} 0',
      'moirai_turns_running 0',
      'moirai_turns_waiting 0',
      'moirai_info{version="0.0.0-test"} 1',
    ]) {
      expect(text).toContain(`${line}\n`);
    }
    for (const name of ['process_resident_memory_bytes', 'nodejs_eventloop_lag_p99_seconds'])
      expect(text).toContain(name);
    await fixture.engine.start(chatConversation('m3'));
    expect((await get('/metrics')).text).toBe(text);
    await until('it is counted again', async () => (await get('/metrics')).text.includes('moirai_sessions_open 2\n'));
  });

  test('shows how long the oldest reply is on its way', async () => {
    const { engine } = fixture;
    const spoken = { text: 'hi', originRef: null, by: 'user' } as const;
    const { session, turn } = await engine.receive({ ...spoken, conversation: chatConversation('waits') });
    await engine.finish({ sessionId: session.id, epoch: session.epoch }, turn.id, {
      ...{ outcome: 'done', response: 'yes', model: null, usage: null, error: null, messages: [] },
      deliveries: [{ id: 'dlv-1', platform: 'telegram', target: { chat: 'waits' }, text: 'yes' }],
    });
    const seconds = async () =>
      Number((await get('/metrics')).text.match(/^moirai_deliveries_oldest_seconds (\S+)$/m)?.[1]);
    await until('it is some time', async () => (await seconds()) > 0);
  });
});

describe('what runs in the store and in no process', () => {
  const own = apiFixture();

  test('is counted: of a process that is gone, and what this one has lost track of', async () => {
    const { engine, opened } = own;
    const figure = (strays: number) =>
      until('it is counted', async () => (await ask(own.api, '/metrics')).text.includes(`moirai_strays ${strays}\n`));
    await figure(0);
    const gone = await bootTestEngine(opened.store, 1000);
    const spoken = { text: 'hi', originRef: null, by: 'user' } as const;
    const { begun } = await gone.receive({ ...spoken, conversation: chatConversation('gone') });
    expect(begun).toBe(true);
    await figure(1);
    const context = engine.commandContext();
    await opened.store.write('subscribe', { name: 'lost', patterns: ['session:*'], from: 'start' });
    const claim = { context, subscriber: 'lost', queue: 'events/lost', token: 'lost', again: false };
    await opened.store.write('claimEvents', { ...claim, limit: 1, retries: 1, eventsPerLane: 1 });
    await figure(2);
    await engine.reap();
    await engine.reconcile();
    await figure(0);
  });
});

describe('subscribers', () => {
  test('are listed with how far they are, and get everything again when asked', async () => {
    await fixture.opened.store.write('subscribe', { name: 'hears', patterns: ['session:*'], from: 'now' });
    const list = async () =>
      (await get('/v1/subscribers')).json.data.find((one: { name: string }) => one.name === 'hears');
    expect(await list()).toMatchObject({
      events: ['session:*'],
      lag: 0,
      dead_letters: 0,
      failures: 0,
      last_error: null,
    });
    expect((await list()).position).toBe((await get('/v1/events?after=now')).json.next);
    const { position } = await list();
    await fixture.engine.start(chatConversation('s1'));
    await fixture.engine.start(chatConversation('s2'));
    expect(await list()).toMatchObject({ lag: 2, lanes: 2, position });
    const all = await post('/v1/subscribers/hears/replay', { from: 0 });
    expect([all.status, all.json.events]).toEqual([200, (await get('/v1/events?after=0&limit=500')).json.data.length]);
    expect((await post('/v1/subscribers/hears/replay', { dead: true })).json).toEqual({ events: 0 });
    expect((await post('/v1/subscribers/hears/replay')).json).toEqual({ events: 0 });
    expect((await post('/v1/subscribers/hears/replay', { dead: true, from: 1 })).status).toBe(400);
    const missing = await post('/v1/subscribers/nobody/replay', { dead: true });
    expect([missing.status, missing.json.error.code]).toEqual([404, 'subscriber_not_found']);
  });
});

describe('the activity', () => {
  const phaseOf = async (id: string) => {
    const { json } = await get('/v1/space/activity');
    const session = json.sessions.find((one: { id: string }) => one.id === id);
    return [session.phase, session.tool];
  };

  test('shows each session in its phase, and follows what happens at once', async () => {
    const idle = await fixture.engine.start(chatConversation('p1'));
    expect(await phaseOf(idle.id)).toEqual(['idle', null]);
    await fixture.engine.receive({
      conversation: chatConversation('p1'),
      text: 'wait',
      originRef: null,
      by: 'user',
      begin: false,
    });
    expect(await phaseOf(idle.id)).toEqual(['queued', null]);
    const busy = await fixture.engine.receive({
      conversation: chatConversation('p2'),
      text: 'think',
      originRef: null,
      by: 'user',
    });
    expect(await phaseOf(busy.session.id)).toEqual(['thinking', null]);
    const { sessions } = (await get('/v1/space/activity')).json;
    expect(sessions.find((one: { id: string }) => one.id === busy.session.id)).toMatchObject({
      ...{ id: busy.session.id, gateway: fixture.engine.instance, user: 'user-p2', state: 'open', message_count: 0 },
      turn_started_at: expect.stringMatching(/Z$/),
      tokens: { input: 0, output: 0 },
    });
    const hold = { sessionId: busy.session.id, epoch: busy.session.epoch };
    await fixture.engine.interrupt(hold, 'restart');
    expect(await phaseOf(busy.session.id)).toEqual(['resume_pending', null]);
    await fixture.engine.suspend(busy.session.id);
    expect(await phaseOf(busy.session.id)).toEqual(['suspended', null]);
  });

  test('shows the tool a turn of this gateway runs', async () => {
    let finish: () => void = () => undefined;
    fixture.backend.script = async (_saying, show) => {
      show({ type: 'tool', state: 'start', id: '1', name: 'fetch_url', args: {} });
      await new Promise<void>((resolve) => {
        finish = resolve;
      });
      return { text: 'fetched' };
    };
    const asked = post('/v1/chat', { text: 'fetch it', conversation: 'tool' });
    await until('the tool runs', async () => {
      const { json } = await get('/v1/space/activity');
      return json.sessions.some((one: { tool: string }) => one.tool === 'fetch_url');
    });
    finish();
    expect((await asked).json.reply).toBe('fetched');
  });

  test('shows gateways, and takes a running turn of a lost one for one that waits to be resumed', async () => {
    const { gateways } = (await get('/v1/space/activity')).json;
    expect(gateways).toMatchObject([{ id: fixture.engine.instance, self: true, state: 'ready', version: 'test' }]);
    const { session } = await fixture.engine.receive({
      conversation: chatConversation('p3'),
      text: 'x',
      originRef: null,
      by: 'user',
    });
    expect(await phaseOf(session.id)).toEqual(['thinking', null]);
    await fixture.engine.stop();
    await until('it is seen', async () => (await phaseOf(session.id))[0] === 'resume_pending');
    expect((await get('/v1/space/activity')).json.gateways[0].state).toBe('lost');
  });

  test('has a tag, by which nothing is sent when nothing has changed', async () => {
    const first = await get('/v1/space/activity');
    const tag = String(first.headers.etag);
    expect(first.json.seq).toBe((await get('/v1/events?after=now')).json.next);
    const same = await get('/v1/space/activity', { 'if-none-match': tag });
    expect([same.status, same.text, same.headers.etag]).toEqual([304, '', tag]);
    expect((await get('/v1/space/activity', { 'if-none-match': '"other"' })).status).toBe(200);
  });
});

import { describe, expect, test } from 'vitest';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import { apiFixture, ask, firstOf, listen, type StreamedEvent, until } from './support/api-fixture.ts';
import type { Script } from './support/scripted-backend.ts';

const fixture = apiFixture();
const say = (body: Record<string, unknown>, headers: Record<string, string> = {}) =>
  ask(fixture.api, '/v1/chat', { body, headers });

/** Says it in pieces, with a tool between them. */
const inPieces: Script = async (_saying, show) => {
  show({ type: 'text', text: 'Let me ' });
  show({ type: 'text', text: 'look. ' });
  show({ type: 'tool', state: 'start', id: 't1', name: 'read_file', args: { path: 'a' } });
  show({ type: 'tool', state: 'end', id: 't1', name: 'read_file', ok: true });
  show({ type: 'step', iteration: 1, tools: ['read_file'] });
  show({ type: 'text', text: 'Done.' });
  return { text: 'Let me look. Done.' };
};

async function streamed(body: Record<string, unknown>): Promise<StreamedEvent[]> {
  const init = { method: 'POST', body: JSON.stringify(body), headers: { 'content-type': 'application/json' } };
  return Array.fromAsync(listen(fixture.api, '/v1/chat', init));
}

describe('what is said', () => {
  test('in a conversation is answered in its lasting session', async () => {
    const first = await say({ text: 'hello', conversation: 'c1', user: 'ada' });
    expect(first.status).toBe(200);
    expect(first.json).toEqual({
      session_id: expect.stringMatching(/^ses_/),
      turn_id: expect.stringMatching(/^trn_/),
      reply: 'You said: hello',
      outcome: 'done',
      model: 'loom-1',
      usage: { input: 7, output: 3 },
    });
    expect(first.headers['x-moirai-session']).toBe(first.json.session_id);
    const second = await say({ text: 'again', conversation: 'c1' });
    expect(second.json.session_id).toBe(first.json.session_id);
    const { json } = await ask(fixture.api, `/v1/sessions/${first.json.session_id}`);
    expect(json).toMatchObject({ key: 'agent:main:api:dm:c1', user_id: 'ada', state: 'open', message_count: 4 });
  });

  test('without one is answered in a session that ends after the reply', async () => {
    const { json } = await say({ text: 'hello' });
    const session = (await ask(fixture.api, `/v1/sessions/${json.session_id}`)).json;
    expect(session).toMatchObject({ state: 'ended', end_reason: 'api_close', kind: 'api' });
  });

  test('comes to the backend with all that was sent along', async () => {
    await say({
      text: 'hello',
      conversation: 'c2',
      user: 'ada',
      model: 'loom-9',
      platform: 'web',
      idempotency_key: 'k',
    });
    expect(fixture.backend.said).toEqual([
      {
        ...{ text: 'hello', conversation: 'c2', userId: 'ada', model: 'loom-9', platform: 'web', idempotencyKey: 'k' },
        ...{ caller: { credential: 'loopback', namespace: null, admin: true }, history: [] },
      },
    ]);
  });

  test('is a slash command, which is no turn', async () => {
    const before = await say({ text: 'hello', conversation: 'c3' });
    const { status, json } = await say({ text: '/new', conversation: 'c3' });
    expect([status, json]).toMatchObject([200, { turn_id: null, reply: 'A fresh start.', outcome: 'done' }]);
    expect(json.session_id).not.toBe(before.json.session_id);
    const events = (await ask(fixture.api, `/v1/sessions/${before.json.session_id}/events`)).json.data;
    expect(events.at(-1)).toMatchObject({ type: 'session:end', reason: 'user_reset' });
  });

  test.each([
    ['interrupted', 200, null],
    ['failed', 502, 'model_unavailable'],
    ['timeout', 504, 'turn_timeout'],
  ] as const)('that came out as %s is %i', async (outcome, status, errorCode) => {
    fixture.backend.script = () => ({ outcome, errorCode, text: 'No reply, and why.' });
    const answer = await say({ text: 'hello' });
    expect([answer.status, answer.json.outcome, answer.json.reply]).toEqual([status, outcome, 'No reply, and why.']);
    expect(answer.json.error?.code ?? null).toBe(errorCode);
    if (errorCode !== null) expect(answer.json.error.hint).not.toBe('');
    expect(answer.headers['x-should-retry']).toBe(status === 200 ? undefined : 'false');
  });

  test.each([
    ['store_outcome_unknown', 503],
    ['internal', 500],
  ] as const)(
    'and may have been taken (%s) is not sent again by clients that repeat by themselves',
    async (code, status) => {
      fixture.backend.script = () => {
        throw new MoiraiError(code, 'who knows');
      };
      const answer = await say({ text: 'hello' });
      expect([answer.status, answer.headers['x-should-retry']]).toEqual([status, 'false']);
    },
  );

  test('while the gateway drains is refused', async () => {
    await fixture.backend.drain();
    const answer = await say({ text: 'hello' });
    expect([answer.status, answer.json.error.code]).toEqual([503, 'draining']);
    expect(await streamed({ text: 'hello' }).catch(String)).toContain('503');
  });

  test('again with the same key is the same turn, and with another body a conflict', async () => {
    const key = { idempotency_key: 'once' };
    const [first, second] = await Promise.all([say({ text: 'hello', ...key }), say({ text: 'hello', ...key })]);
    const third = await say({ text: 'hello' }, { 'idempotency-key': 'once' });
    expect(third.json).toEqual(second.json);
    expect(first.json.reply).toBe('You said: hello');
    const other = await say({ text: 'goodbye', ...key });
    expect([other.status, other.json.error.code]).toEqual([409, 'idempotency_conflict']);
  });

  test('goes on when the client has left', async () => {
    let release: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => {
      release = resolve;
    });
    fixture.backend.script = async () => {
      await waiting;
      return { text: 'nobody hears this' };
    };
    const left = new AbortController();
    const headers = { 'content-type': 'application/json' };
    const body = JSON.stringify({ text: 'hello', conversation: 'left' });
    const asked = fetch(new URL('/v1/chat', fixture.api.url), { method: 'POST', body, headers, signal: left.signal });
    await until('it is taken', () => fixture.backend.said.length === 1);
    left.abort();
    await expect(asked).rejects.toThrow();
    release();
    await until('it is answered', async () => {
      const { json } = await ask(fixture.api, '/v1/sessions?key=agent:main:api:dm:left');
      return json.data[0]?.message_count === 2;
    });
  });
});

test('a port that closes waits a moment for replies, and no longer', async () => {
  let release: () => void = () => undefined;
  fixture.backend.script = async () => {
    await new Promise<void>((resolve) => {
      release = resolve;
    });
    return { text: 'just in time' };
  };
  const asked = say({ text: 'hello', conversation: 'closing' });
  await until('it is taken', () => fixture.backend.said.length === 1);
  await new Promise((next) => setTimeout(next, 50));
  const closed = fixture.api.close();
  release();
  expect((await asked).json.reply).toBe('just in time');
  await closed;
  await expect(say({ text: 'too late' })).rejects.toThrow();
});

describe('a streamed reply', () => {
  test('tells the session, the text, the tools and the end', async () => {
    fixture.backend.script = inPieces;
    const events = await streamed({ text: 'hello', stream: true });
    expect(events.map(({ event }) => event)).toEqual(['session', 'text', 'text', 'tool', 'tool', 'text', 'done']);
    const [session, ...rest] = events.map(({ data }) => data);
    expect(rest.slice(0, -1)).toEqual([
      { text: 'Let me ' },
      { text: 'look. ' },
      { id: 't1', name: 'read_file', state: 'start', args: { path: 'a' } },
      { id: 't1', name: 'read_file', state: 'end', ok: true },
      { text: 'Done.' },
    ]);
    expect(rest.at(-1)).toMatchObject({ ...session, reply: 'Let me look. Done.', outcome: 'done' });
  });

  test('is given to who accepts a stream, unless he says otherwise', async () => {
    expect((await streamed({ text: 'hello' })).map(({ event }) => event)).toEqual(['session', 'done']);
    const answer = await say({ text: 'hello', stream: false }, { accept: 'text/event-stream' });
    expect(answer.json.outcome).toBe('done');
  });

  test('ends with what went wrong', async () => {
    fixture.backend.script = () => ({ outcome: 'failed', errorCode: 'model_cut', text: 'The stream broke off.' });
    const last = (await streamed({ text: 'hello', stream: true })).at(-1);
    expect(last).toMatchObject({ event: 'done', data: { outcome: 'failed', error: { code: 'model_cut' } } });
    fixture.backend.script = () => {
      throw new TypeError('the secret is halibut');
    };
    const defect = (await streamed({ text: 'hello', stream: true })).at(-1);
    expect(defect).toMatchObject({ event: 'done', data: { outcome: 'failed', error: { code: 'internal' } } });
    expect(JSON.stringify(defect)).not.toContain('halibut');
    expect(fixture.logged.join()).toContain('halibut');
  });

  test('goes on without a listener who has left', async () => {
    let release: () => void = () => undefined;
    const waiting = new Promise<void>((resolve) => {
      release = resolve;
    });
    fixture.backend.script = async (_saying, show) => {
      show({ type: 'text', text: 'one' });
      await waiting;
      show({ type: 'text', text: 'two' });
      return { text: 'onetwo' };
    };
    const init = { method: 'POST', body: '{"text":"hello"}', headers: { 'content-type': 'application/json' } };
    const [session] = await firstOf(listen(fixture.api, '/v1/chat', init), 2);
    release();
    await until('it is answered', async () => {
      const { json } = await ask(fixture.api, `/v1/sessions/${session?.data.session_id}`);
      return json.end_reason === 'api_close' && json.message_count === 2;
    });
  });
});

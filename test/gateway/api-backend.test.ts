import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ChatRequest } from '../../src/api/backend.ts';
import { Figures } from '../../src/api/figures.ts';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import { apiBackend } from '../../src/gateway/api-backend.ts';
import type { TurnEvent } from '../../src/turns/turn-event.ts';
import { patience } from '../support/patience.ts';
import { Scene } from './scene.ts';

let scene: Scene;
beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

function backend() {
  const readiness = async () => ({ state: 'ready', checks: {} }) as const;
  const facts = { model: 'scripted', readiness, state: () => 'ready' as const, figures: new Figures() };
  return apiBackend({ gateway: scene.gateway, ...facts });
}

function request(text: string, rest: Partial<ChatRequest> = {}): ChatRequest {
  const fixed = {
    conversation: null,
    platform: 'api',
    userId: null,
    idempotencyKey: null,
    caller: { credential: 'c', namespace: null, admin: true },
  } as const;
  return { text, ...fixed, model: null, history: [], ...rest };
}

const history = [{ role: 'user', text: 'before' }] as const;

test('a request that is refused starts no session', async () => {
  for (const rest of [{ history }, { model: 'scripted' }, { history, model: 'scripted' }]) {
    await expect(backend().receive(request('   ', rest))).rejects.toMatchObject({ code: 'bad_input' });
  }
  expect(await scene.store.read('stats', {})).toMatchObject({ total: 0 });
});

test('while the store takes no writes, what is said is refused with its code and reaches neither store nor agent', async () => {
  const full = new MoiraiError('store_full', 'no space is left');
  const write = vi.spyOn(scene.store, 'write').mockRejectedValue(full);
  expect(await scene.gateway.storeProblem()).toMatchObject({ code: 'store_full' });
  for (const rest of [{}, { conversation: 'c1' }, { history }, { idempotencyKey: 'once' }]) {
    await expect(backend().receive(request('hello', rest))).rejects.toMatchObject({ code: 'store_full' });
  }
  await expect(scene.say('ada', '/new')).rejects.toMatchObject({ code: 'store_full' });
  const asked = new Set<string>(write.mock.calls.map(([name]) => name));
  expect(asked.intersection(new Set(['receive', 'startSession', 'acceptCommand', 'resetSession']))).toEqual(new Set());
  write.mockRestore();
  await scene.until('it takes writes again', async () => (await scene.gateway.storeProblem()) === null);
  expect(await scene.ask('ada', 'hello')).toBe('did: hello');
});

test('the history that a client gives is in the transcript before its message, and its session ends', async () => {
  const accepted = await backend().receive(
    request('now', { history: [...history, { role: 'assistant', text: 'so' }] }),
  );
  expect(await accepted.reply).toMatchObject({ text: 'did: now', outcome: 'done' });
  const rows = await scene.messages(accepted.sessionId);
  expect(rows.map(({ role, text }) => `${role}: ${text}`)).toEqual([
    'user: before',
    'assistant: so',
    'user: now',
    'assistant: did: now',
  ]);
  expect(await scene.session(accepted.sessionId)).toMatchObject({ state: 'ended', endReason: 'api_close' });
});

test('a one-shot that nobody looks on is refused what it asks for at once; one that streams is asked', {
  timeout: patience(15_000),
}, async () => {
  const alone = await backend().receive(request('wait'));
  await scene.until('it runs', () => scene.runner.tasks.length === 1);
  const ask = { tool: 'run_command', action: 'make' };
  expect(await scene.runner.tasks[0]?.context.approve(ask)).toMatchObject({ allowed: false });
  const watched = await backend().receive(request('wait'));
  const events: TurnEvent[] = [];
  watched.events?.watch((event) => events.push(event));
  await scene.until('both run', () => scene.runner.tasks.length === 2);
  const answer = scene.runner.tasks[1]?.context.approve(ask);
  await scene.until('it is asked', () => events.some(({ type }) => type === 'question'));
  const [question] = events.filter((event) => event.type === 'question');
  const by = { name: 'api', person: null, admin: true };
  await scene.gateway.approvals.answerById(question?.id ?? '', 'once', by);
  expect(await answer).toEqual({ allowed: true });
  await scene.until('the answer is told', () =>
    events.some((event) => event.type === 'question' && event.state === 'allowed'),
  );
  scene.runner.release();
  await Promise.all([alone.reply, watched.reply]);
});

test('the same request again joins its turn, with what was so far', async () => {
  const first = await backend().receive(request('wait', { idempotencyKey: 'k', conversation: 'c' }));
  await scene.until('it runs', () => scene.runner.tasks.length === 1);
  const again = await backend().receive(request('wait', { idempotencyKey: 'k', conversation: 'c' }));
  expect(again.turnId).toBe(first.turnId);
  const texts: string[] = [];
  again.events?.watch((event) => {
    if (event.type === 'text') texts.push(event.text);
  });
  expect(texts).toEqual(['thinking']);
  scene.runner.release();
  expect((await again.reply).text).toBe((await first.reply).text);
});

test('a turn is waited for by its id until it is over, and read with its reply', async () => {
  const { turnId } = await backend().receive(request('wait', { conversation: 'c' }));
  await scene.until('it runs', () => scene.runner.tasks.length === 1);
  const { turns } = backend();
  const wait = (ms: number) => turns.wait(turnId ?? '', ms, AbortSignal.timeout(60_000));
  expect(await wait(1)).toMatchObject({ turnId, state: 'running', reply: null });
  const over = wait(60_000);
  scene.runner.release();
  expect(await over).toMatchObject({ turnId, state: 'over', reply: { text: 'did: wait', outcome: 'done' } });
  expect(await turns.find(turnId ?? '')).toEqual(await over);
});

test('a command that comes again with its key is answered alike and done once', async () => {
  const keyed = (text: string, idempotencyKey: string) => request(text, { idempotencyKey, conversation: 'c' });
  const say = async (text: string, key: string) => (await backend().receive(keyed(text, key))).reply;
  await say('one', 'k1');
  await say('two', 'k2');
  const undone = await say('/undo', 'k3');
  expect(undone.text).toContain('two');
  expect(await say('/undo', 'k3')).toEqual(undone);
  expect((await say('/undo', 'k4')).text).toContain('one');
  const again = await say('three', 'k5').then(() => say('/retry', 'k6'));
  expect(again.text).toBe('did: three');
  expect(await say('/retry', 'k6')).toEqual(again);
  const fresh = await say('/new', 'k7');
  expect(await say('/new', 'k7')).toEqual(fresh);
  expect(await scene.store.read('stats', {})).toMatchObject({ total: 2 });
});

test('a key that was used with another body is refused, whether a command or a message', async () => {
  const keyed = (text: string, idempotencyKey: string) => request(text, { idempotencyKey, conversation: 'c' });
  await (await backend().receive(keyed('one', 'message'))).reply;
  await (await backend().receive(keyed('/title A', 'command'))).reply;
  for (const [text, key] of [
    ['/undo', 'message'],
    ['two', 'message'],
    ['two', 'command'],
    ['/title B', 'command'],
  ] as const) {
    await expect(backend().receive(keyed(text, key))).rejects.toMatchObject({ code: 'idempotency_conflict' });
  }
});

test('a command whose process stopped in the middle says so when it comes again, and is not done', async () => {
  await scene.ask('ada', 'one');
  await scene.ask('ada', 'two');
  await scene.say('ada', '/undo', 'ref-1');
  // As a process leaves it that was killed between the acceptance and the answer.
  await scene.store.write('settleCommand', { ref: 'ref-1', answer: null, sessionId: null, turnId: null });
  const again = await scene.say('ada', '/undo', 'ref-1');
  expect(again).toMatchObject({
    type: 'answer',
    text: expect.stringMatching(/^The gateway was interrupted while it did \/undo/),
  });
  expect(await scene.ask('ada', '/undo')).toContain('one');
});

test('a key of a command is kept for 24 hours, and free again afterwards', async () => {
  const keyed = (text: string) => request(text, { idempotencyKey: 'k', conversation: 'c' });
  await (await backend().receive(request('one', { conversation: 'c' }))).reply;
  await (await backend().receive(keyed('/title A'))).reply;
  scene.later(23 * 3_600_000);
  await expect(backend().receive(keyed('/title B'))).rejects.toMatchObject({ code: 'idempotency_conflict' });
  scene.later(2 * 3_600_000);
  await (await backend().receive(request('two', { conversation: 'c' }))).reply;
  expect(await (await backend().receive(keyed('/title B'))).reply).toMatchObject({ text: 'Title: B' });
});

test('a key is forgotten after 24 hours', async () => {
  const keyed = request('one', { idempotencyKey: 'k', conversation: 'c' });
  const first = await backend().receive(keyed);
  await first.reply;
  scene.later(25 * 3_600_000);
  const second = await backend().receive(keyed);
  expect(second.turnId).not.toBe(first.turnId);
  expect((await second.reply).text).toBe('did: one');
});

test('a key that is not an admin has conversations of its own, and may not give the commands of an operator', async () => {
  const caller = { credential: 'k', namespace: 'shop', admin: false };
  const say = async (text: string, rest: Partial<ChatRequest> = {}) => {
    const accepted = await backend().receive(request(text, { conversation: 'harbour', caller, ...rest }));
    return accepted.reply;
  };
  const own = await say('hello');
  expect((await scene.session(own.sessionId))?.key).toBe('agent:main:api:dm:shop:harbour:');
  const others = await backend().receive(request('hello', { conversation: 'harbour' }));
  await others.reply;
  expect(others.sessionId).not.toBe(own.sessionId);
  for (const command of ['/restart', '/sethome']) {
    expect((await say(command)).text).toBe(`${command} needs a key with the scope admin.`);
  }
  // Neither by its id does it go on with what is not its own.
  expect((await say(`/resume ${others.sessionId}`)).sessionId).not.toBe(others.sessionId);
  expect((await say('/sessions')).text).not.toContain(others.sessionId);
});

test('whoever holds a key answers for nobody whom another key or platform calls by the same name', async () => {
  const named = (text: string, namespace: string) =>
    request(text, { conversation: 'c', userId: '7', caller: { credential: namespace, namespace, admin: false } });
  const say = async (text: string, namespace: string) =>
    (await (await backend().receive(named(text, namespace))).reply).text;
  const asked = await backend().receive(named('please ask', 'shop'));
  await scene.until('it is asked', async () => (await scene.gateway.approvals.waiting()).length === 1);
  const [question] = await scene.gateway.approvals.waiting();
  expect(await say(`/deny ${question?.id}`, 'harbour')).toBe('This was not asked of you.');
  expect(await say('/deny not now', 'shop')).toBe('Refused: spin the wheel');
  expect((await asked.reply).text).toBe('did: please ask, refused: not now');
  const chat = { ...scene.conversation('loft'), userId: '7' };
  await scene.gateway.conversations.receive({ conversation: chat, text: 'please ask', originRef: null });
  await scene.until('it is asked', async () => (await scene.gateway.approvals.waiting()).length === 1);
  const [other] = await scene.gateway.approvals.waiting();
  expect(await say(`/deny ${other?.id}`, 'shop')).toBe('This was not asked of you.');
  expect(await scene.ask('loft', '/deny')).toBe('Refused: spin the wheel');
});

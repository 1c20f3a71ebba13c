import { afterEach, describe, expect, test } from 'vitest';
import { parkSession } from '../../src/engine/parking.ts';
import { apiBackend } from '../../src/gateway/api-backend.ts';
import { PARKED_IN_TURN_TEXT, PARKED_TEXT } from '../../src/turns/texts.ts';
import { Scene } from './scene.ts';

let scene: Scene;

afterEach(() => scene.close());

const REQUEST = {
  conversation: 'c',
  platform: 'api',
  userId: null,
  caller: { credential: 'k', namespace: null, admin: true },
  model: null,
  history: [],
} as const;

async function words(sessionId: string): Promise<[string, string][]> {
  return (await scene.messages(sessionId)).map(({ role, text }) => [role, text]);
}

describe('a session that an operator parked', () => {
  test('says so to whoever writes, keeps what they write, and answers it in order once it is released', async () => {
    scene = await Scene.open();
    await scene.ask('1', 'hello');
    const { id } = await scene.sessionOf('1');
    await parkSession(scene.gateway.engine, id, 'suspend');
    const heard = [await scene.say('1', 'one'), await scene.say('1', 'two')];
    await scene.until('both are told', () => scene.pigeons.textsTo('1').filter((t) => t === PARKED_TEXT).length === 2);
    await scene.gateway.turns.adopt();
    expect(scene.runner.tasks.map(({ text }) => text)).toEqual(['hello']);
    await scene.stop();
    await scene.start();
    expect(await scene.session(id)).toMatchObject({ state: 'suspended', suspendReason: 'operator' });
    await parkSession(scene.gateway.engine, id, 'release');
    await scene.until('both are answered', () => scene.pigeons.textsTo('1').includes('did: two'));
    expect(heard.map((one) => (one.type === 'turn' ? one.received.session.id : null))).toEqual([id, id]);
    expect((await words(id)).filter(([role]) => role === 'assistant').map(([, text]) => text)).toEqual([
      'did: hello',
      'did: one',
      'did: two',
    ]);
    expect(await scene.session(id)).toMatchObject({ state: 'open', suspendReason: null });
  });

  test('in the middle of a turn stops it, tells its writer, and keeps the words that were said and shown', async () => {
    scene = await Scene.open();
    const heard = await scene.say('1', 'please wait');
    if (heard.type !== 'turn') throw new TypeError('not a turn');
    await scene.until('it runs', () => scene.runner.tasks.length === 1);
    const { id } = heard.received.session;
    await parkSession(scene.gateway.engine, id, 'suspend');
    await scene.until('its writer is told', () => scene.pigeons.textsTo('1').includes(PARKED_IN_TURN_TEXT));
    await scene.until('the run is over', () => scene.gateway.turns.runOf(id) === undefined);
    expect(await words(id)).toEqual([
      ['user', 'please wait'],
      ['assistant', 'thinking'],
    ]);
    expect(scene.runner.tasks[0]?.signal.aborted).toBe(true);
  });

  test('lets /new start a fresh one, where what waited is answered', async () => {
    scene = await Scene.open();
    await scene.ask('1', 'hello');
    const { id } = await scene.sessionOf('1');
    await parkSession(scene.gateway.engine, id, 'suspend');
    await scene.say('1', 'one');
    await scene.ask('1', '/new');
    await scene.until('it is answered', () => scene.pigeons.textsTo('1').includes('did: one'));
    expect(await scene.session(id)).toMatchObject({ state: 'ended', endReason: 'user_reset', suspendReason: null });
  });

  test('answers a request over HTTP with an error that names the turn, and the turn after its release', async () => {
    scene = await Scene.open();
    const backend = apiBackend({ gateway: scene.gateway } as Parameters<typeof apiBackend>[0]);
    const request = REQUEST;
    const first = await backend.receive({ ...request, text: 'hello', idempotencyKey: null });
    await first.reply;
    await parkSession(scene.gateway.engine, first.sessionId, 'suspend');
    const parked = backend.receive({ ...request, text: 'one', idempotencyKey: 'i' });
    await expect(parked).rejects.toMatchObject({
      code: 'session_suspended',
      message: expect.stringMatching(/turn trn_/),
    });
    await parkSession(scene.gateway.engine, first.sessionId, 'release');
    scene.gateway.turns.wake(first.sessionId);
    const again = await backend.receive({ ...request, text: 'one', idempotencyKey: 'i' });
    expect(await again.reply).toMatchObject({ text: 'did: one', sessionId: first.sessionId });
  });

  test('answers a request over HTTP whose turn it stops with the reason', async () => {
    scene = await Scene.open();
    const backend = apiBackend({ gateway: scene.gateway } as Parameters<typeof apiBackend>[0]);
    const accepted = await backend.receive({ ...REQUEST, text: 'please wait', idempotencyKey: null });
    await scene.until('it runs', () => scene.runner.tasks.length === 1);
    await parkSession(scene.gateway.engine, accepted.sessionId, 'suspend');
    expect(await accepted.reply).toMatchObject({ outcome: 'interrupted', text: PARKED_IN_TURN_TEXT });
  });

  test('stays parked when it is parked again, and open when it is released again', async () => {
    scene = await Scene.open();
    await scene.ask('1', 'hello');
    const { id } = await scene.sessionOf('1');
    const { engine } = scene.gateway;
    for (const verb of ['suspend', 'suspend', 'release', 'release'] as const) await parkSession(engine, id, verb);
    const types = (await scene.events()).map(({ type }) => type).filter((type) => /suspend|release/.test(type));
    expect(types).toEqual(['session:suspend', 'session:release']);
  });
});

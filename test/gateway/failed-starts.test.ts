import { expect, test } from 'vitest';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import { FailedStarts } from '../../src/turns/failed-starts.ts';
import { Scene } from './scene.ts';

test('a turn that cannot be begun three times is given up, told and passed; a store in trouble is waited for', async () => {
  const scene = await Scene.open();
  const { engine, chat } = scene.gateway;
  scene.gateway.turns.pauseNew();
  const conversation = scene.conversation('1');
  const asked = { conversation, originRef: null, by: 'user', begin: false } as const;
  const { session, turn } = await engine.receive({ ...asked, text: 'poison' });
  const behind = await engine.receive({ ...asked, text: 'behind it' });
  const starts = new FailedStarts(engine, (...notice) => chat.notice(...notice));
  for (let i = 0; i < 5; i++) expect(await starts.note(session.id, new MoiraiError('store_locked', 'wait'))).toBeNull();
  for (let i = 0; i < 2; i++) expect(await starts.note(session.id, new TypeError('x is not y'))).toBeNull();
  expect(await starts.note(session.id, new TypeError('x is not y'))).toBe(turn.id);
  expect(await scene.store.read('getTurn', { turnId: turn.id })).toMatchObject({ state: 'over', outcome: 'failed' });
  expect(await scene.store.read('openTurns', { sessionId: session.id, limit: 9 })).toMatchObject([
    { id: behind.turn.id, state: 'queued' },
  ]);
  await scene.until('its person is told', () => scene.pigeons.textsTo('1').length === 1);
  const query = { after: 0, limit: 100, types: ['work:set_aside'], sessionId: null };
  const { events } = await scene.store.read('listEvents', query);
  expect(events).toMatchObject([{ event: { work: 'turn', id: turn.id, attempts: 3, error: 'x is not y' } }]);
  await scene.close();
});

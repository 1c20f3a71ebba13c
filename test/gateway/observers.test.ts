import { afterEach, beforeEach, expect, test } from 'vitest';
import { spanIdOf, traceIdOf } from '../../src/tracing/span-ids.ts';
import type { Span } from '../../src/tracing/tracer.ts';
import { Scene } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open({ gateway: { drain_timeout: '0s' } });
});

afterEach(() => scene.close());

const named = (name: string): Span[] => scene.spans.filter((span) => span.name === name);

async function turnOf(text: string): Promise<string> {
  const heard = await scene.say('ada', text);
  if (heard.type === 'answer') throw new TypeError('that was a command');
  return heard.received.turn.id;
}

test('the parts of a trace are found by the id of the turn alone', async () => {
  const turnId = await turnOf('hello');
  await scene.until('it is over', () => named('deliver').length === 1 && named('turn').length === 1);
  const traceId = traceIdOf(turnId);
  expect(scene.spans.map(({ name, id, parentId }) => [name, id, parentId]).toSorted()).toEqual([
    ['deliver', expect.any(String), spanIdOf('turn', turnId)],
    ['receive', spanIdOf('receive', turnId), null],
    ['turn', spanIdOf('turn', turnId), spanIdOf('receive', turnId)],
  ]);
  expect(scene.spans.every((span) => span.traceId === traceId && /^[0-9a-f]{32}$/.test(traceId))).toBe(true);
  expect(scene.spans.every(({ id }) => /^[0-9a-f]{16}$/.test(id))).toBe(true);
  expect(JSON.stringify(scene.spans)).not.toContain('hello');
});

test('a message that comes again is not received again', async () => {
  await scene.say('ada', 'hello', 'm-1');
  await scene.say('ada', 'hello', 'm-1');
  expect(named('receive')).toHaveLength(1);
});

test('a turn that somebody stops is no error, one that fails is', async () => {
  await turnOf('wait');
  await scene.ask('ada', '/stop');
  await turnOf('fail');
  await scene.until('both are over', () => named('turn').length === 2);
  expect(named('turn').map(({ attributes, error }) => [attributes['moirai.outcome'], error])).toEqual([
    ['interrupted', null],
    ['failed', 'internal'],
  ]);
});

test('a run whose session ends under it is lost, and ends no turn', async () => {
  const turnId = await turnOf('wait');
  const { id } = await scene.sessionOf('ada');
  await scene.gateway.engine.end(id, { reason: 'admin_close', trigger: 'api' });
  await scene.until('it is let go', () => named('cut').length === 1);
  expect(named('turn')).toEqual([]);
  expect(named('cut')[0]).toMatchObject({
    ...{ parentId: spanIdOf('turn', turnId), attributes: { 'moirai.outcome': 'lost' } },
  });
});

test('the run of a job begins with its turn, and a notice is a trace of its own', async () => {
  await scene.ask('ada', 'hello');
  expect(await scene.ask('ada', '/cron add every 1h sweep')).toMatch(/^Scheduled/);
  scene.later(3_600_000);
  await scene.startDueJobs();
  await scene.until('it is run and told', () => named('turn').length === 2 && named('deliver').length === 2);
  expect(named('turn')[1]).toMatchObject({ parentId: null, attributes: { 'moirai.kind': 'cron' } });
  expect(named('deliver')[1]?.parentId).toBeNull();
});

test('who observes and fails changes nothing', async () => {
  scene.record = () => {
    throw new TypeError('no more paper');
  };
  expect(await scene.ask('ada', 'hello')).toBe('did: hello');
  await scene.until('it is sent', () => scene.pigeons.textsTo('ada').length === 1);
  await scene.stop();
});

import { readFileSync } from 'node:fs';
import { expect } from 'vitest';
import { EVENT_TYPES, type MoiraiEvent } from '../../src/lifecycle/events.ts';
import { type Scene, sceneTests } from './contract/scene.ts';
import { openInlineSqlite } from './engines.ts';

const page = readFileSync(new URL('../../docs/events.md', import.meta.url), 'utf8');
const COMMON = [
  'id',
  'session_seq',
  'type',
  'at',
  'session_id',
  'session_key',
  'platform',
  'user_id',
  'kind',
  'instance',
];

/** The fields docs/events.md gives a type, beside those that all have. */
function documentedFields(type: string): string[] {
  const name = type.startsWith('command:') ? 'command:<name>' : type;
  const row = page.split('\n').find((line) => line.startsWith(`| \`${name}\` |`)) ?? '';
  return [...(row.split(' | ')[2] ?? '').matchAll(/`(\w+)`/g)].map(([, field]) => field ?? '');
}

const test = sceneTests(openInlineSqlite);

test('every event that the store writes has the fields that docs/events.md lists, and no others', async (scene) => {
  const events = await oneOfEach(scene);
  for (const event of events) {
    const expected = new Set([...COMMON, ...documentedFields(event.type)]);
    expect([event.type, Object.keys(event).toSorted()]).toEqual([event.type, [...expected].toSorted()]);
  }
  const written = new Set(events.map(({ type }) => type));
  // Steps of an agent are streamed, not stored; the rest of the list has been seen.
  expect(EVENT_TYPES.filter((type) => !written.has(type))).toEqual(['agent:step']);
});

/** A day of a gateway in which everything happens. */
async function oneOfEach(scene: Scene): Promise<MoiraiEvent[]> {
  await scene.subscribe('listener');
  for (const name of ['startup', 'draining', 'shutdown'] as const) {
    const draft = { type: `gateway:${name}`, fields: { platforms: ['telegram'], reason: null } } as const;
    await scene.store.write('announceInstance', { context: scene.context(), event: { id: `one:${name}`, draft } });
  }
  await scene.store.write('announceInstance', {
    context: scene.context(),
    event: {
      id: 'platform',
      draft: {
        type: 'gateway:platform',
        fields: { name: 'telegram', phase: 'connected', problem: null, last_success_at: null },
      },
    },
  });
  const place = { name: 'telegram', chat_id: '42', thread_id: null };
  const happened = [
    { type: 'platform:place', fields: { ...place, change: 'added', reason: null } },
    { type: 'platform:message', fields: { ...place, change: 'deleted', message_id: '7' } },
    { type: 'platform:reaction', fields: { ...place, change: 'added', message_id: '7', by: '42', reaction: '👍' } },
    { type: 'platform:member', fields: { ...place, change: 'joined', by: '42' } },
  ] as const;
  for (const draft of happened) {
    await scene.store.write('announceInstance', { context: scene.context(), event: { id: draft.type, draft } });
  }
  await scene.store.write('announceInstance', {
    context: scene.context(),
    event: {
      id: 'aside',
      draft: { type: 'work:set_aside', fields: { work: 'tick', id: 'job:1', attempts: 3, error: 'unreadable' } },
    },
  });
  const asked = await scene.ask('1');
  const { id } = asked.session;
  const context = scene.context();
  const question = { id: 'apr', sessionId: id, turnId: asked.turn.id, tool: 'run_command', summary: 'make' };
  await scene.store.write('askApproval', { ...question, context, exact: 'x', askedOf: null, timeoutMs: 1000 });
  const answer = { id: 'apr', decision: 'once', by: 'telegram:1', reason: null } as const;
  await scene.store.write('answerApproval', { ...answer, context: scene.context() });
  await scene.cut(id);
  const { session } = await scene.begin(id, asked.turn.id);
  const deliveries = ['dlv-1', 'dlv-2'].map((name) => ({ id: name, platform: 'telegram', target: {}, text: 'x' }));
  await scene.finish({ session, turn: asked.turn }, {}, { deliveries });
  for (const outcome of [{ state: 'sent' }, { state: 'failed', error: 'no' }] as const) {
    const [replies] = await scene.claimReplies({ repliesPerLane: 1 });
    if (replies !== undefined) await scene.settleReply(replies, outcome);
  }
  await scene.command(id, { name: 'title', title: 'a title' });
  await scene.command(id, { name: 'compress', beforeTokens: 2, afterTokens: 1, count: 1, epoch: null });
  await scene.command(id, { name: 'suspend', reason: 'operator' });
  await scene.command(id, { name: 'reopen' });
  await scene.reset('1', { command: 'new', args: '' });
  await scene.joinedBy('dying');
  await scene.reap(['dying']);
  const lane = (await scene.claim('listener')).find(({ key }) => key !== '');
  if (lane !== undefined) await scene.fail(lane);
  return scene.events();
}

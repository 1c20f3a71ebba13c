import { describe, expect } from 'vitest';
import type { SessionKind } from '../../../src/lifecycle/states.ts';
import { codeOf } from './code-of.ts';
import { DAY, HOUR, type Open, type Scene, sceneTests } from './scene.ts';

/** What is removed, and what stays. */
export function deletionContract(open: Open): void {
  const test = sceneTests(open);

  describe('a deleted session', () => {
    test('leaves its events and nothing else', async (scene) => {
      const id = await conversation(scene, '42', 'the harbour', 'behind the bridge');
      const before = await scene.types(id);
      await scene.end(id);
      expect(await remove(scene, id)).toEqual({ ended: false, already: false });
      expect(await scene.store.read('getSession', { sessionId: id })).toBeNull();
      expect(await rowsOf(scene, id)).toEqual({ turns: 0, messages: 0, deliveries: 0, sessions: 0 });
      expect(await scene.types(id)).toEqual([...before, 'session:end']);
      expect(await scene.store.read('lastEvents', { sessionId: id, limit: 1 })).toMatchObject([
        { event: { type: 'session:end', reason: 'admin_close' } },
      ]);
      expect(await scene.store.read('stats', {})).toMatchObject({ total: 0, ended: {} });
      expect(await brokenPromises(scene)).toEqual([]);
    });

    test('is ended first when it is open, with its turn, its children and its waiting messages', async (scene) => {
      const asked = await scene.ask('42', 'spin');
      const { id } = asked.session;
      await scene.say('42', 'and then?');
      const child = await scene.start('child', { kind: 'child' }, { parentId: id, lineage: 'spawn' });
      expect(await remove(scene, id)).toEqual({ ended: true, already: false });
      expect((await scene.events(id)).slice(-2)).toMatchObject([
        { type: 'agent:end', outcome: 'interrupted' },
        { type: 'session:end', reason: 'deleted', trigger: 'cli', successor_id: null },
      ]);
      // What worked for it knew its words, and goes with it.
      expect((await scene.events(child.id)).at(-1)).toMatchObject({ type: 'session:end', reason: 'parent_ended' });
      expect(await rowsOf(scene, child.id)).toEqual({ turns: 0, messages: 0, deliveries: 0, sessions: 0 });
      expect(await rowsOf(scene, id)).toEqual({ turns: 0, messages: 0, deliveries: 0, sessions: 0 });
      expect(await codeOf(scene.finish(asked))).toBe('session_not_found');
      expect(await brokenPromises(scene)).toEqual([]);
    });

    test('makes room for a fresh one in its conversation', async (scene) => {
      const id = await conversation(scene, '42', 'one', 'two');
      await remove(scene, id);
      const next = await scene.ask('42', 'three');
      expect(next).toMatchObject({ started: true, ended: null, session: { parentId: null } });
    });

    test('can be deleted again, and one that never was cannot', async (scene) => {
      const id = await conversation(scene, '42', 'one', 'two');
      await remove(scene, id);
      expect(await remove(scene, id)).toEqual({ ended: false, already: true });
      expect(await codeOf(remove(scene, 'ses-never'))).toBe('session_not_found');
    });

    test('is told to subscribers like every other end', async (scene) => {
      await scene.subscribe('listener', ['session:end']);
      const id = await conversation(scene, '42', 'one', 'two');
      await remove(scene, id);
      expect(await scene.drain('listener')).toMatchObject([{ session_id: id, reason: 'deleted' }]);
    });

    test('may not be one whose transcript another one sees, until that is gone', async (scene) => {
      const id = await conversation(scene, '42', 'one', 'two');
      const { session: resumed } = await scene.continue(id, 'branch');
      expect(await codeOf(remove(scene, id))).toBe('session_continued');
      expect(await scene.store.read('listMessages', { sessionId: id, after: 0, limit: 10 })).toHaveLength(2);
      await remove(scene, resumed.id);
      expect(await remove(scene, id)).toMatchObject({ already: false });
    });

    test('and one that continues it at the same moment: one of the two wins', async (scene) => {
      const other = await scene.joinedBy('two');
      for (let n = 0; n < 10; n++) {
        const id = await conversation(scene, `c${n}`, 'one', 'two');
        const continuing = () => other.continue(id, 'branch', { conversation: scene.conversation(`d${n}`) });
        const codes = await Promise.all([codeOf(continuing()), codeOf(remove(scene, id))]);
        expect([
          ['no error', 'session_continued'],
          ['session_not_found', 'no error'],
        ]).toContainEqual(codes);
      }
      expect(await brokenPromises(scene)).toEqual([]);
    });

    test('takes its unsent replies along', async (scene) => {
      const asked = await scene.ask('42', 'spin');
      await scene.finish(asked, {}, { deliveries: [reply('dlv-1'), reply('dlv-2')] });
      await scene.claimReplies({ repliesPerLane: 1 });
      const sessionId = asked.session.id;
      await remove(scene, sessionId);
      expect(await scene.claimReplies()).toEqual([]);
      const late = { context: scene.context(), sessionId, deliveries: [reply('dlv-3')] };
      expect(await codeOf(scene.store.write('addDeliveries', late))).toBe('session_not_found');
    });
  });

  describe('the words of deleted sessions', () => {
    test('are not found any longer, and all others are', async (scene) => {
      const ids = [];
      for (const name of ['anna', 'bert', 'cleo', 'dora']) {
        ids.push(await conversation(scene, name, `harbour of ${name}`, `bridge of ${name}`));
      }
      await index(scene);
      for (const gone of [ids[1], ids[3]]) await remove(scene, String(gone));
      expect(await found(scene, 'harbour')).toEqual(['harbour of anna', 'harbour of cleo']);
      expect(await found(scene, 'bert')).toEqual([]);
      expect(await found(scene, 'dora')).toEqual([]);
      // The index goes on behind what was forgotten.
      await conversation(scene, 'emil', 'harbour of emil', 'bridge of emil');
      await index(scene);
      expect(await found(scene, 'harbour')).toEqual(['harbour of anna', 'harbour of cleo', 'harbour of emil']);
      expect(await found(scene, 'bridge')).toHaveLength(3);
    });

    test('are not found either when they had not been indexed yet', async (scene) => {
      await conversation(scene, 'anna', 'harbour of anna', 'yes');
      await index(scene);
      const late = await conversation(scene, 'bert', 'harbour of bert', 'no');
      await conversation(scene, 'cleo', 'harbour of cleo', 'perhaps');
      await remove(scene, late);
      await index(scene);
      expect(await found(scene, 'harbour')).toEqual(['harbour of anna', 'harbour of cleo']);
    });

    test('leave numbers that are never given out again', async (scene) => {
      const numbers = async (): Promise<number[]> =>
        (await scene.raw('SELECT no FROM messages ORDER BY no')).map(({ no }) => Number(no));
      const first = await conversation(scene, 'anna', 'one', 'two');
      const highest = Math.max(...(await numbers()));
      await remove(scene, first);
      expect(await scene.raw("SELECT no FROM messages WHERE text <> '' OR data IS NOT NULL")).toEqual([]);
      await conversation(scene, 'bert', 'three', 'four');
      const fresh = await scene.raw("SELECT min(no) AS no FROM messages WHERE text <> ''");
      expect(Number(fresh[0]?.no)).toBeGreaterThan(highest);
      await index(scene);
      // What stood in for the newest row goes with the next deletion.
      const third = await conversation(scene, 'cleo', 'five', 'six');
      await remove(scene, third);
      expect((await numbers()).length).toBeLessThanOrEqual(3);
      expect(await found(scene, 'four')).toEqual(['four']);
      expect(await found(scene, 'two')).toEqual([]);
    });
  });

  describe('pruning', () => {
    test('removes ended sessions of a kind and an age, and no open one however old', async (scene) => {
      const old = await ended(scene, 'old', 'api');
      const chat = await ended(scene, 'chat', 'chat');
      const idle = await scene.start('idle', { kind: 'api' });
      scene.clock.advance(10 * DAY);
      const young = await ended(scene, 'young', 'api');
      scene.clock.advance(DAY);
      expect(await prunable(scene, { api: 5 * DAY, cron: DAY })).toEqual({ api: 1 });
      expect(await prune(scene, 'api', 5 * DAY)).toEqual([old]);
      expect(await prune(scene, 'api', 5 * DAY)).toEqual([]);
      for (const kept of [chat, idle.id, young]) expect(await scene.session(kept)).toMatchObject({ id: kept });
      expect(await scene.types(old)).toEqual(['session:start', 'session:end']);
      expect(await scene.store.read('stats', {})).toMatchObject({ total: 3, open: 1, ended: { api_close: 2 } });
      expect(await brokenPromises(scene)).toEqual([]);
    });

    test('goes by batches, the oldest first', async (scene) => {
      const ids: string[] = [];
      for (let n = 0; n < 5; n++) {
        ids.push(await ended(scene, `c${n}`, 'batch'));
        scene.clock.advance(HOUR);
      }
      expect(await prune(scene, 'batch', 0, 2)).toEqual(ids.slice(0, 2));
      expect(await prune(scene, 'batch', 0, 2)).toEqual(ids.slice(2, 4));
      expect(await prune(scene, 'batch', 0, 2)).toEqual(ids.slice(4));
    });

    test('is shared by several who do it at once', async (scene) => {
      const other = await scene.joinedBy('two');
      const ids: string[] = [];
      for (let n = 0; n < 20; n++) ids.push(await ended(scene, `c${n}`, 'batch'));
      const removed: string[] = [];
      for (let rounds = 0; removed.length < ids.length && rounds < 20; rounds++) {
        removed.push(...(await Promise.all([prune(scene, 'batch', 0, 5), prune(other, 'batch', 0, 5)])).flat());
      }
      expect(removed.sort()).toEqual(ids.sort());
    });

    test('spares what an existing session continues, and all that this one continues in turn', async (scene) => {
      const first = await conversation(scene, '42', 'one', 'two');
      const { session: second } = await scene.continue(first, 'resume', { conversation: scene.conversation('43') });
      await scene.end(first);
      const { session: third } = await scene.continue(second.id, 'branch');
      scene.clock.advance(DAY);
      expect(await prunable(scene, { chat: HOUR })).toEqual({});
      expect(await prune(scene, 'chat', HOUR)).toEqual([]);
      expect(await scene.store.read('lineageOf', { sessionId: third.id })).toEqual([first, second.id, third.id]);
      await scene.end(third.id);
      scene.clock.advance(DAY);
      expect(await prunable(scene, { chat: HOUR })).toEqual({ chat: 3 });
      expect(await prune(scene, 'chat', HOUR)).toEqual([third.id]);
      expect(await prune(scene, 'chat', HOUR)).toEqual([second.id]);
      expect(await prune(scene, 'chat', HOUR)).toEqual([first]);
    });

    test('does not mind a successor that begins afresh', async (scene) => {
      const first = await conversation(scene, '42', 'one', 'two');
      const { session: second } = await scene.reset('42');
      expect(second.parentId).toBe(first);
      scene.clock.advance(DAY);
      expect(await prune(scene, 'chat', HOUR)).toEqual([first]);
    });

    test('waits for replies that have not left', async (scene) => {
      const asked = await scene.ask('42', 'spin');
      await scene.finish(asked, {}, { deliveries: [reply('dlv-1')] });
      await scene.end(asked.session.id);
      scene.clock.advance(DAY);
      expect(await prunable(scene, { chat: HOUR })).toEqual({});
      expect(await prune(scene, 'chat', HOUR)).toEqual([]);
      const [due] = await scene.claimReplies();
      if (due === undefined) throw new TypeError('nothing is to be sent');
      expect(due.deliveries).toMatchObject([{ id: 'dlv-1' }]);
      expect(await prune(scene, 'chat', HOUR)).toEqual([]);
      await scene.settleReply(due, { state: 'sent' });
      expect(await prune(scene, 'chat', HOUR)).toEqual([asked.session.id]);
    });

    test('waits until a memory was told of the end, with all that was said', async (scene) => {
      for (const name of ['memory:diary', 'memory-review', 'hook:slow']) await scene.subscribe(name, ['session:end']);
      const told = await conversation(scene, '42', 'one', 'two');
      await scene.end(told);
      for (const name of ['memory:diary', 'memory-review']) await scene.drain(name);
      const untold = await conversation(scene, '42', 'three', 'four');
      await scene.end(untold);
      scene.clock.advance(DAY);
      expect(await prunable(scene, { chat: HOUR })).toEqual({ chat: 1 });
      expect(await prune(scene, 'chat', HOUR)).toEqual([told]);
      await scene.drain('memory:diary');
      expect(await prune(scene, 'chat', HOUR)).toEqual([]);
      await scene.drain('memory-review');
      expect(await prune(scene, 'chat', HOUR)).toEqual([untold]);
      const deleted = await conversation(scene, '42', 'five', 'six');
      expect(await remove(scene, deleted)).toMatchObject({ ended: true });
    });

    test('needs a live lease', async (scene) => {
      const id = await ended(scene, 'old', 'api');
      const context = { instanceId: 'nobody', commandId: 'cmd-x' };
      const rule = { kind: 'api', olderThanMs: 0 } as const;
      expect(await codeOf(scene.store.write('pruneSessions', { context, rule, limit: 1 }))).toBe('lease_lost');
      expect(await codeOf(scene.store.write('deleteSession', { context, sessionId: id, trigger: 'cli' }))).toBe(
        'lease_lost',
      );
    });
  });

  test('an open session without a row is a broken promise', async (scene) => {
    const lost = await scene.start('42');
    await scene.raw('DELETE FROM sessions WHERE id = ?', lost.id);
    expect(await brokenPromises(scene)).toEqual([['removed_has_ended', [lost.id]]]);
  });
}

function remove(scene: Scene, sessionId: string) {
  return scene.store.write('deleteSession', { context: scene.context(), sessionId, trigger: 'cli' });
}

async function prune(scene: Scene, kind: SessionKind, olderThanMs: number, limit = 100): Promise<string[]> {
  const rule = { kind, olderThanMs };
  return (await scene.store.write('pruneSessions', { context: scene.context(), rule, limit })).removed;
}

function prunable(scene: Scene, ages: Partial<Record<SessionKind, number>>) {
  const rules = Object.entries(ages).map(([kind, olderThanMs]) => ({ kind: kind as SessionKind, olderThanMs }));
  return scene.store.read('prunableSessions', { rules });
}

/** One turn that is over, with what was said and a reply that was sent. */
async function conversation(scene: Scene, chat: string, question: string, answer: string): Promise<string> {
  const asked = await scene.ask(chat, question);
  const turnId = asked.turn.id;
  const delivery = reply(scene.id('dlv'));
  await scene.finish(
    asked,
    {},
    {
      messages: [
        { role: 'user', text: question, turnId },
        { role: 'assistant', text: answer, turnId, data: { kept: true } },
      ],
      deliveries: [delivery],
    },
  );
  for (const lane of await scene.claimReplies()) await scene.settleReply(lane, { state: 'sent' });
  return asked.session.id;
}

async function ended(scene: Scene, chat: string, kind: SessionKind): Promise<string> {
  const { id } = await scene.start(chat, { kind });
  await scene.end(id, 'api_close');
  return id;
}

function reply(id: string) {
  return { id, platform: 'telegram', target: { chat: '42' }, text: `text of ${id}` };
}

async function index(scene: Scene): Promise<void> {
  while (await scene.store.write('indexMessages', { limit: 2 })) {
    // In pieces, as a gateway does it.
  }
}

async function found(scene: Scene, text: string): Promise<string[]> {
  const messages = await scene.store.read('searchMessages', { text, limit: 100 });
  return messages.map((message) => message.text).sort();
}

async function rowsOf(scene: Scene, sessionId: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const table of ['turns', 'messages', 'deliveries', 'sessions']) {
    const column = table === 'sessions' ? 'id' : 'session_id';
    const [row] = await scene.raw(`SELECT count(*) AS n FROM ${table} WHERE ${column} = ?`, sessionId);
    counts[table] = Number(row?.n);
  }
  return counts;
}

async function brokenPromises(scene: Scene): Promise<(readonly [string, readonly string[]])[]> {
  const reports = await scene.store.read('checkPromises', { sample: 10 });
  return reports.filter(({ broken }) => broken > 0).map(({ promise, sessionIds }) => [promise, sessionIds] as const);
}

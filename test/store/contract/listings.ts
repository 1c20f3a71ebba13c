import { describe, expect } from 'vitest';
import type { SessionFilter } from '../../../src/store/transactions/reading.ts';
import { codeOf } from './code-of.ts';
import { MINUTE, type Open, type Scene, sceneTests } from './scene.ts';

/** Lists, counts and finds. */
export function listingsContract(open: Open): void {
  const test = sceneTests(open);

  describe('a listing of sessions', () => {
    test('comes newest start first, page by page, and stays in place when new ones start', async (scene) => {
      const ids: string[] = [];
      for (let i = 0; i < 7; i++) ids.unshift((await started(scene, `1${i}`)).id);
      const first = await list(scene, { limit: 3 });
      expect(first.ids).toEqual(ids.slice(0, 3));
      await started(scene, '20');
      const second = await list(scene, { limit: 3, cursor: first.next });
      expect(second.ids).toEqual(ids.slice(3, 6));
      await started(scene, '21');
      const third = await list(scene, { limit: 3, cursor: second.next });
      expect(third).toEqual({ ids: ids.slice(6), next: null });
    });

    test('orders sessions of the same millisecond by their ids', async (scene) => {
      const ids: string[] = [];
      for (const id of ['ses-B', 'ses-a', 'ses-C', 'ses-b', 'ses-A']) {
        ids.push((await scene.start(id, {}, { sessionId: id })).id);
      }
      const pages: string[] = [];
      for (let cursor: string | null = null, more = true; more; ) {
        const page: { ids: string[]; next: string | null } = await list(scene, { limit: 2, cursor });
        pages.push(...page.ids);
        cursor = page.next;
        more = cursor !== null;
      }
      expect(pages).toEqual(['ses-b', 'ses-a', 'ses-C', 'ses-B', 'ses-A']);
    });

    test('filters by everything it knows', async (scene) => {
      const chat = await started(scene, '1', { userId: 'ada' });
      const web = await started(scene, '2', { platform: 'web', kind: 'api', userId: 'bob' });
      const batch = await started(scene, '3', { kind: 'batch', attached: true, userId: null });
      const since = scene.clock.now();
      await scene.end(batch.id, 'batch_complete');
      const closed = await started(scene, '4');
      await scene.end(closed.id, 'admin_close');
      await scene.command(web.id, { name: 'suspend', reason: 'operator' });
      const ids = async (filter: Partial<SessionFilter>) => (await list(scene, filter)).ids;
      expect(await ids({})).toEqual([closed.id, batch.id, web.id, chat.id]);
      expect(await ids({ states: ['ended'] })).toEqual([closed.id, batch.id]);
      expect(await ids({ states: ['open', 'suspended'] })).toEqual([web.id, chat.id]);
      expect(await ids({ kinds: ['api', 'batch'] })).toEqual([batch.id, web.id]);
      expect(await ids({ platforms: ['web'] })).toEqual([web.id]);
      expect(await ids({ reasons: ['batch_complete', 'deleted'] })).toEqual([batch.id]);
      expect(await ids({ key: chat.key })).toEqual([chat.id]);
      expect(await ids({ user: 'ada' })).toEqual([closed.id, chat.id]);
      expect(await ids({ since })).toEqual([closed.id, batch.id]);
      expect(await ids({ since: since + 1 })).toEqual([closed.id]);
      expect(await ids({ kinds: ['chat'], states: ['open'], user: 'bob' })).toEqual([]);
    });

    test('finds parts of titles and ids, in any case, and takes wildcards for text', async (scene) => {
      const plain = await started(scene, '1', {}, { sessionId: 'ses-XYZ', title: 'Weaving by Night' });
      const odd = await started(scene, '2', {}, { title: '100 % wool_and!silk' });
      const umlaut = await started(scene, '3', {}, { title: 'Ärger mit Fäden' });
      const untitled = await started(scene, '4');
      const ids = async (text: string) => (await list(scene, { text })).ids;
      expect(await ids('weaving')).toEqual([plain.id]);
      expect(await ids('BY NIGHT')).toEqual([plain.id]);
      expect(await ids('XYZ')).toEqual([plain.id]);
      expect(await ids('xyz')).toEqual([plain.id]);
      expect(await ids('%')).toEqual([odd.id]);
      expect(await ids('_')).toEqual([odd.id]);
      expect(await ids('!')).toEqual([odd.id]);
      expect(await ids('Ärger')).toEqual([umlaut.id]);
      expect(await ids('FÄDEN')).toEqual([]);
      expect(await ids('fäden')).toEqual([umlaut.id]);
      expect(await ids(untitled.id)).toEqual([untitled.id]);
    });

    test('gives at least one and at most 500 a page', async (scene) => {
      for (const chat of ['1', '2']) await started(scene, chat);
      expect((await list(scene, { limit: 0 })).ids).toHaveLength(1);
      expect((await list(scene, { limit: -5 })).ids).toHaveLength(1);
      expect((await list(scene, { limit: 1_000_000 })).ids).toHaveLength(2);
    });

    test('refuses a cursor that is none of its own', async (scene) => {
      for (const cursor of ['x', '', '12', '_', "1' OR 1=1"]) {
        expect(await codeOf(list(scene, { cursor }))).toBe('bad_input');
      }
    });
  });

  describe('a session', () => {
    test('is found by its id or any beginning that is its alone', async (scene) => {
      for (const id of ['ses-1', 'ses-12', 'ses-2']) await scene.start(id, {}, { sessionId: id });
      const find = async (idOrPrefix: string) => (await scene.store.read('findSession', { idOrPrefix })).id;
      expect(await find('ses-1')).toBe('ses-1');
      expect(await find('ses-12')).toBe('ses-12');
      expect(await find('ses-2')).toBe('ses-2');
      expect(await codeOf(find('ses-'))).toBe('session_ambiguous');
      for (const none of ['', 'ses-3', 'es-1', '%', 'ses_1'])
        expect(await codeOf(find(none))).toBe('session_not_found');
      expect(await scene.store.read('getSession', { sessionId: 'ses' })).toBeNull();
    });
  });

  describe('the statistics', () => {
    test('count what is open, owned or not, and every end by its reason', async (scene) => {
      const stats = () => scene.store.read('stats', {});
      expect(await stats()).toEqual({ total: 0, open: 0, openOwned: 0, openUnowned: 0, ended: {} });
      const dying = await scene.joinedBy('dying', MINUTE);
      await scene.start('1');
      await scene.ask('2');
      await scene.start('3', { kind: 'cli', attached: true });
      await dying.start('4', { kind: 'batch', attached: true });
      await dying.ask('5');
      for (const chat of ['6', '7']) await scene.end((await scene.start(chat)).id, 'admin_close');
      await scene.end((await scene.start('8')).id, 'deleted');
      const ended = { admin_close: 2, deleted: 1 };
      expect(await stats()).toEqual({ total: 8, open: 5, openOwned: 5, openUnowned: 0, ended });
      scene.clock.advance(MINUTE);
      expect(await stats()).toEqual({ total: 8, open: 5, openOwned: 3, openUnowned: 2, ended });
      await scene.reap();
      expect(await stats()).toMatchObject({ open: 4, openUnowned: 0, ended: { ...ended, reaped: 1 } });
    });
  });

  describe("people's turns", () => {
    test('are counted as they are answered', async (scene) => {
      const first = await scene.ask('42', 'one');
      const sessionId = first.session.id;
      const count = (upTo: string | null) => scene.store.read('answeredTurns', { sessionId, upTo });
      expect(await count(null)).toBe(0);
      await scene.finish(first);
      const failed = await scene.ask('42', 'two');
      await scene.finish(failed, { outcome: 'failed' });
      const unasked = await scene.ask('42', 'three', { by: 'system' });
      await scene.finish(unasked);
      scene.clock.advance(1);
      const last = await scene.ask('42', 'four');
      const absorbed = await scene.say('42', 'five');
      await scene.finish({ ...last, turn: absorbed.turn }, {}, { epoch: null });
      await scene.finish(last);
      expect(await count(null)).toBe(2);
      const each = [first, failed, unasked, absorbed, last].map(({ turn }) => count(turn.id));
      expect(await Promise.all(each)).toEqual([1, 0, 0, 0, 2]);
    });
  });

  describe('the activity', () => {
    const activity = (scene: Scene, limit = 50) => scene.store.read('activity', { limit });

    test('shows what has not ended, the last active first, with the turns under way', async (scene) => {
      expect(await activity(scene)).toEqual({ seq: 0, sessions: [], turns: {}, open: 0 });
      const idle = await started(scene, '1');
      const ended = await started(scene, '2');
      await scene.end(ended.id, 'admin_close');
      scene.clock.advance(MINUTE);
      const { session: busy } = await scene.say('3', 'hello', { begin: true });
      const since = scene.clock.now();
      scene.clock.advance(MINUTE);
      await scene.say('3', 'and another thing');
      const snapshot = await activity(scene);
      expect(snapshot.sessions.map(({ id }) => id)).toEqual([busy.id, idle.id]);
      expect(snapshot.sessions[0]).toEqual(await scene.session(busy.id));
      expect(snapshot.turns).toEqual({
        [busy.id]: { queued: 1, cut: 0, runningSince: since, beatAt: (await scene.session(busy.id)).lastHeartbeatAt },
      });
      expect(snapshot.seq).toBe(await scene.store.read('lastSeq', {}));
      expect(snapshot.open).toBe(2);
      const one = await activity(scene, 1);
      expect([one.sessions.map(({ id }) => id), one.open]).toEqual([[busy.id], 2]);
    });

    test('shows turns that were cut', async (scene) => {
      const { session } = await scene.say('1', 'hello', { begin: true });
      await scene.command(session.id, { name: 'interrupt', reason: 'restart', epoch: session.epoch });
      const { turns } = await activity(scene);
      expect(turns).toMatchObject({ [session.id]: { queued: 0, cut: 1, runningSince: null } });
    });
  });

  describe('the pulse', () => {
    const pulse = (scene: Scene, after: number, limit = 50) => scene.store.read('pulse', { after, limit, check: true });

    test('says what was touched since a number, what ended and why, and what is under way', async (scene) => {
      const idle = await started(scene, '1');
      const before = await scene.store.read('lastSeq', {});
      expect(await pulse(scene, before)).toMatchObject({ seq: before, touched: [], ended: [], turns: {} });
      const { session: busy } = await scene.say('2', 'hello', { begin: true });
      await scene.end(idle.id, 'admin_close');
      const now = await pulse(scene, before);
      expect([...(now.touched ?? [])].sort()).toEqual([busy.id, idle.id].sort());
      const end = {
        seq: now.seq,
        id: idle.id,
        key: idle.key,
        reason: 'admin_close',
        cause: null,
        at: scene.clock.now(),
      };
      expect(now.ended).toEqual([end]);
      expect(Object.keys(now.turns)).toEqual([busy.id]);
      expect(now.seq).toBe(await scene.store.read('lastSeq', {}));
      expect(now.open).toEqual({ open: 1, versions: (await scene.session(busy.id)).version });
      expect((await pulse(scene, before, 1)).touched).toBeNull();
      const both = await scene.store.read('sessionsById', { ids: [idle.id, busy.id, 'ses_none'] });
      expect(both.map(({ id }) => id).sort()).toEqual([idle.id, busy.id].sort());
    });
  });

  describe('the timeline', () => {
    test('counts starts and ends by reason in each step', async (scene) => {
      const from = scene.clock.now();
      const first = await scene.start('1');
      scene.clock.advance(MINUTE);
      await scene.start('2');
      const third = await scene.start('3');
      scene.clock.advance(MINUTE);
      await scene.end(first.id, 'admin_close');
      await scene.end(third.id, 'api_close');
      const span = { from, to: from + 3 * MINUTE, stepMs: MINUTE };
      expect(await scene.store.read('timeline', span)).toEqual({
        started: [1, 2, 0],
        ended: { admin_close: [0, 0, 1], api_close: [0, 0, 1] },
      });
      const later = { from: from + MINUTE, to: from + 2 * MINUTE, stepMs: MINUTE };
      expect(await scene.store.read('timeline', later)).toEqual({ started: [2], ended: {} });
    });
  });

  describe('the log', () => {
    test('is followed by numbers: every event once, in order', async (scene) => {
      for (let i = 0; i < 5; i++) await scene.start(`1${i}`);
      const seen: string[] = [];
      let after = 0;
      for (let page = 0; page < 4; page++) {
        const { events, next } = await scene.store.read('listEvents', { after, limit: 2, types: [], sessionId: null });
        for (const { seq, event } of events) {
          expect(seq).toBeGreaterThan(after);
          after = seq;
          seen.push(event.session_key ?? '');
        }
        expect(next).toBe(after);
        if (page === 2) await scene.start('16');
      }
      expect(seen.map((key) => key.slice(-2))).toEqual(['10', '11', '12', '13', '14', '16']);
      expect(await scene.store.read('lastSeq', {})).toBe(after);
    });

    test('is filtered by type, by prefix and by session', async (scene) => {
      const { session } = await scene.ask('1');
      await scene.reset('1', { command: 'new', args: '' });
      const types = async (...wanted: string[]) => (await scene.events(null, wanted)).map(({ type }) => type);
      expect(await types('session:end')).toEqual(['session:end']);
      expect(await types('agent:*', 'session:reset')).toEqual(['agent:start', 'agent:end', 'session:reset']);
      expect(await types('command:*')).toEqual(['command:new']);
      expect(await types('command:_ew')).toEqual([]);
      expect(await types('*')).toHaveLength(7);
      const ends = await scene.events(session.id, ['session:*']);
      expect(ends.map(({ type }) => type)).toEqual(['session:start', 'session:end']);
    });

    test('gives the newest events of a session, oldest first', async (scene) => {
      const { session } = await scene.ask('1');
      await scene.start('2');
      await scene.reset('1', { command: 'new', args: '' });
      const last = await scene.store.read('lastEvents', { sessionId: session.id, limit: 2 });
      expect(last.map(({ event }) => event.type)).toEqual(['agent:end', 'session:end']);
      const all = await scene.store.read('lastEvents', { sessionId: session.id, limit: 100 });
      expect(all.map(({ event }) => event)).toEqual(await scene.events(session.id));
      expect(await scene.store.read('lastEvents', { sessionId: 'ses-unknown', limit: 5 })).toEqual([]);
    });

    test('shows a write to every later read, also through another store', async (scene) => {
      const other = await scene.joinedBy('two');
      for (let i = 0; i < 20; i++) {
        const { id } = await scene.start(`${i}`);
        expect((await other.events(id)).map(({ type }) => type)).toEqual(['session:start']);
        expect((await other.session(id)).state).toBe('open');
        await other.end(id);
        expect(await scene.types(id)).toEqual(['session:start', 'session:end']);
      }
    });

    test('is there after the store was closed and opened again', async (scene) => {
      const { id } = await scene.start('1');
      const before = await scene.events();
      const seq = await scene.store.read('lastSeq', {});
      await scene.reopen();
      expect(await scene.events()).toEqual(before);
      await scene.end(id);
      expect(await scene.store.read('lastSeq', {})).toBeGreaterThan(seq);
    });
  });

  describe('a row that somebody else has damaged', () => {
    test('is passed over by those who read the log and those who follow it', async (scene) => {
      await scene.subscribe('listener');
      const { id } = await scene.start('1');
      await scene.raw("UPDATE events SET body = '{' WHERE session_id = ?", id);
      expect(await scene.events()).toEqual([]);
      await scene.end(id);
      const other = await scene.start('2');
      const lanes = await scene.claim('listener');
      expect(lanes.map(({ unreadable }) => unreadable.length)).toEqual([1, 0]);
      const seen = lanes.flatMap(({ events }) => events.map(({ event }) => [event.session_id, event.type]));
      expect(seen).toEqual([
        [id, 'session:end'],
        [other.id, 'session:start'],
      ]);
      expect((await scene.session(id)).state).toBe('ended');
    });
  });

  describe('a closed store', () => {
    test('refuses to be used', async (scene) => {
      const other = await scene.joinedBy('two');
      await other.store.close();
      expect(await codeOf(other.say('1', 'hello'))).toBe('store_closed');
      expect(await codeOf(other.store.read('stats', {}))).toBe('store_closed');
      await other.store.close();
    });
  });
}

async function started(
  scene: Scene,
  chat: string,
  facts: Parameters<Scene['start']>[1] = {},
  rest: Parameters<Scene['start']>[2] = {},
) {
  scene.clock.advance(MINUTE);
  return scene.start(chat, facts, rest);
}

async function list(scene: Scene, filter: Partial<SessionFilter>): Promise<{ ids: string[]; next: string | null }> {
  const none = { key: null, user: null, text: null, since: null, limit: 50, cursor: null };
  const every = { states: [], kinds: [], platforms: [], reasons: [] };
  const { sessions, next } = await scene.store.read('listSessions', { ...none, ...every, ...filter });
  return { ids: sessions.map(({ id }) => id), next };
}

import { describe, expect } from 'vitest';
import type { DueJob, Job, JobTarget, StartedRun } from '../../../src/cron/job-store.ts';
import type { Message } from '../../../src/store/transactions/messages.ts';
import { codeOf } from './code-of.ts';
import { DAY, HOUR, MINUTE, type Open, type Scene, SECOND, sceneTests } from './scene.ts';

/** What is done at its time, and what conversations are told of it. */
export function jobsContract(open: Open): void {
  const test = sceneTests(open);

  describe('a job', () => {
    test('is found by its name, its id, and a beginning of it', async (scene) => {
      const job = await add(scene, 'tea', { name: 'kettle' });
      await add(scene, 'sweep');
      for (const idOrName of ['kettle', job.id, job.id.slice(0, 7)]) {
        expect(await find(scene, idOrName)).toMatchObject({ id: job.id, prompt: 'do tea', lastRun: null });
      }
      expect(await codeOf(find(scene, 'job-'))).toBe('job_ambiguous');
      await expect(find(scene, 'kettel')).rejects.toMatchObject({
        ...{ code: 'job_not_found', message: expect.stringContaining('"kettle"') },
      });
      expect(await codeOf(find(scene, ''))).toBe('job_not_found');
    });

    test('belongs to the conversation it was made in; an operator sees all', async (scene) => {
      await add(scene, 'tea', { madeIn: 'agent:main:loom:dm:1', name: 'mine' });
      await add(scene, 'sweep', { madeIn: 'agent:main:loom:dm:2', name: 'mine' });
      expect((await list(scene, 'agent:main:loom:dm:1')).map(({ id }) => id)).toEqual(['job-tea']);
      expect(await list(scene)).toHaveLength(2);
      expect(await codeOf(find(scene, 'job-tea', 'agent:main:loom:dm:2'))).toBe('job_not_found');
      expect(await codeOf(find(scene, 'mine'))).toBe('job_ambiguous');
      expect(await codeOf(add(scene, 'more', { madeIn: 'agent:main:loom:dm:2', name: 'mine' }))).toBe('bad_input');
    });

    test('is paused, resumed and removed', async (scene) => {
      const { id } = await add(scene, 'tea');
      expect(await schedule(scene, id, null, true)).toMatchObject({ nextAt: null, pausedAt: scene.clock.now() });
      expect(await due(scene, DAY)).toEqual([]);
      const at = scene.clock.now() + HOUR;
      expect(await schedule(scene, id, at, false)).toMatchObject({ nextAt: at, pausedAt: null });
      expect(await find(scene, id)).toMatchObject({ nextAt: at });
      expect(await scene.store.write('removeJob', { id })).toBe(true);
      expect(await scene.store.write('removeJob', { id })).toBe(false);
      expect(await codeOf(schedule(scene, id, at, false))).toBe('job_not_found');
      expect(await scene.raw("SELECT * FROM lanes WHERE queue = 'ticks'")).toEqual([]);
    });

    test('a conversation has a hundred at most', async (scene) => {
      const madeIn = 'agent:main:loom:dm:1';
      for (let i = 0; i < 100; i++) await add(scene, `n${i}`, { madeIn });
      expect(await codeOf(add(scene, 'one-more', { madeIn }))).toBe('bad_input');
    });
  });

  describe('a due tick', () => {
    test('is claimed once when its time has come, and starts a session of its own', async (scene) => {
      const job = await add(scene, 'tea');
      expect(await due(scene, MINUTE - 1)).toEqual([]);
      const tick = await dueTick(scene, 1);
      expect(tick).toMatchObject({ key: job.id, job: { id: job.id }, tickAt: scene.clock.now(), attempts: 0 });
      expect(await due(scene, 0)).toEqual([]);
      const started = await start(scene, tick);
      expect(started).toMatchObject({
        type: 'run',
        received: { started: true, begun: false, session: { attached: true, owner: 'one', title: 'a run' } },
      });
      expect(await start(scene, tick)).toBeNull();
      expect(await find(scene, job.id)).toMatchObject({
        nextAt: tick.tickAt + HOUR,
        lastRun: { sessionId: sessionOf(started), tickAt: tick.tickAt, state: 'open', endReason: null },
      });
    });

    test('that was changed after it was claimed is not started', async (scene) => {
      const job = await add(scene, 'tea');
      const tick = await dueTick(scene, MINUTE);
      await schedule(scene, job.id, null, true);
      expect(await start(scene, tick)).toBeNull();
      await schedule(scene, job.id, scene.clock.now(), false);
      expect(await start(scene, tick)).toBeNull();
      expect(await list(scene)).toMatchObject([{ lastRun: null }]);
      expect(sessionOf(await start(scene, await dueTick(scene, 0)))).toMatch(/^ses/);
    });

    test('is claimed by one of many', async (scene) => {
      const others = await Promise.all(Array.from({ length: 8 }, (_, i) => scene.joinedBy(`other-${i}`)));
      for (const name of ['tea', 'sweep', 'post']) await add(scene, name);
      scene.clock.advance(MINUTE);
      const claims = await Promise.all([scene, ...others].map(async (each) => ({ each, ticks: await due(each, 0) })));
      const runs = claims.flatMap(({ each, ticks }) => ticks.map((tick) => start(each, tick)));
      expect(new Set((await Promise.all(runs)).map(sessionOf)).size).toBe(3);
    });

    test('started again by the same call, whose answer was lost, is the same run', async (scene) => {
      await add(scene, 'tea');
      const tick = await dueTick(scene, MINUTE);
      const ids = { turnId: 'trn-x', newSessionId: 'ses-x' };
      expect(sessionOf(await start(scene, tick, ids))).toBe('ses-x');
      expect(sessionOf(await start(scene, tick, ids))).toBe('ses-x');
      expect((await scene.raw('SELECT id FROM turns WHERE session_id = ?', 'ses-x')).length).toBe(1);
    });

    test('that could not be started is due again later, as the same tick', async (scene) => {
      await add(scene, 'tea');
      const tick = await dueTick(scene, MINUTE);
      const context = scene.context();
      await scene.store.write('delayTick', { context, lane: tick, afterMs: 5 * SECOND, error: 'no' });
      expect(await due(scene, 5 * SECOND - 1)).toEqual([]);
      expect(await dueTick(scene, 1)).toMatchObject({ tickAt: tick.tickAt, attempts: 1 });
    });

    test('is left out while the last run is under way', async (scene) => {
      await add(scene, 'tea');
      const first = sessionOf(await start(scene, await dueTick(scene, MINUTE)));
      expect(await start(scene, await dueTick(scene, HOUR))).toEqual({ type: 'busy', sessionId: first });
      expect(await due(scene, 0)).toEqual([]);
      await scene.end(first, 'cron_complete', { trigger: 'process' });
      expect(sessionOf(await start(scene, await dueTick(scene, HOUR)))).not.toBe(first);
    });

    test('whose owner dies before its run is due again, and after it is not run again', async (scene) => {
      const mortal = await scene.joinedBy('mortal', MINUTE);
      const second = await scene.joinedBy('second', 3 * MINUTE);
      const job = await add(scene, 'tea', {}, 1);
      await dueTick(mortal, 1);
      scene.clock.advance(2 * MINUTE);
      await scene.reap();
      const tick = await dueTick(second, 0);
      const sessionId = sessionOf(await start(second, tick, {}, null));
      scene.clock.advance(2 * MINUTE);
      await scene.reap();
      expect(await find(scene, job.id)).toMatchObject({ nextAt: null, lastRun: { sessionId, endReason: 'reaped' } });
      expect(await due(scene, DAY)).toEqual([]);
    });

    test('the database itself refuses a second run of it', async (scene) => {
      const job = await add(scene, 'tea');
      await start(scene, await dueTick(scene, MINUTE));
      await expect(
        scene.raw('INSERT INTO job_runs (session_id, job_id, tick_at) VALUES (?, ?, ?)', 'x', job.id, job.nextAt ?? 0),
      ).rejects.toThrow();
    });

    test('is kept as long as its session, and so is a job for one time', async (scene) => {
      const [once, daily] = [await add(scene, 'once'), await add(scene, 'daily')];
      for (const tick of await due(scene, MINUTE)) {
        const next = tick.key === once.id ? null : scene.clock.now() + DAY;
        await scene.end(sessionOf(await start(scene, tick, {}, next)), 'cron_complete', { trigger: 'process' });
      }
      expect(await list(scene)).toHaveLength(2);
      scene.clock.advance(HOUR);
      const rule = { kind: 'cron', olderThanMs: MINUTE } as const;
      await scene.store.write('pruneSessions', { context: scene.context(), rule, limit: 10 });
      expect(await list(scene)).toMatchObject([{ id: daily.id, lastRun: null }]);
      expect(await scene.raw('SELECT * FROM job_runs')).toEqual([]);
    });
  });

  describe('what a conversation is told from outside', () => {
    test('is sent, and in the transcript of its open session, once', async (scene) => {
      const { session } = await scene.ask('42');
      const from = await run(scene);
      expect(await tell(scene, from, 'news')).toBe(true);
      expect(await tell(scene, from, 'news')).toBe(false);
      expect(await notes(scene, session.id)).toEqual(['note of news']);
      expect(await replies(scene)).toMatchObject([{ id: 'news', sessionId: from, text: 'news' }]);
    });

    test('is known to the next session when none is open', async (scene) => {
      const from = await run(scene);
      await tell(scene, from, 'one');
      await tell(scene, from, 'two');
      const { session } = await scene.ask('42');
      expect(session.messageCount).toBe(2);
      expect(await notes(scene, session.id)).toEqual(['note of one', 'note of two']);
      await scene.end(session.id);
      expect((await scene.ask('42')).session.messageCount).toBe(0);
    });

    test('is known to the next session too when nobody wrote between', async (scene) => {
      const from = await run(scene);
      const first = await scene.ask('42');
      await scene.finish(first);
      scene.clock.advance(MINUTE);
      await tell(scene, from, 'answered');
      scene.clock.advance(MINUTE);
      await scene.finish(await scene.ask('42'));
      scene.clock.advance(MINUTE);
      await tell(scene, from, 'unanswered');
      await scene.end(first.session.id, 'idle_expiry', { trigger: 'watcher' });
      const next = await scene.ask('42');
      expect(await notes(scene, next.session.id)).toEqual(['note of unanswered']);
    });

    test('is kept until then, the newest of it, and never for what is attached to a process', async (scene) => {
      const from = await run(scene);
      for (let i = 0; i < 25; i++) await tell(scene, from, `news ${i}`);
      const { session } = await scene.ask('42');
      const known = await notes(scene, session.id);
      expect([known.length, known[0], known.at(-1)]).toEqual([20, 'note of news 5', 'note of news 24']);
      expect(await scene.raw('SELECT * FROM told')).toEqual([]);
      await scene.end(session.id);
      await tell(scene, from, 'more');
      const batch = await scene.start('42', { kind: 'batch', attached: true });
      expect(await notes(scene, batch.id)).toEqual([]);
      expect(await scene.raw('SELECT text FROM told')).toEqual([{ text: 'note of more' }]);
    });

    test('may be for nobody in particular, or only to be looked at', async (scene) => {
      const from = await run(scene);
      await tell(scene, from, 'sent', { key: null });
      await tell(scene, from, 'shown', { deliveries: [] });
      expect(await replies(scene)).toMatchObject([{ id: 'sent' }]);
      expect(await notes(scene, (await scene.ask('42')).session.id)).toEqual(['note of shown']);
    });
  });
}

function add(scene: Scene, id: string, more: Partial<Job> = {}, inMs = MINUTE): Promise<Job> {
  const target: JobTarget = { to: 'home' };
  return scene.store.write('addJob', {
    ...{ id: `job-${id}`, name: null, schedule: 'every 1h', timezone: 'UTC', prompt: `do ${id}`, target },
    ...{ madeIn: null, madeBy: null, ...more, nextAt: scene.clock.now() + inMs },
  });
}

function find(scene: Scene, idOrName: string, madeIn: string | null = null): Promise<Job> {
  return scene.store.read('findJob', { idOrName, madeIn });
}

function list(scene: Scene, madeIn: string | null = null): Promise<Job[]> {
  return scene.store.read('listJobs', { madeIn });
}

function schedule(scene: Scene, id: string, nextAt: number | null, paused: boolean): Promise<Job> {
  return scene.store.write('scheduleJob', { id, nextAt, paused });
}

/** What is due after some time, claimed. */
async function due(scene: Scene, ms: number): Promise<DueJob[]> {
  if (ms > 0) scene.clock.advance(ms);
  const { lanes } = await scene.store.write('claimTicks', scene.claimOf('ticks'));
  return lanes;
}

async function dueTick(scene: Scene, ms: number): Promise<DueJob> {
  const ticks = await due(scene, ms);
  if (ticks.length !== 1 || ticks[0] === undefined) throw new Error(`${ticks.length} ticks are due, not 1`);
  return ticks[0];
}

function start(
  scene: Scene,
  { job, tickAt, token }: DueJob,
  ids: { turnId?: string; newSessionId?: string } = {},
  nextAt: number | null = scene.clock.now() + HOUR,
): Promise<StartedRun | null> {
  const key = `agent:main:cron:dm:${job.id}`;
  const conversation = { key, kind: 'cron', platform: 'cron', userId: null, origin: null, attached: true } as const;
  const fresh = { turnId: scene.id(`trn-${scene.instance}`), newSessionId: scene.id(`ses-${scene.instance}`) };
  return scene.store.write('startRun', {
    ...{ context: scene.context(), conversation, text: job.prompt, title: 'a run', ...fresh, ...ids },
    ...{ jobId: job.id, token, tickAt, nextAt },
  });
}

function sessionOf(started: StartedRun | null): string {
  if (started?.type !== 'run') throw new TypeError('nothing was started');
  return started.received.session.id;
}

/** The session of a run that has something to say. */
async function run(scene: Scene): Promise<string> {
  return (await scene.start('run', { kind: 'cron', platform: 'cron', attached: true })).id;
}

function tell(
  scene: Scene,
  sessionId: string,
  text: string,
  more: { key?: null; deliveries?: [] } = {},
): Promise<boolean> {
  const deliveries = [{ id: text, platform: 'telegram', target: { chat: '42' }, text }];
  const key = 'agent:main:telegram:dm:42';
  return scene.store.write('addExternalNote', {
    ...{ context: scene.context(), sessionId, id: text, deliveries, key, note: `note of ${text}`, ...more },
  });
}

async function replies(scene: Scene) {
  return (await scene.claimReplies()).flatMap(({ deliveries }) => deliveries);
}

async function notes(scene: Scene, sessionId: string): Promise<string[]> {
  const rows: Message[] = await scene.store.read('listMessages', { sessionId, after: 0, limit: 100 });
  return rows.filter(({ role }) => role === 'note').map(({ text }) => text);
}

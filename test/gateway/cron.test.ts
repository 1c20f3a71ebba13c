import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { renderPrompt } from '../../src/agent/prompt.ts';
import { userRow } from '../../src/agent/transcript.ts';
import type { Job } from '../../src/cron/job-store.ts';
import { schedulePort } from '../../src/cron/schedule-port.ts';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import type { Session } from '../../src/lifecycle/session.ts';
import { share } from '../support/share.ts';
import { Scene } from './scene.ts';

/** Each brings fifty runs. */
const HOURS = share(4, 20);
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open({ gateway: { drain_timeout: '100ms' }, sessions: { reset: { timezone: 'UTC' } } });
});

afterEach(() => scene.close());

/** Makes a job in a chat, and returns it. */
async function schedule(chat: string, words: string): Promise<Job> {
  expect(await scene.ask(chat, `/cron add ${words}`)).toMatch(/^Scheduled: job_/);
  const jobs = await scene.gateway.cron.jobs.list(scene.conversation(chat).key);
  const job = jobs.toSorted((a, b) => a.createdAt - b.createdAt).at(-1);
  if (job === undefined) throw new TypeError('no job was made');
  return job;
}

/** Time goes by, and the gateway looks at its jobs. */
async function pass(ms: number): Promise<void> {
  scene.later(ms);
  await scene.startDueJobs();
}

/** Time goes by while the gateway takes no jobs. */
async function passWithoutJobs(ms: number): Promise<void> {
  scene.later(ms);
  expect(await scene.gateway.cron.startDue()).toBe(false);
}

async function runs(): Promise<Session[]> {
  const { sessions } = await scene.store.read('listSessions', {
    ...{ states: [], kinds: ['cron'], platforms: [], reasons: [], key: null, user: null, text: null, since: null },
    ...{ limit: 500, cursor: null },
  });
  return sessions.toReversed();
}

async function ended(count: number): Promise<Session[]> {
  await scene.until(`${count} runs are over`, async () => {
    return (await runs()).filter(({ endedAt }) => endedAt !== null).length === count;
  });
  return runs();
}

async function told(chat: string, count: number): Promise<string[]> {
  await scene.until(`${chat} is told ${count} times`, () => scene.pigeons.textsTo(chat).length >= count);
  return scene.pigeons.textsTo(chat);
}

function home(chat: string): Promise<string> {
  return scene.ask(chat, '/sethome');
}

/** Writes a value into the jobs that no program wrote. */
function damage(sql: string, value: string): void {
  const db = new DatabaseSync(join(scene.home, 'state.db'));
  db.prepare(sql).run(value);
  db.close();
}

/** The runs that an event of the log is about. */
async function sessionsOf(type: 'session:start' | 'session:end'): Promise<(string | null)[]> {
  const found: (string | null)[] = [];
  for (let after = 0; ; ) {
    const { events, next } = await scene.store.read('listEvents', {
      after,
      types: [type],
      sessionId: null,
      limit: 500,
    });
    if (events.length === 0) return found;
    found.push(...events.filter(({ event }) => event.kind === 'cron').map(({ event }) => event.session_id));
    after = next;
  }
}

/** What the agent was given in its last turn, as a model reads it. */
function lastPrompt(): string {
  const task = scene.runner.tasks.at(-1);
  if (task === undefined) throw new TypeError('nothing was asked');
  const words = userRow(task.turnId, task.text ?? '', task.note);
  const last = { data: null, ...words, sessionId: task.sessionId, position: 999 };
  return JSON.stringify(renderPrompt([...task.transcript, last]).messages);
}

describe('a job', () => {
  test('runs when it is due, in a session of its own, and its answer is told where it was made', async () => {
    await scene.ask('ada', 'hello');
    const job = await schedule('ada', '"0 9 * * *" count the plums');
    await pass(DAY);
    const texts = await told('ada', 2);
    expect(texts[1]).toMatch(/^did: \[This is the scheduled job “count the plums”.*\]\n\ncount the plums$/s);
    const [run] = await ended(1);
    expect(run).toMatchObject({
      ...{ kind: 'cron', platform: 'cron', key: `agent:main:cron:dm:${job.id}`, attached: true },
      ...{ title: 'count the plums', endReason: 'cron_complete', origin: { job: job.id, title: 'count the plums' } },
    });
    const after = await scene.gateway.cron.jobs.find(job.id, null);
    expect(after).toMatchObject({ lastRun: { sessionId: run?.id, state: 'ended', endReason: 'cron_complete' } });
    expect((after.nextAt ?? 0) - (job.nextAt ?? 0)).toBe(DAY);
    const types = (await scene.events()).filter(({ session_id }) => session_id === run?.id).map(({ type }) => type);
    expect(types).toEqual(['session:start', 'agent:start', 'agent:end', 'session:end', 'delivery:sent']);
    const end = (await scene.events()).find(({ type, session_id }) => type === 'session:end' && session_id === run?.id);
    expect(end).toMatchObject({ reason: 'cron_complete', trigger: 'process', kind: 'cron' });
  });

  test('that was missed many times runs once', async () => {
    await schedule('ada', 'every 1h sweep');
    await pass(50 * HOUR);
    await ended(1);
    await pass(MINUTE);
    await pass(HOUR);
    expect(await ended(2)).toHaveLength(2);
  });

  test('for one time runs once, and is done', async () => {
    const job = await schedule('ada', 'in 20m take the tea out');
    await pass(20 * MINUTE);
    await told('ada', 1);
    await pass(DAY);
    await ended(1);
    expect(await scene.gateway.cron.jobs.find(job.id, null)).toMatchObject({ nextAt: null, pausedAt: null });
    expect(await scene.ask('ada', '/cron')).toContain('done');
  });

  test('that fails is told, and has failed', async () => {
    await schedule('ada', 'every 1h please fail now');
    await pass(HOUR);
    expect((await told('ada', 1))[0]).toMatch(/^The scheduled job “please fail now” failed\. .+\([a-z_]+\)$/s);
    expect(await ended(1)).toMatchObject([{ endReason: 'cron_failed' }]);
  });

  test('with nothing to say tells nobody', async () => {
    await schedule('ada', 'every 1h just shrug here');
    await pass(HOUR);
    expect(await ended(1)).toMatchObject([{ endReason: 'cron_complete' }]);
    await scene.ask('ada', 'hello');
    await told('ada', 1);
    expect(scene.pigeons.textsTo('ada')).toEqual(['did: hello']);
  });

  test('whose text begins with a slash is text for the agent, no command', async () => {
    await scene.ask('ada', 'hello');
    const { id } = await scene.sessionOf('ada');
    await schedule('ada', 'every 1h /new');
    await pass(HOUR);
    expect((await told('ada', 2))[1]).toMatch(/^did: .*\/new$/s);
    expect((await scene.sessionOf('ada')).id).toBe(id);
  });

  test('made by an operator is told to the home channel; without one it stays in the transcript', async () => {
    const { jobs } = scene.gateway.cron;
    const made = { madeIn: null, madeBy: null, target: { to: 'home' } } as const;
    await jobs.add({ schedule: 'every 1h', prompt: 'sweep', ...made });
    await pass(HOUR);
    const [run] = await ended(1);
    expect((await scene.messages(run?.id ?? '')).at(-1)?.text).toMatch(/^did: /);
    await scene.ask('ada', 'hello');
    await home('ada');
    await pass(HOUR);
    expect((await told('ada', 2))[1]).toContain('sweep');
    await jobs.add({ schedule: 'in 1m', prompt: 'secret', ...made, target: { to: 'local' } });
    await pass(MINUTE);
    await ended(3);
    expect(scene.pigeons.sent.some(({ text }) => text.includes('secret'))).toBe(false);
  });

  test('is paused, resumed, run at once and removed', async () => {
    const { id } = await schedule('ada', 'every 1h sweep');
    expect(await scene.ask('ada', `/cron pause ${id}`)).toMatch(/^Paused: .*paused: sweep$/);
    await pass(3 * HOUR);
    expect(await scene.ask('ada', `/cron run ${id.slice(4, 8)}`)).toContain('Due now');
    await ended(1);
    await pass(3 * HOUR);
    expect(await scene.ask('ada', `/cron resume ${id}`)).toMatch(/^Goes on: .*next 20/);
    await pass(HOUR);
    await ended(2);
    expect(await scene.ask('ada', `/cron remove ${id}`)).toMatch(/^Removed/);
    await pass(DAY);
    expect(await scene.ask('ada', '/cron')).toMatch(/^Nothing is scheduled here/);
    expect(await runs()).toHaveLength(2);
  });

  test('is of the conversation it was made in', async () => {
    const { id } = await schedule('ada', 'every 1h sweep');
    expect(await scene.ask('bob', '/cron list')).toMatch(/^Nothing/);
    for (const verb of ['pause', 'resume', 'remove', 'run']) {
      expect(await scene.ask('bob', `/cron ${verb} ${id}`)).toContain('(job_not_found)');
    }
    expect(await scene.ask('ada', '/cron')).toContain(id);
  });

  test.each([
    ['add', 'bad_schedule'],
    ['add tomorrow sweep', 'bad_schedule'],
    ['add "61 * * * *" sweep', 'bad_schedule'],
    ['add at 2020-01-01T09:00 sweep', 'is over'],
    ['add "0 0 30 2 *" sweep', 'never comes'],
    ['add every 1h', 'what is to be done is missing'],
    ['remvoe x', 'did you mean "remove"'],
    ['remove x', 'job_not_found'],
  ])('/cron %s is refused, saying why', async (words, why) => {
    expect(await scene.ask('ada', `/cron ${words}`)).toContain(why);
  });

  test.each([
    ['“0 9 * * *” sweep', '0 9 * * *'],
    ['0 9 * * 1-5 sweep', '0 9 * * 1-5'],
    ['@daily sweep', '@daily'],
    ['at 2099-01-01 09:00 sweep', 'at 2099-01-01 09:00'],
    ['every 2h sweep', 'every 2h'],
  ])('/cron add %s', async (words, expected) => {
    expect(await schedule('ada', words)).toMatchObject({ schedule: expected, prompt: 'sweep' });
  });
});

describe('a run', () => {
  test('is not joined by the next one of its job, which is left out and told once', async () => {
    await schedule('ada', 'every 1h please wait here');
    await pass(HOUR);
    await scene.until('it runs', () => scene.gateway.load.running === 1);
    for (let i = 0; i < 3; i++) {
      await pass(HOUR);
    }
    expect((await told('ada', 1))[0]).toContain('is due again while it is still at work');
    expect(await runs()).toHaveLength(1);
    scene.runner.release();
    await ended(1);
    expect(await told('ada', 2)).toHaveLength(2);
    await pass(HOUR);
    await ended(2);
  });

  test.each(['pause', 'remove'])('goes on to its end, and is told, after a %s of its job', async (change) => {
    const { id } = await schedule('ada', 'every 1h please wait here');
    await pass(HOUR);
    await scene.until('it runs', () => scene.gateway.load.running === 1);
    await scene.ask('ada', `/cron ${change} ${id}`);
    scene.runner.release();
    expect((await told('ada', 1))[0]).toContain('please wait here');
    expect(await ended(1)).toMatchObject([{ endReason: 'cron_complete' }]);
  });

  test('waits its turn like everybody else', async () => {
    await scene.close();
    scene = await Scene.open({ gateway: { max_concurrent_turns: 2, drain_timeout: '100ms' } });
    for (const name of ['one', 'two', 'three', 'four']) await schedule('ada', `every 1h please wait ${name}`);
    await pass(HOUR);
    await scene.until(
      'two run and two wait',
      () => scene.gateway.load.running === 2 && scene.gateway.load.waiting === 2,
    );
    scene.runner.release();
    expect((await ended(4)).every(({ endReason }) => endReason === 'cron_complete')).toBe(true);
  });

  test('under way at a stop ends as failed, is told, and is not run again', async () => {
    const { id } = await schedule('ada', 'in 1m please wait here');
    await pass(MINUTE);
    await scene.until('it runs', () => scene.gateway.load.running === 1);
    await scene.stop('restart');
    await scene.start();
    const [run] = await ended(1);
    expect(run?.endReason).toBe('cron_failed');
    expect((await told('ada', 1))[0]).toContain('was interrupted before it was done');
    await pass(DAY);
    expect(await runs()).toHaveLength(1);
    expect(await scene.gateway.cron.jobs.find(id, null)).toMatchObject({ lastRun: { endReason: 'cron_failed' } });
  });

  test('whose process dies right behind its answer is told all the same', async () => {
    await schedule('ada', 'in 1m sweep');
    const end = vi.spyOn(scene.gateway.engine, 'end').mockRejectedValue(new MoiraiError('lease_lost', 'killed'));
    await pass(MINUTE);
    await scene.gateway.cron.idle();
    expect(end).toHaveBeenCalledOnce();
    await scene.stop('restart');
    await scene.start();
    expect((await told('ada', 1))[0]).toMatch(/^did: .*sweep$/s);
    expect(await ended(1)).toMatchObject([{ endReason: 'reaped' }]);
  });

  test('that waits for its place at a stop ends as failed too', async () => {
    await scene.close();
    scene = await Scene.open({ gateway: { max_concurrent_turns: 1, drain_timeout: '100ms' } });
    await schedule('ada', 'in 1m please wait one');
    await schedule('ada', 'in 1m please wait two');
    await pass(MINUTE);
    await scene.until('one waits', () => scene.gateway.load.running === 1 && scene.gateway.load.waiting === 1);
    await scene.stop('shutdown');
    await scene.start();
    expect((await ended(2)).map(({ endReason }) => endReason)).toEqual(['cron_failed', 'cron_failed']);
  });

  test('does not begin while the gateway drains, and is made up for afterwards', async () => {
    await schedule('ada', 'every 1h sweep');
    await scene.startDueJobs();
    await scene.gateway.drain('operator');
    await passWithoutJobs(2 * HOUR);
    expect(await runs()).toEqual([]);
    await scene.gateway.undrain();
    await ended(1);
  });

  test('does not begin where cron is turned off', async () => {
    await scene.close();
    scene = await Scene.open({ cron: { enabled: false } });
    await schedule('ada', 'every 1h sweep');
    await passWithoutJobs(2 * HOUR);
    await scene.ask('ada', 'hello');
    expect(await runs()).toEqual([]);
  });

  test('does not begin for somebody who is not let in any more: the job rests', async () => {
    const { id } = await schedule('ada', 'every 1h sweep');
    const admits = vi.spyOn(scene.gateway.chat, 'admits').mockResolvedValue(false);
    await pass(HOUR);
    expect(await scene.gateway.cron.jobs.find(id, null)).toMatchObject({ nextAt: null, lastRun: null });
    expect(admits).toHaveBeenCalledWith(
      expect.objectContaining({ key: scene.conversation('ada').key }),
      expect.objectContaining({ userId: 'user-ada' }),
    );
    admits.mockRestore();
    expect(await scene.ask('ada', '/cron')).toContain('paused');
  });

  test('that cannot be taken is tried again, and keeps nothing else waiting', async () => {
    await schedule('ada', 'every 1h first');
    await schedule('ada', 'every 1h second');
    const refused = vi.spyOn(scene.gateway.engine, 'startRun').mockRejectedValueOnce(new TypeError('no ink'));
    await pass(HOUR);
    refused.mockRestore();
    expect(await ended(2)).toHaveLength(2);
  });

  test('that cannot be started three times is told, and left out until the next time of its job', async () => {
    const { id } = await schedule('ada', 'every 1h sweep');
    const refused = vi.spyOn(scene.gateway.engine, 'startRun').mockRejectedValue(new TypeError('no ink'));
    for (let i = 0; i < 3; i++) await pass(HOUR);
    expect(await told('ada', 1)).toEqual([
      'The scheduled job “sweep” failed. It could not be started: no ink. It is left out until its next time.',
    ]);
    expect(await ended(1)).toMatchObject([{ endReason: 'cron_failed' }]);
    refused.mockRestore();
    expect(await scene.gateway.cron.jobs.find(id, null)).toMatchObject({ pausedAt: null, nextAt: expect.any(Number) });
    await pass(HOUR);
    expect((await told('ada', 2))[1]).toContain('sweep');
  });

  test('for one time that cannot be started three times is told, and over', async () => {
    const { id } = await schedule('ada', 'in 1m sweep');
    vi.spyOn(scene.gateway.engine, 'startRun').mockRejectedValue(new TypeError('no ink'));
    for (let i = 0; i < 3; i++) await pass(HOUR);
    expect((await told('ada', 1))[0]).toMatch(/could not be started: no ink\. It is not tried again\.$/);
    expect(await scene.gateway.cron.jobs.find(id, null)).toMatchObject({ pausedAt: null, nextAt: null });
    await pass(HOUR);
    expect(await ended(1)).toHaveLength(1);
  });

  test.each([
    ['target', '{', 'home', 'its row cannot be read'],
    ['schedule', 'sometimes', 'ada', 'its schedule cannot be read'],
  ])('whose %s cannot be read is told, and its job is paused', async (column, value, to, why) => {
    await scene.ask('home', 'hello');
    await home('home');
    const { id } = await schedule('ada', 'every 1h sweep');
    damage(`UPDATE jobs SET ${column} = ?`, value);
    await pass(HOUR);
    const heard = to === 'home' ? (await told(to, 2))[1] : (await told(to, 1))[0];
    expect(heard).toBe(
      `The scheduled job “sweep” failed. It could not be started: ${why}. It is paused: remove it and make it anew.`,
    );
    expect(await scene.gateway.cron.jobs.find(id, null)).toMatchObject({ pausedAt: expect.any(Number), nextAt: null });
    await pass(HOUR);
    expect(await ended(1)).toHaveLength(1);
  });

  test('that cannot be started and has nobody to tell says why in its transcript', async () => {
    const made = { madeIn: null, madeBy: null, target: { to: 'home' } } as const;
    await scene.gateway.cron.jobs.add({ schedule: 'every 1h', prompt: 'sweep', ...made });
    damage('UPDATE jobs SET schedule = ?', 'sometimes');
    await pass(HOUR);
    const [run] = await ended(1);
    expect(await scene.messages(run?.id ?? '')).toMatchObject([{ text: expect.stringContaining('is paused') }]);
  });

  test('that is ended by an operator is over, and told', async () => {
    await schedule('ada', 'in 1m please wait here');
    await pass(MINUTE);
    await scene.until('it runs', () => scene.gateway.load.running === 1);
    const [run] = await runs();
    await scene.gateway.engine.end(run?.id ?? '', { reason: 'admin_close', trigger: 'api' });
    expect((await told('ada', 1))[0]).toContain('was interrupted');
    expect(await ended(1)).toMatchObject([{ endReason: 'admin_close' }]);
    await scene.until('nothing runs', () => scene.gateway.load.running === 0);
  });

  test(`${50 * HOURS} of them leave the chat list as it was, each with one start and one end`, async () => {
    await scene.ask('ada', 'hello');
    const { jobs } = scene.gateway.cron;
    const made = { madeIn: null, madeBy: null, target: { to: 'local' } } as const;
    for (let i = 0; i < 50; i++) await jobs.add({ schedule: 'every 1h', prompt: `sweep ${i}`, ...made });
    const list = () =>
      scene.store.read('listSessions', {
        ...{ states: [], kinds: ['chat', 'cli', 'api'], platforms: [], reasons: [], key: null, user: null },
        ...{ text: null, since: null, limit: 50, cursor: null },
      });
    const before = await list();
    for (let hour = 1; hour <= HOURS; hour++) {
      await pass(HOUR);
      await scene.until(
        `hour ${hour} is over`,
        async () => (await scene.store.read('stats', {})).ended.cron_complete === 50 * hour,
      );
    }
    expect(await list()).toEqual(before);
    for (const type of ['session:start', 'session:end'] as const) {
      const sessions = await sessionsOf(type);
      expect([sessions.length, new Set(sessions).size]).toEqual([50 * HOURS, 50 * HOURS]);
    }
  }, 60_000);

  test.each([
    ['30 1 * * *', '2027-11-07T04:00:00Z', ['2027-11-07T05:30:00.000Z', '2027-11-08T06:30:00.000Z']],
    ['30 2 * * *', '2027-03-14T04:00:00Z', ['2027-03-14T07:00:00.000Z', '2027-03-15T06:30:00.000Z']],
  ])('at %s comes once on the day the clocks change', async (schedule, from, expected) => {
    scene.later(Date.parse(from) - Date.now());
    const made = { timezone: 'America/New_York', madeIn: null, madeBy: null, target: { to: 'local' } } as const;
    await scene.gateway.cron.jobs.add({ schedule, prompt: 'sweep', ...made });
    for (let half = 0; half < 60; half++) {
      await pass(HOUR / 2);
      await scene.gateway.cron.idle();
    }
    expect((await runs()).map(({ origin }) => origin?.due_at)).toEqual(expected);
  });
});

describe('what a job sent to a conversation', () => {
  test('is known to its open session: an answer to it reaches a prompt that contains it', async () => {
    await scene.ask('ada', 'hello');
    await schedule('ada', 'every 1h count the plums');
    await pass(HOUR);
    await told('ada', 2);
    await scene.ask('ada', 'how many were that?');
    expect(lastPrompt()).toContain('[Sent to this conversation by the scheduled job “count the plums”. It is quoted ');
    const { id } = await scene.sessionOf('ada');
    expect((await scene.messages(id)).map(({ role }) => role)).toEqual([
      'user',
      'assistant',
      'note',
      'user',
      'assistant',
    ]);
  });

  test('is known to the session that the answer starts', async () => {
    await schedule('ada', 'every 1h count the plums');
    await pass(HOUR);
    await told('ada', 1);
    expect(await scene.open('ada')).toBeNull();
    await scene.ask('ada', 'how many were that?');
    expect(lastPrompt()).toMatch(/^\[\{"role":"user","content":"\[Sent to this conversation .*how many were that\?/);
  });

  test('is known to the next session too when the one it was told ended before an answer', async () => {
    await scene.ask('ada', 'hello');
    await schedule('ada', 'every 1h count the plums');
    scene.later(5 * MINUTE);
    await pass(HOUR);
    await told('ada', 2);
    const { id } = await scene.sessionOf('ada');
    await scene.gateway.engine.end(id, { reason: 'admin_close', trigger: 'api' });
    await scene.ask('ada', 'how many were that?');
    expect(lastPrompt()).toContain('Sent to this conversation');
    await scene.ask('ada', '/new');
    await scene.ask('ada', 'and now?');
    expect(lastPrompt()).not.toContain('Sent to this conversation');
  });

  test('neither starts a session nor keeps one open', async () => {
    await scene.ask('ada', 'hello');
    await schedule('bob', 'every 1h sweep');
    await schedule('ada', 'every 1h sweep');
    const before = await scene.sessionOf('ada');
    await pass(HOUR);
    await told('bob', 1);
    await told('ada', 2);
    expect(await scene.open('bob')).toBeNull();
    const { expiresAt, lastActivityAt } = await scene.sessionOf('ada');
    expect({ expiresAt, lastActivityAt }).toEqual({
      expiresAt: before.expiresAt,
      lastActivityAt: before.lastActivityAt,
    });
  });

  test('is sent again until it is taken', async () => {
    let refused = 0;
    scene.pigeons.refuse = () => (refused++ < 1 ? new TypeError('no wind') : null);
    await schedule('ada', 'every 1h sweep');
    await pass(HOUR);
    await scene.until('it was refused', () => refused === 1);
    scene.later(MINUTE);
    expect(await told('ada', 1)).toHaveLength(1);
    await scene.ask('ada', 'hello');
    expect(lastPrompt().match(/Sent to this conversation/g)).toHaveLength(1);
  });
});

describe('the agent', () => {
  async function tool(chat: string) {
    const { id, platform, userId } = await scene.sessionOf(chat);
    const port = schedulePort(scene.gateway.engine, scene.gateway.cron.jobs);
    return { port, asker: { sessionId: id, turnId: 'trn', platform, userId } };
  }

  test('makes, sees and removes jobs of its conversation', async () => {
    await scene.ask('ada', 'hello');
    await scene.ask('bob', 'hello');
    const ada = await tool('ada');
    const bob = await tool('bob');
    expect(await ada.port.add({ schedule: 'in 5m', task: 'tea', name: 'kettle' }, ada.asker)).toMatch(
      /^Scheduled: job_/,
    );
    expect(await bob.port.list(bob.asker)).toBe('Nothing is scheduled.');
    await expect(bob.port.remove('kettle', bob.asker)).rejects.toMatchObject({ code: 'job_not_found' });
    await pass(5 * MINUTE);
    expect((await told('ada', 2))[1]).toContain('tea');
    expect(await ada.port.remove('kettle', ada.asker)).toMatch(/^Removed/);
  });

  test('of a run cannot make jobs, nor can one that works for it', async () => {
    await schedule('ada', 'every 1h please wait here');
    await pass(HOUR);
    await scene.until('it runs', () => scene.gateway.load.running === 1);
    const [run] = await runs();
    const { engine } = scene.gateway;
    const key = 'agent:main:cron:dm:child-1';
    const conversation = { key, kind: 'child', platform: 'cron', userId: null, origin: null, attached: true } as const;
    const child = await engine.start(conversation, { parentId: run?.id ?? '', lineage: 'spawn' });
    const port = schedulePort(engine, scene.gateway.cron.jobs);
    for (const sessionId of [run?.id ?? '', child.id]) {
      const asker = { sessionId, turnId: 'trn', platform: 'cron', userId: null };
      await expect(port.add({ schedule: 'in 1m', task: 'more' }, asker)).rejects.toMatchObject({
        code: 'job_forbidden',
      });
    }
  });
});

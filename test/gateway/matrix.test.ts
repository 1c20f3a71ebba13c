import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { afterAll, describe, expect, test } from 'vitest';
import type { Session } from '../../src/lifecycle/session.ts';
import { someOf } from '../support/full-run.ts';
import { RUN_ALL } from '../support/share.ts';
import { COLUMNS, type Evidence, type Path, tableOf } from './matrix.ts';
import { processPaths } from './matrix-processes.ts';
import { Scene } from './scene.ts';
import { PRESENT, WITNESSES, Witnesses } from './witnesses.ts';

const IDLE = { sessions: { reset: { mode: 'idle', idle: '24h', notify: 'at_once' } } };
const DAILY = { sessions: { reset: { mode: 'daily', at: '04:00', timezone: 'America/New_York', notify: 'at_once' } } };
const DAY = 86_400_000;
const NEVER = { sessions: { reset: { mode: 'none' } } };
const TALK = ['hello', 'tool please'];

/** The ways a session of a gateway in this process can go; those of whole processes are in matrix-processes.ts. */
const PATHS: readonly Path[] = [
  {
    name: '`/new`, nothing running',
    ends: { reason: 'user_reset', cause: null, trigger: 'command' },
    tells: /fresh session/,
    successor: true,
    go: () => inScene(NEVER, (scene, session) => finished(scene, session, scene.ask('1', '/new'))),
  },
  {
    name: '`/new` in a turn',
    ends: { reason: 'user_reset', cause: null, trigger: 'command' },
    tells: /fresh session/,
    successor: true,
    go: () =>
      inScene(NEVER, async (scene, session) => {
        const waited = await busy(scene);
        const said = await scene.ask('1', '/new');
        return evidence(scene, session, { said: [...TALK, 'wait'], told: [said], waited: await waited() });
      }),
  },
  {
    name: '`/new` after a restart',
    ends: { reason: 'user_reset', cause: null, trigger: 'command' },
    tells: /fresh session/,
    successor: true,
    go: () =>
      inScene(NEVER, async (scene, session) => {
        await restart(scene);
        return finished(scene, session, scene.ask('1', '/new'));
      }),
  },
  {
    name: 'idle expiry, nobody writing',
    ends: { reason: 'idle_expiry', cause: null, trigger: 'watcher' },
    tells: /without a message.*\/resume/,
    go: () => inScene(IDLE, (scene, session) => expired(scene, session)),
  },
  {
    name: 'daily expiry',
    ends: { reason: 'daily_reset', cause: null, trigger: 'watcher' },
    tells: /daily reset.*\/resume/,
    go: () => inScene(DAILY, (scene, session) => expired(scene, session)),
  },
  {
    name: 'overdue at the start',
    ends: { reason: 'idle_expiry', cause: null, trigger: 'startup' },
    tells: /without a message.*\/resume/,
    go: () =>
      inScene(IDLE, async (scene, session) => {
        await scene.stop();
        scene.later(DAY);
        await scene.start();
        return ended(scene, session);
      }),
  },
  {
    name: 'rollover by a message',
    ends: { reason: 'auto_reset', cause: 'idle', trigger: 'message' },
    tells: /without a message.*fresh/,
    successor: true,
    go: () => inScene(IDLE, (scene, session) => rolledOver(scene, session, DAY)),
  },
  {
    name: 'stuck, then a message',
    ends: { reason: 'auto_reset', cause: 'suspended', trigger: 'message' },
    tells: /interrupted too often.*fresh/,
    successor: true,
    go: () =>
      inScene(NEVER, async (scene, session) => {
        await suspendAsStuck(scene, session);
        return rolledOver(scene, session, 0);
      }),
  },
  {
    name: 'stale resume marker, then a message',
    ends: { reason: 'auto_reset', cause: 'resume_expired', trigger: 'message' },
    tells: /interrupted too long ago.*fresh/,
    successor: true,
    go: () =>
      inScene(
        { gateway: { drain_timeout: '1ms' }, sessions: { resume_window: '1ms', reset: { mode: 'idle', idle: '1h' } } },
        async (scene, session) => {
          await scene.say('1', 'wait');
          await scene.until('it runs', () => scene.runner.tasks.at(-1)?.text === 'wait');
          await restart(scene);
          return rolledOver(scene, session, 20);
        },
      ),
  },
  {
    name: '`/resume` of an earlier one',
    ends: { reason: 'switched', cause: null, trigger: 'command' },
    tells: /Back in/,
    successor: true,
    go: () =>
      inScene(NEVER, async (scene, first) => {
        await scene.ask('1', '/new');
        for (const text of TALK) await scene.ask('1', text);
        const session = await scene.sessionOf('1');
        return finished(scene, session, scene.ask('1', `/resume ${first.id}`));
      }),
  },
  {
    name: '`/branch`',
    ends: { reason: 'branched', cause: null, trigger: 'command' },
    tells: /Branched/,
    successor: true,
    go: () => inScene(NEVER, (scene, session) => finished(scene, session, scene.ask('1', '/branch'))),
  },
  {
    name: 'ended over HTTP',
    ends: { reason: 'api_close', cause: null, trigger: 'api' },
    go: () =>
      inScene(NEVER, (scene, session) =>
        finished(scene, session, scene.gateway.engine.end(session.id, { reason: 'api_close', trigger: 'api' })),
      ),
  },
  {
    name: 'ended over HTTP in a turn',
    ends: { reason: 'admin_close', cause: null, trigger: 'api' },
    go: () =>
      inScene(NEVER, async (scene, session) => {
        await scene.say('1', 'tool wait');
        await scene.until('it runs', async () =>
          (await scene.messages(session.id)).some(({ text }) => text === 'tool wait'),
        );
        await scene.gateway.engine.end(session.id, { reason: 'admin_close', trigger: 'api' });
        return evidence(scene, session, { said: [...TALK, 'tool wait'] });
      }),
  },
  {
    name: 'ended from the command line',
    ends: { reason: 'admin_close', cause: null, trigger: 'cli' },
    go: () =>
      inScene(NEVER, (scene, session) =>
        finished(scene, session, scene.gateway.engine.end(session.id, { reason: 'admin_close', trigger: 'cli' })),
      ),
  },
  {
    name: 'deleted while open',
    removed: true,
    ends: { reason: 'deleted', cause: null, trigger: 'cli' },
    go: () =>
      inScene(NEVER, async (scene, session) => {
        const messages = await scene.messages(session.id);
        const context = scene.gateway.engine.commandContext();
        await scene.store.write('deleteSession', { context, sessionId: session.id, trigger: 'cli' });
        return gone(scene, session, messages);
      }),
  },
  {
    name: 'pruned after its end',
    ends: { reason: 'user_reset', cause: null, trigger: 'command' },
    successor: true,
    go: () =>
      inScene(NEVER, async (scene, session) => {
        const messages = await scene.messages(session.id);
        await scene.ask('1', '/new');
        scene.later(DAY);
        const rule = { kind: 'chat', olderThanMs: DAY / 2 } as const;
        // Not before memory was told.
        await scene.until('it is pruned', async () => (await scene.gateway.engine.prune(rule)) > 0);
        return gone(scene, session, messages);
      }),
  },
  {
    name: 'a child that is done',
    ends: { reason: 'batch_complete', cause: null, trigger: 'process' },
    tells: /did: count/,
    go: () =>
      inScene(NEVER, async (scene) => {
        await scene.ask('1', '/background count');
        await scene.until('it is told', () => scene.pigeons.textsTo('1').some((text) => text.includes('did: count')));
        const child = (await scene.events()).find(({ kind, type }) => kind === 'child' && type === 'session:end');
        return evidence(scene, await scene.session(child?.session_id ?? ''), { said: ['count'] });
      }),
  },
  {
    name: 'a child whose parent ends',
    ends: { reason: 'parent_ended', cause: null, trigger: 'process' },
    go: () =>
      inScene(NEVER, async (scene) => {
        const { id: parentId } = await scene.sessionOf('1');
        const conversation = { ...scene.conversation('child'), kind: 'child', origin: null, attached: true } as const;
        const child = await scene.gateway.engine.start(conversation, { parentId, lineage: 'spawn' });
        await scene.ask('1', '/new');
        return evidence(scene, await scene.session(child.id), { said: [] });
      }),
  },
  {
    name: 'a job that is done',
    ends: { reason: 'cron_complete', cause: null, trigger: 'process' },
    tells: /did: .*count the plums/s,
    go: () => inScene(NEVER, (scene) => jobRun(scene, 'count the plums')),
  },
  {
    name: 'a job that fails',
    ends: { reason: 'cron_failed', cause: null, trigger: 'process' },
    tells: /\([a-z_]+\)$/,
    go: () => inScene(NEVER, (scene) => jobRun(scene, 'please fail now')),
  },
];

const ALL = [...PATHS, ...processPaths(() => witnesses)];
const docs = fileURLToPath(new URL('../../docs/session-ends.md', import.meta.url));
const rows: { name: string; verdicts: string[] }[] = [];

describe('every way a session goes leaves every effect behind', () => {
  test.each(someOf(ALL, (_, index) => index % 2 === 0))('$name', { timeout: 60_000 }, async (path) => {
    const found = await path.go();
    const verdicts = Object.values(COLUMNS).map((column) => column(found, path));
    rows.push({ name: path.name, verdicts });
    const wrong = Object.keys(COLUMNS).filter((_, i) => verdicts[i] !== 'yes' && verdicts[i] !== 'n/a');
    expect(Object.fromEntries(wrong.map((name) => [name, verdicts[Object.keys(COLUMNS).indexOf(name)]]))).toEqual({});
  });

  // The table in the docs was made where everybody could listen.
  test.runIf(RUN_ALL && PRESENT.length === WITNESSES.length)('and the docs show the same table', async () => {
    expect(rows).toHaveLength(ALL.length);
    const page = readFileSync(docs, 'utf8');
    const shown = /<!-- matrix -->\n([\s\S]*?)\n<!-- end -->/.exec(page)?.[1];
    const table = tableOf(rows);
    if (shown !== table && process.env.UPDATE_DOCS === '1') {
      const { writeFileSync } = await import('node:fs');
      writeFileSync(
        docs,
        page.replace(/<!-- matrix -->\n[\s\S]*?<!-- end -->/, `<!-- matrix -->\n${table}\n<!-- end -->`),
      );
    } else expect(shown).toBe(table);
  });
});

const witnesses = await Witnesses.gather();
afterAll(() => witnesses.close());

/** A conversation that was talked in, and then what happens to it. */
async function inScene(
  settings: Record<string, unknown>,
  happens: (scene: Scene, session: Session) => Promise<Evidence>,
): Promise<Evidence> {
  const scene = await Scene.open({ ...settings, ...witnesses.settings }, (home) => witnesses.moveInto(home));
  try {
    for (const text of TALK) await scene.ask('1', text);
    const found = await happens(scene, await scene.sessionOf('1'));
    await witnesses.untilHeard(scene.home, found.session.id);
    return { ...found, heard: witnesses.heard(scene.home) };
  } finally {
    await scene.close();
  }
}

async function evidence(scene: Scene, { id }: Session, facts: Partial<Evidence>): Promise<Evidence> {
  await scene.until('it ended', async () => (await scene.session(id)).state === 'ended');
  await scene.until('its tools are closed', () => scene.runner.forgotten.includes(id));
  return {
    session: await scene.session(id),
    events: await scene.events(),
    messages: await scene.messages(id),
    closed: scene.runner.forgotten,
    said: TALK,
    waited: null,
    told: scene.pigeons.textsTo('1'),
    heard: [],
    ...facts,
  };
}

/** The row is gone, and the log still tells how the session ended. */
async function gone(scene: Scene, session: Session, messages: Evidence['messages']): Promise<Evidence> {
  await scene.until('its tools are closed', () => scene.runner.forgotten.includes(session.id));
  expect(await scene.store.read('getSession', { sessionId: session.id })).toBeNull();
  expect(await scene.messages(session.id)).toEqual([]);
  const events = await scene.events();
  const end = events.find(({ type, session_id }) => type === 'session:end' && session_id === session.id);
  const endReason = end?.reason as Session['endReason'];
  const left = { ...session, state: 'ended', endReason, endCause: null, endedAt: Date.parse(end?.at ?? '') } as const;
  return {
    session: left,
    events,
    messages,
    closed: scene.runner.forgotten,
    said: TALK,
    waited: null,
    told: null,
    heard: [],
  };
}

async function finished(scene: Scene, session: Session, command: Promise<unknown>): Promise<Evidence> {
  const said = await command;
  return evidence(scene, session, typeof said === 'string' ? { told: [said] } : {});
}

/** Nobody writes, and the session ends by itself. */
async function expired(scene: Scene, session: Session): Promise<Evidence> {
  scene.later(DAY);
  await scene.gateway.engine.expire('watcher');
  return ended(scene, session);
}

async function ended(scene: Scene, session: Session): Promise<Evidence> {
  await scene.until('it expired', async () => (await scene.session(session.id)).state === 'ended');
  await scene.until('it was told', () => scene.pigeons.textsTo('1').length > TALK.length);
  return evidence(scene, session, {});
}

/** As after too many cuts in a row. */
async function suspendAsStuck(scene: Scene, { id: sessionId }: Session): Promise<void> {
  const command = { name: 'suspend', reason: 'stuck_loop' } as const;
  const context = scene.gateway.engine.commandContext();
  await scene.store.write('command', { context, sessionId, command });
}

/** A message comes after a while, and begins a fresh session. */
async function rolledOver(scene: Scene, session: Session, afterMs: number): Promise<Evidence> {
  scene.later(afterMs);
  const reply = await scene.ask('1', 'afterwards');
  await scene.until('it was told', () => scene.pigeons.textsTo('1').some((text) => text.includes('fresh')));
  return evidence(scene, session, { waited: { text: 'afterwards', reply } });
}

/** A turn under way, and a message behind it: how that one comes out is asked later. */
async function busy(scene: Scene): Promise<() => Promise<Evidence['waited']>> {
  await scene.say('1', 'wait');
  await scene.until('it runs', () => scene.runner.tasks.at(-1)?.text === 'wait');
  const behind = await scene.say('1', 'behind it');
  return async () => {
    const turn = behind.type === 'turn' ? await behind.channel.ended : null;
    return { text: 'behind it', reply: turn?.response ?? null };
  };
}

/** A job of the conversation comes due, and its run ends. */
async function jobRun(scene: Scene, prompt: string): Promise<Evidence> {
  await scene.ask('1', `/cron add in 1h ${prompt}`);
  scene.later(3_600_000);
  await scene.startDueJobs();
  await scene.until('it is told', () => scene.pigeons.textsTo('1').length > TALK.length);
  const end = (await scene.events()).find(({ kind, type }) => kind === 'cron' && type === 'session:end');
  return evidence(scene, await scene.session(end?.session_id ?? ''), { said: [] });
}

async function restart(scene: Scene): Promise<void> {
  await scene.stop('restart');
  await scene.start();
}

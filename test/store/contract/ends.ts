import { describe, expect } from 'vitest';
import { END_REASONS, type EndReason, type SessionKind } from '../../../src/lifecycle/states.ts';
import { codeOf } from './code-of.ts';
import { DAY, HOUR, type Open, rulesWith, type Scene, sceneTests } from './scene.ts';

interface Way {
  /** What the event says beside the reason. */
  readonly cause: string | null;
  readonly trigger: string;
  /** Lives a session up to its end and gives its id. */
  live(scene: Scene): Promise<string>;
}

function closing(reason: EndReason, kind: SessionKind, trigger: 'command' | 'api' | 'cli' | 'process'): Way {
  return {
    cause: null,
    trigger,
    live: async (scene) => {
      const { id } = await scene.start('42', { kind, attached: kind === 'batch' || kind === 'cli' });
      await scene.end(id, reason, { trigger });
      return id;
    },
  };
}

/** Each reason of the contract with a life that comes to it. The type keeps the table complete. */
const WAYS: Readonly<Record<EndReason, Way>> = {
  user_reset: {
    cause: null,
    trigger: 'command',
    live: async (scene) => {
      const { id } = await scene.start('42');
      await scene.reset('42', { command: 'new', args: '' });
      return id;
    },
  },
  idle_expiry: {
    cause: null,
    trigger: 'watcher',
    live: async (scene) => {
      const { id } = await scene.start('42');
      scene.clock.advance(DAY);
      await scene.expire();
      return id;
    },
  },
  daily_reset: {
    cause: null,
    trigger: 'startup',
    live: async (scene) => {
      scene.store.useRules(rulesWith({ mode: 'daily', at: '04:00' }));
      const { id } = await scene.start('42');
      scene.clock.advance(16 * HOUR);
      await scene.expire(10, 'startup');
      return id;
    },
  },
  auto_reset: {
    cause: 'suspended',
    trigger: 'message',
    live: async (scene) => {
      const { id } = await scene.start('42');
      await scene.command(id, { name: 'suspend', reason: 'stuck_loop' });
      await scene.say('42', 'hello again');
      return id;
    },
  },
  switched: {
    cause: null,
    trigger: 'command',
    live: async (scene) => {
      const old = await scene.start('42');
      await scene.end(old.id, 'admin_close');
      const { id } = await scene.start('42');
      await scene.continue(old.id, 'resume');
      return id;
    },
  },
  branched: {
    cause: null,
    trigger: 'command',
    live: async (scene) => {
      const { id } = await scene.start('42');
      await scene.continue(id, 'branch');
      return id;
    },
  },
  cli_close: closing('cli_close', 'cli', 'process'),
  api_close: closing('api_close', 'api', 'api'),
  admin_close: closing('admin_close', 'chat', 'cli'),
  cron_complete: closing('cron_complete', 'cron', 'process'),
  cron_failed: closing('cron_failed', 'cron', 'process'),
  webhook_complete: closing('webhook_complete', 'webhook', 'process'),
  batch_complete: closing('batch_complete', 'batch', 'process'),
  batch_failed: closing('batch_failed', 'batch', 'process'),
  parent_ended: {
    cause: null,
    trigger: 'process',
    live: async (scene) => {
      const parent = await scene.start('42');
      const kin = { kind: 'child', attached: true } as const;
      const { id } = await scene.start('child', kin, { parentId: parent.id, lineage: 'spawn' });
      await scene.end(parent.id, 'admin_close');
      return id;
    },
  },
  reaped: {
    cause: null,
    trigger: 'reaper',
    live: async (scene) => {
      const dead = await scene.joinedBy('dead');
      const { id } = await dead.start('42', { kind: 'batch', attached: true });
      await scene.reap(['dead']);
      return id;
    },
  },
  deleted: closing('deleted', 'chat', 'cli'),
};

/** Every way a session ends, and that it ends once. */
export function endsContract(open: Open): void {
  const test = sceneTests(open);

  describe('an end', () => {
    for (const reason of END_REASONS) {
      test(`${reason} is written once, in the row and as the last event`, async (scene) => {
        const { cause, trigger, live } = WAYS[reason];
        const id = await live(scene);
        const session = await scene.session(id);
        expect(session).toMatchObject({ state: 'ended', endReason: reason, endCause: cause });
        expect(session).toMatchObject({ owner: null, expiresAt: null, expiresCause: null, background: 0 });
        const events = await scene.events(id);
        const ends = events.filter(({ type }) => type === 'session:end');
        expect(ends).toEqual([events.at(-1)]);
        expect(ends[0]).toMatchObject({
          reason,
          cause,
          trigger,
          session_seq: session.seq,
          at: new Date(session.endedAt ?? 0).toISOString(),
          duration_ms: (session.endedAt ?? 0) - session.startedAt,
          message_count: 0,
        });
        expect(session.endedAt).toBe(scene.clock.now());
      });
    }

    test('what a batch ended with is its cause', async (scene) => {
      const { id } = await scene.start('42', { kind: 'batch', attached: true });
      await scene.end(id, 'batch_failed', { cause: 'signal', trigger: 'process', epoch: 1 });
      expect(await scene.session(id)).toMatchObject({ endReason: 'batch_failed', endCause: 'signal' });
      expect((await scene.events(id)).at(-1)).toMatchObject({ reason: 'batch_failed', cause: 'signal' });
    });

    test('ending twice returns the first end and writes nothing', async (scene) => {
      const { id } = await scene.start('42');
      const first = await scene.end(id, 'api_close', { trigger: 'api' });
      scene.clock.advance(HOUR);
      const second = await scene.end(id, 'admin_close');
      expect(first.already).toBe(false);
      expect(second).toEqual({ session: first.session, already: true });
      expect(await scene.types(id)).toEqual(['session:start', 'session:end']);
    });

    test('the same end again, whose answer was lost, is still the first', async (scene) => {
      const { id } = await scene.start('42');
      const args = {
        context: scene.context(),
        sessionId: id,
        reason: 'api_close',
        cause: null,
        trigger: 'api',
      } as const;
      const first = await scene.store.write('endSession', { ...args, epoch: null });
      expect(await scene.store.write('endSession', { ...args, epoch: null })).toEqual(first);
      expect(first.already).toBe(false);
    });

    test('nothing moves an ended session', async (scene) => {
      const asked = await scene.ask('42');
      const { session } = await scene.end(asked.session.id);
      const attempts = [
        scene.command(session.id, { name: 'touch', by: 'user' }),
        scene.command(session.id, { name: 'begin', turnId: asked.turn.id }),
        scene.command(session.id, { name: 'interrupt', reason: 'crash', epoch: null }),
        scene.command(session.id, { name: 'suspend', reason: 'stuck_loop' }),
        scene.command(session.id, { name: 'release' }),
        scene.command(session.id, { name: 'background', running: 1, epoch: null }),
        scene.command(session.id, { name: 'compress', beforeTokens: 2, afterTokens: 1, count: 1, epoch: null }),
        scene.command(session.id, { name: 'title', title: 'late' }),
        scene.command(session.id, { name: 'note', command: 'late', args: '' }),
        scene.finish(asked),
        scene.store.write('appendMessages', {
          context: scene.context(),
          sessionId: session.id,
          epoch: null,
          messages: [{ role: 'user', text: 'late', turnId: null }],
        }),
      ];
      const codes = await Promise.all(attempts.map(codeOf));
      expect(codes).toEqual(attempts.map(() => 'session_ended'));
      scene.clock.advance(1000 * DAY);
      await scene.boot('late');
      scene.instance = 'late';
      expect(await scene.expire()).toEqual({ ended: [], more: false });
      expect(await scene.reap()).toMatchObject({ reaped: [], interrupted: [], released: [] });
      expect(await scene.session(session.id)).toEqual(session);
      expect((await scene.types(session.id)).at(-1)).toBe('session:end');
    });

    test('a message after the end starts a session that is no successor', async (scene) => {
      const { id } = await scene.start('42');
      await scene.end(id);
      const said = await scene.say('42', 'anybody there?');
      expect(said).toMatchObject({ started: true, ended: null, session: { parentId: null, lineage: null } });
      expect((await scene.events(id)).at(-1)).toMatchObject({ successor_id: null });
    });

    test('a child cannot start under a parent that has ended or is gone, nor be written to after its own end', async (scene) => {
      const { session: parent } = await scene.say('42', 'do it');
      const kin = { kind: 'child', attached: true } as const;
      const under = { parentId: parent.id, lineage: 'spawn' } as const;
      await scene.start('c1', kin, under);
      await scene.end(parent.id);
      expect(await codeOf(scene.start('c2', kin, under))).toBe('session_ended');
      expect(await codeOf(scene.start('c3', kin, { ...under, parentId: 'ses-never' }))).toBe('session_ended');
      expect(await codeOf(scene.say('c1', 'the task', { conversation: scene.conversation('c1', kin) }))).toBe(
        'session_ended',
      );
      expect(await scene.store.read('stats', {})).toMatchObject({ open: 0 });
    });

    test('a child that starts while its parent ends is refused or ends with it', async (scene) => {
      const other = await scene.joinedBy('two');
      const kin = { kind: 'child', attached: true } as const;
      for (let n = 0; n < 20; n++) {
        const { session: parent } = await scene.say(`p${n}`, 'do it');
        const starts = ['a', 'b'].map((c) => {
          return codeOf(scene.start(`${c}${n}`, kin, { parentId: parent.id, lineage: 'spawn' }));
        });
        await Promise.all([...starts, other.end(parent.id)]);
      }
      expect(await scene.store.read('stats', {})).toMatchObject({ open: 0 });
    });

    test('children end with their parent, and their children with them', async (scene) => {
      const parent = await scene.start('42');
      const kin = { kind: 'child', attached: true } as const;
      const child = await scene.start('c1', kin, { parentId: parent.id, lineage: 'spawn' });
      const grandchild = await scene.start('c2', kin, { parentId: child.id, lineage: 'spawn' });
      const asked = await scene.ask('c1', 'work', { conversation: scene.conversation('c1', kin) });
      const stranger = await scene.start('43');
      await scene.reset('42');
      for (const { id } of [child, grandchild]) {
        expect(await scene.session(id)).toMatchObject({ state: 'ended', endReason: 'parent_ended' });
        expect((await scene.types(id)).filter((type) => type === 'session:end')).toHaveLength(1);
      }
      expect(asked.session.id).toBe(child.id);
      expect((await scene.types(child.id)).slice(-2)).toEqual(['agent:end', 'session:end']);
      expect((await scene.session(stranger.id)).state).toBe('open');
    });

    test('a session linked by resume or branch does not end with the one it came from', async (scene) => {
      const session = await scene.start('42');
      const resumed = await scene.continue(session.id, 'resume', { conversation: scene.conversation('43') });
      await scene.end(session.id);
      expect((await scene.session(resumed.session.id)).state).toBe('open');
    });

    test('a reason that is none of the contract is refused', async (scene) => {
      const { id } = await scene.start('42');
      expect(await codeOf(scene.end(id, 'bored' as never))).toBe('bad_reason');
      expect((await scene.session(id)).state).toBe('open');
    });

    test('an unknown session cannot be ended', async (scene) => {
      expect(await codeOf(scene.end('ses-unknown'))).toBe('session_not_found');
    });
  });
}

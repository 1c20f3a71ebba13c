import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';
import { DEFAULT_RESET_RULES, type ResetRules } from '../../src/lifecycle/reset-policy.ts';
import { END_REASONS, type EndReason, type SessionKind } from '../../src/lifecycle/states.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import { bootTestEngine, chatConversation, TestClock } from '../support/stores.ts';
import { Recorder, Scene, textsOf, until } from './scene.ts';

const HOUR = 3_600_000;
const RULES: ResetRules = {
  ...DEFAULT_RESET_RULES,
  reset: { ...DEFAULT_RESET_RULES.reset, mode: 'idle', idleMs: HOUR },
  resetByPlatform: { discord: { mode: 'daily', at: '04:00', timezone: 'UTC' } },
};

/** Ends a session that was talked in as "hello", and gives its id. */
type Way = (scene: Scene, clock: TestClock) => Promise<string>;

function owned(kind: SessionKind): ConversationRef {
  const key = `agent:main:${kind}:dm:x`;
  return { key, kind, platform: kind, userId: null, origin: null, attached: kind !== 'webhook' && kind !== 'api' };
}

async function spoken(scene: Scene, kind: SessionKind, facts = {}): Promise<string> {
  const { id } = await scene.engine.start(owned(kind), facts);
  await scene.engine.appendBeside(id, [
    { role: 'user', text: 'hello', turnId: null },
    { role: 'assistant', text: 'heard: hello', turnId: null },
  ]);
  return id;
}

function ending(kind: SessionKind, reason: EndReason): Way {
  return async (scene) => {
    const id = await spoken(scene, kind);
    await scene.engine.end(id, { reason, trigger: 'process' });
    return id;
  };
}

const WAYS: Record<EndReason, Way> = {
  user_reset: async (scene) => {
    const id = await scene.talk('hello');
    await scene.engine.reset(chatConversation(1));
    return id;
  },
  idle_expiry: async (scene, clock) => {
    const id = await scene.talk('hello');
    clock.pass(HOUR);
    await scene.engine.expire('watcher');
    return id;
  },
  daily_reset: async (scene, clock) => {
    const id = await scene.talk('hello', chatConversation(1, 'discord'));
    clock.pass(24 * HOUR);
    await scene.engine.expire('startup');
    return id;
  },
  auto_reset: async (scene, clock) => {
    const id = await scene.talk('hello');
    clock.pass(HOUR);
    await scene.talk('back');
    return id;
  },
  switched: async (scene) => {
    const old = await scene.talk('something else');
    await scene.engine.reset(chatConversation(1));
    const id = await scene.talk('hello');
    await scene.engine.continueFrom(old, 'resume', { trigger: 'command' });
    return id;
  },
  branched: async (scene) => {
    const id = await scene.talk('hello');
    await scene.engine.continueFrom(id, 'branch', { trigger: 'command' });
    return id;
  },
  cli_close: ending('cli', 'cli_close'),
  api_close: ending('api', 'api_close'),
  admin_close: ending('chat', 'admin_close'),
  cron_complete: ending('cron', 'cron_complete'),
  cron_failed: ending('cron', 'cron_failed'),
  webhook_complete: ending('webhook', 'webhook_complete'),
  batch_complete: ending('batch', 'batch_complete'),
  batch_failed: ending('batch', 'batch_failed'),
  parent_ended: async (scene) => {
    const parentId = await scene.talk('something else');
    const id = await spoken(scene, 'child', { parentId, lineage: 'spawn' });
    await scene.engine.end(parentId, { reason: 'api_close', trigger: 'api' });
    return id;
  },
  reaped: async (scene, clock) => {
    const shortLived = await bootTestEngine(await scene.opened.again(), 1000);
    const { id } = await shortLived.start(owned('batch'));
    const messages = ['hello', 'heard: hello'].map((text, i) => ({
      role: i ? 'assistant' : 'user',
      text,
      turnId: null,
    }));
    await shortLived.appendBeside(id, messages);
    clock.pass(1000);
    await scene.engine.reap();
    return id;
  },
  deleted: ending('chat', 'deleted'),
};

describe('memory hears of a session', () => {
  test.each(END_REASONS)('that ended as %s, once, with the reason and all that was said', async (reason) => {
    const clock = new TestClock(Date.UTC(2026, 2, 7, 12));
    const scene = await Scene.open('sqlite', RULES, clock);
    try {
      const recorder = new Recorder();
      await scene.remember([recorder]);
      const id = await WAYS[reason](scene, clock);
      await until('it was told', () => recorder.of(id).length > 0);
      await until('nothing is left', async () => (await scene.subscriber('memory:recorder'))?.lag === 0);
      const [ended, ...more] = recorder.of(id);
      expect(more).toEqual([]);
      expect(ended).toMatchObject({ reason, cause: reason === 'auto_reset' ? 'idle' : null });
      expect(ended && textsOf(ended)).toEqual(['hello', 'heard: hello']);
      expect(ended?.session).toMatchObject({ id, removed: false });
      expect(ended?.eventId).toMatch(new RegExp(`^${id}:`));
    } finally {
      await scene.close();
    }
  });

  test('that was deleted with all it said: then there is nothing to tell but the end', async () => {
    const scene = await Scene.open();
    try {
      const recorder = new Recorder();
      await scene.remember([recorder]);
      const id = await scene.talk('a secret');
      await scene.engine.delete(id, 'cli');
      await until('it was told', () => recorder.of(id).length > 0);
      const [ended] = recorder.of(id);
      expect(ended).toMatchObject({ reason: 'deleted', messages: [], session: { removed: true, kind: 'chat' } });
    } finally {
      await scene.close();
    }
  });

  test('that ended right before its process was killed', { timeout: 30_000 }, async () => {
    const home = mkdtempSync(join(tmpdir(), 'moirai-memory-'));
    const program = fileURLToPath(new URL('./processes/ender.ts', import.meta.url));
    const child = spawn(process.execPath, [program, home], { stdio: ['ignore', 'pipe', 'inherit'] });
    const [line] = (await once(child.stdout, 'data')) as [Buffer];
    child.kill('SIGKILL');
    await once(child, 'exit');
    const scene = await Scene.onFile(join(home, 'state.db'));
    try {
      const recorder = new Recorder();
      await scene.remember([recorder]);
      // What the dead process had in hand is given out again.
      await scene.engine.reap();
      await until('it was told', () => recorder.ends.length > 0);
      expect(recorder.ends.map(({ session }) => session.id)).toEqual([line.toString().trim()]);
      expect(recorder.ends.map(textsOf)).toEqual([['hello', 'heard: hello']]);
    } finally {
      await scene.close();
      rmSync(home, { recursive: true });
    }
  });

  test('that continues others, with what was said in them before it', async () => {
    const scene = await Scene.open();
    try {
      const recorder = new Recorder();
      await scene.remember([recorder]);
      const first = await scene.talk('one');
      const second = (await scene.engine.continueFrom(first, 'branch', { trigger: 'command' })).session.id;
      await scene.talk('two');
      await scene.engine.end(second, { reason: 'admin_close', trigger: 'api' });
      await until('it was told', () => recorder.of(second).length > 0);
      expect(recorder.ends.map(textsOf)).toEqual([
        ['one', 'heard: one'],
        ['one', 'heard: one', 'two', 'heard: two'],
      ]);
      expect(recorder.ends[1]?.session).toMatchObject({ parentId: first, lineage: 'branch' });
    } finally {
      await scene.close();
    }
  });
});

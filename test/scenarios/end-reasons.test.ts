import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import { DEFAULT_RESET_RULES, type ResetRules } from '../../src/lifecycle/reset-policy.ts';
import type { Session } from '../../src/lifecycle/session.ts';
import { END_REASONS, type EndReason, type SessionKind } from '../../src/lifecycle/states.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import {
  bootTestEngine,
  chatConversation,
  ENGINES,
  openTestStore,
  TestClock,
  type TestStore,
} from '../support/stores.ts';

const HOUR = 3_600_000;
const RULES: ResetRules = {
  ...DEFAULT_RESET_RULES,
  reset: { ...DEFAULT_RESET_RULES.reset, mode: 'idle', idleMs: HOUR },
  resetByPlatform: { discord: { mode: 'daily', at: '04:00', timezone: 'UTC' } },
};
const LEASE_MS = 100 * HOUR;

interface Ended {
  readonly id: string;
  readonly cause: string | null;
  readonly trigger: string;
}

type Way = (engine: Engine, clock: TestClock, opened: TestStore) => Promise<Ended>;

function owned(kind: SessionKind, name: string): ConversationRef {
  const key = `agent:main:${kind}:dm:${name}`;
  return { key, kind, platform: kind, userId: null, origin: null, attached: true };
}

async function talk(engine: Engine, conversation: ConversationRef): Promise<Session> {
  const received = await engine.receive({ conversation, text: 'hello', originRef: null, by: 'user' });
  const hold = { sessionId: received.session.id, epoch: received.session.epoch };
  const loaded = await engine.finish(hold, received.turn.id, {
    ...{ outcome: 'done', response: 'hi', model: null, usage: null },
  });
  return loaded.session;
}

/** Ends a session the plain way, with the reason its kind has. */
function ending(kind: SessionKind, reason: EndReason, cause: 'exit' | null = null): Way {
  return async (engine) => {
    const conversation =
      kind === 'webhook' || kind === 'api' ? { ...owned(kind, reason), attached: false } : owned(kind, reason);
    const { id } = await engine.start(conversation);
    await engine.end(id, { reason, trigger: 'process', ...(cause === null ? {} : { cause }) });
    return { id, cause, trigger: 'process' };
  };
}

/** One way to every end reason, through the engine's own verbs. */
const WAYS: Record<EndReason, Way> = {
  user_reset: async (engine) => {
    const { id } = await talk(engine, chatConversation(1));
    await engine.reset(chatConversation(1), { slash: { command: 'new', args: '' } });
    return { id, cause: null, trigger: 'command' };
  },
  idle_expiry: async (engine, clock) => {
    const { id } = await talk(engine, chatConversation(1));
    clock.pass(HOUR - 1);
    expect((await engine.expire('watcher')).ended).toEqual([]);
    clock.pass(1);
    expect((await engine.expire('watcher')).ended).toEqual([id]);
    return { id, cause: null, trigger: 'watcher' };
  },
  daily_reset: async (engine, clock) => {
    const { id } = await talk(engine, chatConversation(1, 'discord'));
    clock.passUntil(Date.UTC(2026, 2, 8, 4) - 1);
    expect((await engine.expire('startup')).ended).toEqual([]);
    clock.pass(1);
    expect((await engine.expire('startup')).ended).toEqual([id]);
    return { id, cause: null, trigger: 'startup' };
  },
  auto_reset: async (engine, clock) => {
    const { id } = await talk(engine, chatConversation(1));
    clock.pass(HOUR);
    const next = await engine.receive({ conversation: chatConversation(1), text: 'back', originRef: null, by: 'user' });
    expect(next.ended).toEqual({ id, cause: 'idle' });
    return { id, cause: 'idle', trigger: 'message' };
  },
  switched: async (engine) => {
    const old = await talk(engine, chatConversation(1));
    const { session } = await engine.reset(chatConversation(1));
    await engine.continueFrom(old.id, 'resume', { trigger: 'command' });
    return { id: session.id, cause: null, trigger: 'command' };
  },
  branched: async (engine) => {
    const { id } = await talk(engine, chatConversation(1));
    await engine.continueFrom(id, 'branch', { trigger: 'command' });
    return { id, cause: null, trigger: 'command' };
  },
  cli_close: ending('cli', 'cli_close'),
  api_close: ending('api', 'api_close'),
  admin_close: ending('chat', 'admin_close'),
  cron_complete: ending('cron', 'cron_complete'),
  cron_failed: ending('cron', 'cron_failed'),
  webhook_complete: ending('webhook', 'webhook_complete'),
  batch_complete: ending('batch', 'batch_complete'),
  batch_failed: ending('batch', 'batch_failed', 'exit'),
  parent_ended: async (engine) => {
    const parent = await talk(engine, chatConversation(1));
    const { id } = await engine.start(owned('child', 'c'), { parentId: parent.id, lineage: 'spawn' });
    await engine.end(parent.id, { reason: 'api_close', trigger: 'api' });
    return { id, cause: null, trigger: 'process' };
  },
  reaped: async (engine, clock, opened) => {
    const shortLived = await bootTestEngine(await opened.again(), 1000);
    const { id } = await shortLived.start(owned('batch', 'b'));
    expect((await engine.reap()).reaped).toEqual([]);
    clock.pass(1000);
    expect((await engine.reap()).reaped).toEqual([id]);
    return { id, cause: null, trigger: 'reaper' };
  },
  deleted: ending('chat', 'deleted'),
};

async function endEvent(engine: Engine, sessionId: string) {
  const { events } = await engine.store.read('listEvents', { after: 0, limit: 500, types: ['session:end'], sessionId });
  const [first] = events;
  if (events.length !== 1 || first === undefined) throw new TypeError(`${events.length} ends`);
  return first.event;
}

describe.each(ENGINES)('a session on %s', (engineName) => {
  let opened: TestStore;
  let engine: Engine;
  let clock: TestClock;
  beforeEach(async () => {
    clock = new TestClock(Date.UTC(2026, 2, 7, 12));
    opened = await openTestStore(engineName, RULES, clock);
    engine = await bootTestEngine(opened.store, LEASE_MS);
  });
  afterEach(() => opened.remove());

  test.each(END_REASONS)('can end as %s, once, with the row and the event saying the same', async (reason) => {
    const ended = await WAYS[reason](engine, clock, opened);
    const session = await engine.store.read('getSession', { sessionId: ended.id });
    const event = await endEvent(engine, ended.id);
    expect(event).toMatchObject({ reason, cause: ended.cause, trigger: ended.trigger });
    expect(session).toMatchObject({ state: 'ended', endReason: reason, endCause: ended.cause, owner: null });
    expect(new Date(event.at).getTime()).toBe(session?.endedAt);
    expect(event.session_seq).toBe(session?.seq);
  });
});

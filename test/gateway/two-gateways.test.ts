import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { Figures } from '../../src/api/figures.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { apiBackend } from '../../src/gateway/api-backend.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { ConfiguredPlatform } from '../../src/platforms/registry.ts';
import type { Store } from '../../src/store/port.ts';
import { PostgresStore } from '../../src/store/postgres/store.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import type { Message } from '../../src/store/transactions/messages.ts';
import type { TurnEvent } from '../../src/turns/turn-event.ts';
import { until } from '../hooks/scene.ts';
import { createDatabase } from '../support/postgres.ts';
import { Harbour } from './harbour.ts';
import { Pigeons } from './scene.ts';
import { ScriptedRunner } from './scripted-runner.ts';

/** One of several gateways on one store. */
interface Running {
  readonly gateway: Gateway;
  readonly runner: ScriptedRunner;
  readonly store: Store;
}

/** What is given to one gateway is known to the other one within half a second. */
const REACHED_MS = 3000;

const cleanup: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const clean of cleanup.splice(0).reverse()) await clean();
});

async function start(open: () => Promise<Store>, chat: readonly ConfiguredPlatform[] = []): Promise<Running> {
  const home = mkdtempSync(join(tmpdir(), 'moirai-gateway-'));
  writeFileSync(join(home, 'config.yaml'), JSON.stringify({ gateway: { drain_timeout: '100ms' } }));
  const config = loadConfig({ home, env: {} });
  const runner = new ScriptedRunner();
  const store = await open();
  const gateway = await Gateway.start({
    ...{ config, store, version: 'test', platforms: [new Pigeons()], primary: true, restart: null },
    environment: { PATH: process.env.PATH },
    log: createLogger({ level: 'silent', format: 'json' }),
    makeRunner: () => runner,
    chat,
    lost: () => undefined,
  });
  cleanup.push(async () => {
    runner.release();
    await gateway.stop('shutdown');
    await store.close();
    rmSync(home, { recursive: true });
  });
  return { gateway, runner, store };
}

const conversation: ConversationRef = {
  key: 'agent:main:pigeon:dm:1',
  kind: 'chat',
  platform: 'pigeon',
  userId: 'ada',
  origin: { chat: '1' },
  attached: false,
};

async function say({ gateway }: Running, text: string): Promise<string> {
  const heard = await gateway.conversations.receive({ conversation, text, originRef: null });
  return heard.type === 'answer' ? heard.text : ((await heard.channel.ended)?.response ?? '');
}

/** Says something that the agent is still busy with. */
async function begin(at: Running, text: string): Promise<string> {
  const heard = await at.gateway.conversations.receive({ conversation, text, originRef: null });
  if (heard.type === 'answer') throw new TypeError(heard.text);
  await until('it runs', () => at.runner.tasks.at(-1)?.turnId === heard.received.turn.id, 30_000);
  return heard.received.turn.id;
}

async function rows({ store }: Running): Promise<Message[]> {
  const session = await store.read('openSession', { key: conversation.key });
  return store.read('listMessages', { sessionId: session?.id ?? '', after: 0, limit: 500 });
}

const ENGINES = {
  SQLite: async () => {
    const folder = mkdtempSync(join(tmpdir(), 'moirai-store-'));
    cleanup.push(async () => rmSync(folder, { recursive: true }));
    return () => SqliteStore.open(join(folder, 'state.db'), DEFAULT_RESET_RULES);
  },
  PostgreSQL: async () => {
    const database = await createDatabase();
    cleanup.push(() => database.drop());
    return () => PostgresStore.open(database.url, DEFAULT_RESET_RULES);
  },
};

describe.each(Object.entries(ENGINES))('two gateways on one store (%s)', (_, prepare) => {
  async function both(): Promise<{ one: Running; two: Running }> {
    const open = await prepare();
    return { one: await start(open), two: await start(open) };
  }

  test('a turn is stopped by a command that is given to the other one', async () => {
    const { one, two } = await both();
    const turnId = await begin(one, 'wait');
    expect(await say(two, '/stop')).toBe('Stopped.');
    expect(await one.store.read('turnResult', { turnId })).toMatchObject({ state: 'over', outcome: 'interrupted' });
    expect(await say(two, '/stop')).toBe('Nothing is being done here.');
  });

  test('a message that steers is taken into the turn that the other one runs', async () => {
    const { one, two } = await both();
    await begin(one, 'wait');
    const context = one.runner.tasks[0]?.context;
    const answer = say(two, '/steer faster');
    const taken: string[] = [];
    await until(
      'it is taken in',
      async () => {
        taken.push(...((await context?.takeSteering()) ?? []).map(({ text }) => text));
        return taken.length > 0;
      },
      REACHED_MS,
    );
    expect(taken).toEqual(['faster']);
    expect(await answer).toContain('its reply answers both');
  });

  test('a message that interrupts stops the turn that the other one runs, and is answered', async () => {
    const { one, two } = await both();
    const turnId = await begin(one, 'wait');
    const heard = await two.gateway.conversations.receive({
      conversation,
      text: 'rather this',
      originRef: null,
      mode: 'interrupt',
    });
    const over = async (): Promise<boolean> => (await one.store.read('getTurn', { turnId }))?.state === 'over';
    await until('it is stopped', over, REACHED_MS);
    expect(await one.store.read('getTurn', { turnId })).toMatchObject({ outcome: 'interrupted' });
    expect(heard.type === 'turn' ? (await heard.channel.ended)?.response : null).toBe('did: rather this');
  });

  test('what an agent asks is answered at the other one, and the first answer counts', async () => {
    const { one, two } = await both();
    await begin(one, 'wait');
    const context = one.runner.tasks[0]?.context;
    const asked = async (): Promise<boolean> => (await two.gateway.approvals.waiting()).length === 1;
    const first = context?.approve({ tool: 'run_command', action: 'make' });
    await until('it is asked', asked);
    const [question] = await two.gateway.approvals.waiting();
    expect(await say(two, '/approve')).toBe('Allowed: make');
    let told = false;
    void first?.then(() => {
      told = true;
    });
    await until('the agent is told', () => told, REACHED_MS);
    expect(await first).toEqual({ allowed: true });
    const late = { name: 'api', person: null, admin: true };
    expect(await one.gateway.approvals.answerById(question?.id ?? '', 'deny', late)).toBeNull();
    const second = context?.approve({ tool: 'run_command', action: 'make clean' });
    await until('it is asked', asked);
    expect(await say(two, '/deny not that')).toBe('Refused: make clean');
    expect(await second).toEqual({ allowed: false, reason: 'not that' });
  });

  test('/undo at the other one takes back what was there, and nothing that was said after it', async () => {
    const { one, two } = await both();
    await say(one, 'first');
    // What is said in the same millisecond as the end of a turn may have been before the command.
    const before = await one.store.read('openSession', { key: conversation.key });
    await until('time goes by', () => Date.now() > (before?.lastActivityAt ?? 0));
    const undone = say(two, '/undo');
    const next = say(one, 'second');
    expect(await undone).toBe('Undone: “first”');
    expect(await next).toBe('did: second');
    await begin(one, 'wait a lot');
    expect(await say(two, '/undo')).toBe('Undone: “wait a lot”');
    const session = await one.store.read('openSession', { key: conversation.key });
    const kept = await one.gateway.transcripts.withoutUndone(session?.id ?? '');
    expect(kept.filter(({ role }) => role === 'user').map(({ text }) => text)).toEqual(['second']);
  });

  test('/undo spares a message that was begun after it was given', async () => {
    const { one, two } = await both();
    await say(one, 'first');
    const session = await two.store.read('openSession', { key: conversation.key });
    const undo = two.gateway.conversations;
    // As if the message had overtaken the command, which was given before it.
    const read = two.store.read.bind(two.store);
    let overtaken = false;
    const overtake = (async (name: never, args: never) => {
      if (name === ('openSession' as never) && !overtaken) {
        overtaken = true;
        await say(one, 'second');
        return session;
      }
      return read(name, args);
    }) as Store['read'];
    Object.defineProperty(two.store, 'read', { value: overtake });
    const heard = await undo.receive({ conversation, text: '/undo', originRef: null });
    expect(heard).toMatchObject({ type: 'answer', text: 'Undone: “first”' });
    const kept = await one.gateway.transcripts.withoutUndone(session?.id ?? '');
    expect(kept.filter(({ role }) => role === 'user').map(({ text }) => text)).toEqual(['second']);
  });

  test.each([
    ['one at a time where there is a credential that only one may use', 'harbour:test', ['connected', 'stopped']],
    ['both where there is none', null, ['connected', 'connected']],
  ])('receive from a platform %s', async (_, credential, phases) => {
    const open = await prepare();
    const harbours = [new Harbour(), new Harbour()];
    for (const [index, harbour] of harbours.entries()) {
      const { gateway } = await start(open, [{ ...harbour.configured, credential }]);
      const settled = (): boolean => gateway.chat.status().some(({ phase }) => phase !== 'stopped');
      await until(`the platform of gateway ${index} stands`, settled, 30_000);
    }
    expect(harbours.map(({ state }) => state.phase)).toEqual(phases);
  });

  test('a turn is read, followed from its beginning and stopped at the other one', async () => {
    const { one, two } = await both();
    const turnId = await begin(one, 'tool wait');
    const readiness = async () => ({ state: 'ready', checks: {} }) as const;
    const facts = { model: 'scripted', readiness, state: () => 'ready' as const, figures: new Figures() };
    const { turns } = apiBackend({ gateway: two.gateway, ...facts });
    const running = await turns.wait(turnId, 1, AbortSignal.timeout(60_000));
    expect(running).toMatchObject({ turnId, state: 'running', reply: null });
    const followed = await turns.follow(turnId);
    const events: TurnEvent[] = [];
    followed.events?.watch((event) => events.push(event));
    await until('its steps are told', () => events.filter(({ type }) => type === 'tool').length === 2);
    one.runner.release();
    expect(await followed.reply).toMatchObject({ outcome: 'done', text: 'did: tool wait' });
    expect(events.at(-1)).toEqual({ type: 'text', text: 'did: tool wait' });
    const over = await turns.wait(turnId, 60_000, AbortSignal.timeout(60_000));
    expect(over).toMatchObject({ state: 'over', reply: { text: 'did: tool wait' } });
    expect((await rows(one)).map(({ role }) => role)).toEqual(['user', 'assistant', 'tool', 'assistant']);
  });

  test('a turn is stopped over HTTP at the other one, also one that waits', async () => {
    const { one, two } = await both();
    const turnId = await begin(one, 'wait');
    const waiting = await one.gateway.conversations.receive({ conversation, text: 'later', originRef: null });
    const readiness = async () => ({ state: 'ready', checks: {} }) as const;
    const facts = { model: 'scripted', readiness, state: () => 'ready' as const, figures: new Figures() };
    const { turns } = apiBackend({ gateway: two.gateway, ...facts });
    const waitingId = waiting.type === 'turn' ? waiting.received.turn.id : '';
    expect(await turns.stop(waitingId)).toMatchObject({ state: 'over', reply: { outcome: 'interrupted' } });
    expect(await turns.stop(turnId)).toMatchObject({ state: 'over', reply: { outcome: 'interrupted' } });
    expect((await rows(one)).map(({ role, text }) => `${role}: ${text}`)).toEqual([
      'user: wait',
      'assistant: thinking',
    ]);
  });
});

import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Engine } from '../../src/engine/engine.ts';
import type { Store } from '../../src/store/port.ts';
import { bootTestEngine, chatConversation, ENGINES, openTestStore, type TestStore } from '../support/stores.ts';

const MARKER = 'kwyjibozzle';
/** Of a word that the full-text index begins like another one only the rest is kept. */
const REST = MARKER.slice(2);

describe.each(ENGINES)('on %s', (engineName) => {
  let opened: TestStore;
  let store: Store;
  let engine: Engine;

  beforeEach(async () => {
    opened = await openTestStore(engineName);
    store = opened.store;
    engine = await bootTestEngine(store);
  });

  afterEach(() => opened.remove());

  test('a deleted session leaves none of its words anywhere, and others keep theirs', { timeout: 60_000 }, async () => {
    await store.write('subscribe', { name: 'failing', patterns: ['*'], from: 'now' });
    for (let n = 0; n < 40; n++) await talk(n, `harmless words number ${n}`);
    const id = await talk('marked', MARKER);
    await engine.setTitle(id, `title ${MARKER}`);
    await engine.note(id, { command: 'title', args: `to ${MARKER}` });
    const { turn } = await engine.receive(spoken('marked', `still waiting ${MARKER}`));
    await store.write('askApproval', {
      context: engine.commandContext(),
      timeoutMs: 60_000,
      ...{ id: 'apr-1', sessionId: id, turnId: turn.id, tool: 'run_command', askedOf: null },
      summary: `echo ${MARKER}`,
      exact: `run_command echo ${MARKER}`,
    });
    await keepCommand(id);
    await sayOutside(id);
    const child = await engine.start(
      { ...chatConversation('child'), kind: 'child', origin: { background: `look for ${MARKER}` }, attached: true },
      { parentId: id, lineage: 'spawn', title: `look for ${MARKER}` },
    );
    await failFirstEvent('agent:main:telegram:dm:marked');
    while (await store.write('indexMessages', { limit: 500 }));
    expect(await places()).not.toEqual([]);

    await engine.delete(id, 'cli');
    expect(await places()).toEqual([]);
    expect(await store.read('getSession', { sessionId: child.id })).toBeNull();
    // The log still says that the sessions were there, and how they ended.
    for (const sessionId of [id, child.id]) {
      const { events } = await store.read('listEvents', { after: 0, limit: 500, types: [], sessionId });
      expect(events.at(0)?.event).toMatchObject({ type: 'session:start', origin: null });
      expect(events.map(({ event }) => event.type)).toContain('session:end');
    }
    expect((await store.read('checkPromises', { sample: 3 })).filter(({ broken }) => broken > 0)).toEqual([]);
    expect(await engine.store.read('searchMessages', { text: 'harmless number 7', limit: 5 })).toHaveLength(2);
  });

  function spoken(chat: number | string, text: string) {
    return { conversation: chatConversation(chat), text, originRef: null, by: 'user' } as const;
  }

  /** A question and its answer, with the reply on its way. */
  async function talk(chat: number | string, text: string): Promise<string> {
    const { session, turn } = await engine.receive(spoken(chat, text));
    await engine.finish({ sessionId: session.id, epoch: session.epoch }, turn.id, {
      outcome: 'done',
      response: `answer to ${text}`,
      model: 'test',
      usage: null,
      error: null,
      messages: [
        { role: 'user', text, turnId: turn.id },
        { role: 'assistant', text: `answer to ${text} ${'and more '.repeat(2000)}${text}`, turnId: turn.id },
      ],
      deliveries: [{ id: `dlv-${turn.id}`, platform: 'telegram', target: { chat: `${chat}` }, text }],
    });
    return session.id;
  }

  async function keepCommand(sessionId: string): Promise<void> {
    const { commandId } = engine.commandContext();
    for (const ref of ['ref-1', 'ref-2']) {
      await store.write('acceptCommand', {
        ref,
        commandId,
        sessionKey: keyOf('marked'),
        body: 'hash',
        ttlMs: 86_400_000,
      });
      const after = ref === 'ref-1' ? sessionId : null;
      await store.write('settleCommand', { ref, answer: `it was ${MARKER}`, sessionId: after, turnId: null });
    }
  }

  /** The session says something to another conversation, and is told something itself. */
  async function sayOutside(sessionId: string): Promise<void> {
    const context = engine.commandContext();
    const note = `note ${MARKER}`;
    const other = await engine.start(chatConversation('teller'));
    await store.write('addExternalNote', {
      context,
      sessionId: other.id,
      id: 'n1',
      deliveries: [],
      key: keyOf('marked'),
      note,
    });
    const mine = engine.commandContext();
    const deliveries = [{ id: 'n2', platform: 'telegram', target: { chat: '9' }, text: note }];
    await store.write('addExternalNote', {
      context: mine,
      sessionId,
      id: 'n2',
      deliveries,
      key: keyOf('nobody'),
      note,
    });
  }

  /** A hook that says what it was given when it fails. */
  async function failFirstEvent(key: string): Promise<void> {
    const context = engine.commandContext();
    const claim = { context, subscriber: 'failing', queue: 'events/failing', token: 't', again: false };
    const { lanes } = await store.write('claimEvents', { ...claim, limit: 500, retries: 500, eventsPerLane: 2 });
    const lane = lanes.find((each) => each.key === key);
    for (const [i, { no, event, replay }] of (lane?.events ?? []).entries()) {
      await store.write('failEvents', {
        ...{ context, subscriber: 'failing', key, token: 't', delivered: { upTo: no - 1, replayed: [] } },
        failed: { no, eventId: event.id, eventType: event.type, replay },
        ...{ error: `cannot handle ${MARKER}`, attempts: 1, waits: 0, retryInMs: 1000, dead: i === 0 },
      });
      await store.write('claimEvents', { ...claim, again: true, limit: 500, retries: 500, eventsPerLane: 2 });
    }
  }

  function keyOf(chat: string): string {
    return chatConversation(chat).key;
  }

  /** Where the words are: files on SQLite, tables on PostgreSQL. */
  async function places(): Promise<string[]> {
    if (engineName === 'sqlite') {
      const folder = dirname(store.location);
      return readdirSync(folder).filter((name) => readFileSync(join(folder, name)).includes(REST));
    }
    return tablesWith(opened.url);
  }
});

async function tablesWith(url: string): Promise<string[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query("SELECT tablename FROM pg_tables WHERE schemaname = 'moirai' ORDER BY 1");
    const found: string[] = [];
    for (const { tablename } of rows) {
      const sql = `SELECT count(*)::int AS n FROM moirai.${tablename} t WHERE t::text LIKE $1`;
      const { rows: counts } = await client.query(sql, [`%${REST}%`]);
      if (counts[0].n > 0) found.push(`${tablename}: ${counts[0].n}`);
    }
    return found;
  } finally {
    await client.end();
  }
}

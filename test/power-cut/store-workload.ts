import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Engine } from '../../src/engine/engine.ts';
import { timeSortedIds } from '../../src/engine/ids.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import { SqliteStore } from '../../src/store/sqlite/store.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import { between, seededRandom } from './random.ts';
import { checkIntegrity } from './raw-workload.ts';
import type { Workload } from './workload.ts';

const FILE = 'state.db';
const CONVERSATIONS = 60;
/** Several at once, so that commits carry more than one transition. */
const CLIENTS = 4;

/** Moirai's own store under its own threads: whole messages, resets and ends, each acknowledged as it returns. */
export function storeWorkload(): Workload {
  let store: SqliteStore | undefined;
  let random: () => number = () => 0;
  let commits = 0;

  return {
    async open(directory, options) {
      // The store sets FULL and reads it back; that NORMAL would lose transitions, the mutants show.
      if (options.synchronous !== 'FULL') throw new TypeError("Moirai's store runs with FULL only");
      store = await SqliteStore.open(join(directory, FILE), DEFAULT_RESET_RULES);
      random = seededRandom(options.seed);
      commits = options.commits;
    },

    async run(ack) {
      if (store === undefined) throw new TypeError('run before open');
      const engine = await bootEngine(store, random);
      await store.write('subscribe', { name: 'listener', patterns: ['*'], from: 'now' });
      let left = commits;
      const allUntil = (rest: number): Promise<unknown> => {
        const part = async (slot: number): Promise<void> => {
          while (left > rest) left -= await act(engine, random, slot, ack);
        };
        return Promise.all(Array.from({ length: CLIENTS }, (_, slot) => part(slot)));
      };
      // How the store is opened counts until somebody listens; then it changes from commit to commit.
      await allUntil(commits / 2);
      await Promise.all([allUntil(0), listen(engine, () => left > 0)]);
      await store.close();
    },

    async verify(directory, acked) {
      const path = join(directory, FILE);
      if (!existsSync(path)) return acked.map((token) => `${token} was acknowledged and there is no database`);
      try {
        using db = new DatabaseSync(path);
        const created = db.prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name = 'sessions'").get();
        if (created?.n === 0) return acked.map((token) => `${token} was acknowledged and there is no table`);
        return [...checkIntegrity(db), ...checkAcks(db, acked), ...checkTransitions(db)];
      } catch (error) {
        // SQLite refusing to read the file is a finding about that image, not a failure of the harness.
        return [`cannot be read: ${error instanceof Error ? error.message : String(error)}`];
      }
    },
  };
}

function bootEngine(store: SqliteStore, random: () => number): Promise<Engine> {
  const facts = { name: null, version: '0', host: 'h', bootId: null, pidSpace: null, pid: 1, pidStarted: null };
  const ids = timeSortedIds(Date.now, random);
  return Engine.boot({ store, ids, instance: { id: 'ins_1', ...facts }, leaseTtlMs: 600_000 });
}

/** Takes and acknowledges events beside all that: commits that need not survive, between those that must. */
async function listen(engine: Engine, more: () => boolean): Promise<void> {
  const { store } = engine;
  while (more()) {
    const context = engine.commandContext();
    const { lanes } = await store.write('claimEvents', {
      ...{ context, queue: 'events/listener', subscriber: 'listener', token: context.commandId },
      ...{ again: false, limit: 2, retries: 1, eventsPerLane: 16 },
    });
    for (const { subscriber, key, token, upTo } of lanes) {
      const delivered = { upTo, replayed: [] };
      await store.write('ackEvents', { context: engine.commandContext(), subscriber, key, token, delivered });
    }
  }
}

/** One thing somebody does; returns how many commits it took. */
async function act(engine: Engine, random: () => number, slot: number, ack: (token: string) => void): Promise<number> {
  const conversation = conversationOf(slot * CONVERSATIONS + between(random, 1, CONVERSATIONS));
  const text = 'what was said '.repeat(between(random, 1, 60));
  const { session, turn } = await engine.receive({ conversation, text, originRef: null, by: 'user' });
  ack(`turn ${turn.id}`);
  const hold = { sessionId: session.id, epoch: session.epoch };
  const messages = [
    { role: 'user', text, turnId: turn.id },
    { role: 'assistant', text: 'an answer', turnId: turn.id },
  ];
  await engine.finish(hold, turn.id, { outcome: 'done', response: 'an answer', model: null, usage: null, messages });
  ack(`over ${turn.id}`);
  const dice = random();
  if (dice < 0.1) {
    const reset = await engine.reset(conversation, { slash: { command: 'new', args: '' } });
    ack(`ended ${session.id} user_reset`);
    ack(`started ${reset.session.id}`);
    return 3;
  }
  if (dice < 0.25) {
    await engine.end(session.id, { reason: 'api_close', trigger: 'api' });
    ack(`ended ${session.id} api_close`);
    return 3;
  }
  return 2;
}

function conversationOf(chat: number): ConversationRef {
  const key = `agent:main:telegram:dm:${chat}`;
  return { key, kind: 'chat', platform: 'telegram', userId: 'u', origin: { chat }, attached: false };
}

function checkAcks(db: DatabaseSync, acked: readonly string[]): string[] {
  const turns = new Map(
    db
      .prepare('SELECT id, state FROM turns')
      .all()
      .map((row) => [row.id, row.state]),
  );
  const sessions = new Map(
    db
      .prepare('SELECT id, end_reason FROM sessions')
      .all()
      .map((row) => [row.id, row.end_reason]),
  );
  const holds = (token: string): boolean => {
    const [what, id = '', reason] = token.split(' ');
    if (what === 'turn') return turns.has(id);
    if (what === 'over') return turns.get(id) === 'over';
    if (what === 'started') return sessions.has(id);
    return sessions.get(id) === reason;
  };
  return acked.filter((token) => !holds(token)).map((token) => `"${token}" was acknowledged and is not there`);
}

/** Row, log and lane of a transition stand or fall together. */
function checkTransitions(db: DatabaseSync): string[] {
  const rules = {
    'has another number of events than its row says': `SELECT s.id FROM sessions s WHERE s.seq <>
      (SELECT count(*) FROM events e WHERE e.session_key = s.key AND e.session_id = s.id AND e.session_seq IS NOT NULL)`,
    'is ended without its event, or the other way round': `SELECT s.id FROM sessions s WHERE (s.state = 'ended') <>
      EXISTS (SELECT 1 FROM events e WHERE e.session_id = s.id AND e.type = 'session:end')`,
    'has another number of messages than its row says': `SELECT s.id FROM sessions s WHERE s.message_count <>
      (SELECT count(*) FROM messages m WHERE m.session_id = s.id)`,
    'has an event after the last one of its lane': `SELECT e.session_id AS id FROM events e
      JOIN lanes l ON l.queue LIKE 'events/%' AND l.key = e.session_key WHERE e.no > l.last_no`,
  };
  return Object.entries(rules).flatMap(([what, sql]) =>
    db
      .prepare(`${sql} LIMIT 3`)
      .all()
      .map((row) => `session ${row.id} ${what}`),
  );
}

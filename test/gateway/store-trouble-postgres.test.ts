import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { someOf } from '../support/full-run.ts';
import { createDatabase, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { type PostgresProxy, startPostgresProxy } from '../support/postgres-proxy.ts';
import { TroubleScene } from './trouble-scene.ts';

const CHATS = 3;
const TIMES = 10;
/** A lease that is lost in a trouble of some seconds. */
const SHORT_LEASE = { sessions: { heartbeat: '1s', lease_ttl: '8s' } };

interface Place {
  readonly proxy: PostgresProxy;
  /** The database without the proxy in between. */
  readonly url: string;
  readonly scene: TroubleScene;
  readonly server: PostgresServer | null;
}

interface Trouble {
  readonly name: string;
  readonly settings?: Record<string, unknown>;
  /** It needs a server of its own. */
  readonly ownServer?: true;
  readonly everyDay?: true;
  /** Nothing can be written meanwhile: `/ready` has to say so. */
  readonly blocks?: true;
  /** How many leases are lost by it, where that is certain. */
  readonly leases?: number;
  /** Returns how it ends, where it has not ended yet. */
  cause(place: Place): Promise<(() => unknown) | undefined>;
}

const TROUBLES: readonly Trouble[] = [
  {
    name: 'is silent for 30 s',
    blocks: true,
    leases: 0,
    async cause({ proxy, scene }) {
      proxy.silence();
      await scene.talk(30_000);
      return () => proxy.restore();
    },
  },
  {
    name: 'is silent for longer than a lease',
    settings: SHORT_LEASE,
    blocks: true,
    leases: 1,
    async cause({ proxy, scene }) {
      proxy.silence();
      await scene.talk(15_000);
      return () => proxy.restore();
    },
  },
  {
    name: 'refuses connections for 10 s',
    everyDay: true,
    blocks: true,
    leases: 0,
    async cause({ proxy, scene }) {
      await proxy.refuse();
      await scene.talk(10_000);
      return () => proxy.restore();
    },
  },
  {
    name: 'is restarted without warning',
    ownServer: true,
    async cause({ server, scene }) {
      const talking = scene.talk(5000);
      await server?.restartImmediately();
      await talking;
      return undefined;
    },
  },
  {
    name: 'is frozen for 20 s',
    ownServer: true,
    settings: SHORT_LEASE,
    blocks: true,
    async cause({ server, scene }) {
      const thaw = await server?.freeze();
      await scene.talk(20_000);
      return thaw;
    },
  },
  {
    name: 'ends all connections ten times',
    leases: 0,
    async cause({ url, scene }) {
      const talking = scene.talk(TIMES * 1000);
      for (let n = 0; n < TIMES; n++) {
        await onServer(url, (client) => client.query(TERMINATE));
        await sleep(1000);
      }
      await talking;
      return undefined;
    },
  },
  {
    name: 'commits ten times without an answer',
    everyDay: true,
    leases: 0,
    async cause({ proxy, scene }) {
      const talking = scene.talk(TIMES * 700);
      for (let n = 0; n < TIMES; n++) {
        await proxy.troubleNextCommit('cut-after');
        await sleep(500);
      }
      await talking;
      return undefined;
    },
  },
  {
    name: 'has its tables locked by a stranger for 15 s',
    blocks: true,
    leases: 0,
    async cause({ url, scene }) {
      const client = await connect(url);
      await client.query('BEGIN');
      await client.query(
        'LOCK TABLE sessions, turns, messages, events, lanes, deliveries, instances IN EXCLUSIVE MODE',
      );
      await scene.talk(15_000);
      return () => client.end();
    },
  },
  {
    name: 'gets new columns and words on its channel that are no hints',
    everyDay: true,
    leases: 0,
    async cause({ url, scene }) {
      await onServer(url, async (client) => {
        for (const table of ['sessions', 'turns', 'events', 'lanes', 'deliveries', 'instances', 'messages']) {
          await client.query(`ALTER TABLE ${table} ADD COLUMN added_by_a_stranger text`);
          for (const words of ['', 'no JSON', '{', '[]', 'null', '{"queues":7}', 'x'.repeat(7000)]) {
            await client.query('SELECT pg_notify($1, $2)', ['moirai', words]);
          }
          await scene.talk(500);
        }
      });
      return undefined;
    },
  },
];

const TERMINATE = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND pid <> pg_backend_pid()`;

describe.concurrent('a gateway whose PostgreSQL', () => {
  test.for(someOf(TROUBLES, ({ everyDay }) => everyDay === true))(
    '$name answers every message once and in order, in the same process',
    { timeout: 300_000 },
    async (trouble, { onTestFinished }) => {
      const opened: (() => Promise<void>)[] = [];
      onTestFinished(async () => {
        for (const close of opened.reverse()) await close();
      });
      const place = await openPlace(trouble, opened);
      const { scene } = place;
      await scene.talk(2000);
      const began = performance.now();
      const recover = await trouble.cause(place);
      const ended = performance.now();
      await recover?.();
      await scene.talk(2000);
      await scene.expectAllAnswered();
      if (trouble.blocks) scene.expectHonest(began, ended, ['store_unreachable', 'store_locked']);
      const lost = await scene.expectOneLeaseAtATime();
      if (trouble.leases !== undefined) expect(lost).toBe(trouble.leases);
    },
  );
});

async function openPlace({ settings = {}, ownServer }: Trouble, opened: (() => Promise<void>)[]): Promise<Place> {
  const server = ownServer === true ? await startPostgres() : null;
  if (server !== null) opened.push(() => server.stop());
  const database = await createDatabase(server?.url);
  if (server === null) opened.push(() => database.drop());
  const { url } = database;
  const proxy = await startPostgresProxy(url);
  opened.push(() => proxy.close());
  const store = { url: proxy.through(url) };
  const scene = await TroubleScene.open({ settings: { ...settings, store }, chats: CHATS, storeUrl: url });
  opened.push(() => scene.close());
  return { proxy, url, scene, server };
}

async function onServer<T>(url: string, act: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect(url);
  try {
    return await act(client);
  } finally {
    await client.end();
  }
}

async function connect(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, options: '-c search_path=moirai' });
  client.on('error', () => undefined); // Whoever asks next is told.
  await client.connect();
  return client;
}

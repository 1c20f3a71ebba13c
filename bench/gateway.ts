import { closeSync, fsyncSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { parseArgs } from 'node:util';
import { DEFAULT_RESET_RULES } from '../src/lifecycle/reset-policy.ts';
import { openStore } from '../src/store/open-store.ts';
import { GatewayProcess } from '../test/gateway/process.ts';
import { sqliteFiller } from './engines.ts';
import { fill } from './fill.ts';
import { INSTANCE, type Rate, rateOf } from './load.ts';
import { startModelProcess } from './model-process.ts';
import { Report } from './report.ts';
import { fillMostlyEnded, LIVE, measureSpace } from './space.ts';
import { measurePage } from './space-page.ts';
import { measureTelegram } from './telegram.ts';

const USAGE = `npm run bench:gateway -- [--parts throughput,telegram,memory,endurance,space] [--conversations 5000] [--turns 100000] [--json]`;

const OVERHEAD_MS = 25;
const RESIDENT_MB = 500;
const READY_MS = 2000;

const { values } = parseArgs({
  options: {
    parts: { type: 'string', default: 'throughput,telegram,memory,endurance,space' },
    conversations: { type: 'string', default: '5000' },
    turns: { type: 'string', default: '100000' },
    json: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});
const report = new Report();

/** A gateway with a store that holds so many sessions, and a model that answers at once. */
async function withGateway(
  prepare: (database: DatabaseSync) => Promise<void>,
  measure: (gateway: GatewayProcess, readyMs: number, modelUrl: string) => Promise<void>,
): Promise<void> {
  const model = await startModelProcess();
  const gateway = new GatewayProcess({
    model: { base_url: model.url, name: 'fake-model', api_key: 'key', context_window: 4_000_000 },
    log: { level: 'warn' },
  });
  try {
    const file = join(gateway.home, 'state.db');
    await (await openStore(`sqlite:${file}`, '', DEFAULT_RESET_RULES)).close();
    const database = new DatabaseSync(file);
    database.exec('PRAGMA synchronous = OFF; PRAGMA cache_size = -262144');
    await prepare(database);
    database.exec('PRAGMA wal_checkpoint(TRUNCATE)');
    database.close();
    // What filling left to be written is not measured with the rest.
    const filled = openSync(file, 'r');
    fsyncSync(filled);
    closeSync(filled);
    await measure(gateway, await gateway.start(), model.url);
  } finally {
    await gateway.close();
    model.close();
  }
}

/** Turns over HTTP, one after the other in each of so many conversations. */
async function talk(gateway: GatewayProcess, conversations: number, until: (turns: number) => boolean): Promise<Rate> {
  const latencies: number[] = [];
  const began = performance.now();
  const client = async (c: number): Promise<void> => {
    while (!until(latencies.length)) {
      const sent = performance.now();
      const answer = await gateway.chat({ text: 'hello', conversation: `bench-${c}-${latencies.length % 50}` });
      if (answer.status !== 200) throw new TypeError(`the gateway answered ${JSON.stringify(answer)}`);
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: conversations }, (_, c) => client(c)));
  return rateOf(latencies, performance.now() - began);
}

/** The same question put to the model server by nobody in between: what a turn costs without us. */
async function askModel(url: string, until: () => boolean): Promise<Rate> {
  const latencies: number[] = [];
  const began = performance.now();
  const messages = [{ role: 'user', content: 'hello' }];
  const body = JSON.stringify({ model: 'fake-model', stream: true, messages });
  const headers = { 'content-type': 'application/json' };
  while (!until()) {
    const sent = performance.now();
    await (await fetch(`${url}/chat/completions`, { method: 'POST', headers, body })).text();
    latencies.push(performance.now() - sent);
  }
  return rateOf(latencies, performance.now() - began);
}

function forMs(ms: number): () => boolean {
  const began = performance.now();
  return () => performance.now() - began > ms;
}

async function measureThroughput(sessions: number): Promise<void> {
  const at = `at ${sessions / 1000} k sessions`;
  report.progress(`gateway: filling ${sessions} sessions`);
  await withGateway(
    (database) => fill(sqliteFiller(database), { sessions }, () => undefined),
    async (gateway, readyMs, modelUrl) => {
      report.add('sqlite', `ready ${at}`, `${readyMs.toFixed(0)} ms`, `< ${READY_MS} ms`, readyMs < READY_MS);
      await talk(gateway, 4, forMs(3000));
      await askModel(modelUrl, forMs(1000));
      const bare = await askModel(modelUrl, forMs(4000));
      report.add('sqlite', 'the model asked directly', shown(bare));
      for (const conversations of [1, 16]) {
        report.progress(`gateway: turns ${at}, ${conversations} at once`);
        const rate = await talk(gateway, conversations, forMs(8000));
        report.add('sqlite', `turns over HTTP ${at}, ${conversations} at once`, shown(rate));
        if (conversations > 1) continue;
        const overhead = rate.p99 - bare.p50;
        const figure = '  overhead of a turn: its p99 without the p50 of the model';
        report.add('sqlite', figure, `${overhead.toFixed(1)} ms`, `< ${OVERHEAD_MS} ms`, overhead < OVERHEAD_MS);
      }
    },
  );
}

function shown({ perSecond, p50, p99 }: Rate): string {
  return `${perSecond.toFixed(0)} /s (p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms)`;
}

const MESSAGES = 50;
const MESSAGE_CHARS = 20_000;

/** Long conversations, each served once: memory must not grow with how many there are. */
async function measureMemory(conversations: number): Promise<void> {
  report.progress(`gateway: filling ${conversations} conversations with ${(MESSAGES * MESSAGE_CHARS) / 1e6} MB each`);
  await withGateway(
    async (database) => fillLong(database, conversations),
    async (gateway) => {
      const seen: number[] = [];
      for (let c = 1; c <= conversations; c++) {
        const answer = await gateway.chat({ text: 'and now?', conversation: `long-${c}` });
        if (answer.status !== 200) throw new TypeError(`the gateway answered ${JSON.stringify(answer)}`);
        if (c % Math.ceil(conversations / 10) === 0) {
          seen.push(residentMb(gateway.pid));
          report.progress(`gateway: ${c} long conversations, ${seen.at(-1)?.toFixed(0)} MB`);
        }
      }
      const most = Math.max(...seen);
      const curve = seen.map((mb) => mb.toFixed(0)).join(', ');
      report.add(
        'sqlite',
        `resident memory over ${conversations} conversations of 1 MB`,
        `${curve} MB`,
        `< ${RESIDENT_MB} MB`,
        most < RESIDENT_MB,
      );
    },
  );
}

function fillLong(database: DatabaseSync, conversations: number): void {
  const at = Date.now();
  const numbers = sqliteFiller(database).numbers(1, conversations);
  const id = `'ses_long' || printf('%08d', n)`;
  database.exec(`INSERT INTO sessions (id, key, kind, platform, attached, started_at, state, last_activity_at, expires_at,
      expires_cause, check_at, message_count, tokens_in, tokens_out, epoch, cuts, background, seq, version, recent_commands)
    SELECT ${id}, 'agent:main:api:dm:long-' || n, 'api', 'api', 0, ${at}, 'open', ${at}, ${at + 86_400_000}, 'idle',
      ${at + 86_400_000}, ${MESSAGES}, 0, 0, 0, 0, 0, 1, 1, '' FROM ${numbers}`);
  database.exec(`INSERT INTO events (session_id, session_seq, session_key, type, at, body)
    SELECT ${id}, 1, 'agent:main:api:dm:long-' || n, 'session:start', ${at},
      '{"id":"' || ${id} || ':1","type":"session:start","session_id":"' || ${id} || '","instance":"${INSTANCE}"}' FROM ${numbers}`);
  for (let position = 1; position <= MESSAGES; position++) {
    const role = position % 2 === 1 ? 'user' : 'assistant';
    database.exec(`INSERT INTO messages (session_id, position, role, text, at)
      SELECT ${id}, ${position}, '${role}', printf('%.${MESSAGE_CHARS}c', 'x'), ${at} FROM ${numbers}`);
  }
}

/** Many turns: descriptors, the write-ahead log and memory stay where they are. */
async function measureEndurance(turns: number): Promise<void> {
  await withGateway(
    async () => undefined,
    async (gateway) => {
      const seen: { files: number; walMb: number; mb: number }[] = [];
      for (let part = 1; part <= 10; part++) {
        const goal = turns / 10;
        await talk(gateway, 16, (done) => done >= goal);
        const walMb = statSync(join(gateway.home, 'state.db-wal')).size / 1e6;
        seen.push({ files: readdirSync(`/proc/${gateway.pid}/fd`).length, walMb, mb: residentMb(gateway.pid) });
        report.progress(`gateway: ${part * goal} turns, ${JSON.stringify(seen.at(-1))}`);
      }
      const list = (pick: (one: (typeof seen)[number]) => number): string =>
        seen.map((one) => pick(one).toFixed(0)).join(', ');
      // Kept-alive connections come and go; what must not happen is that there are more as time goes by.
      const [early, late] = [seen.slice(0, 5), seen.slice(5)].map((half) =>
        Math.max(...half.map(({ files }) => files)),
      );
      const steady = (late ?? 0) - (early ?? 0) <= 4;
      report.add(
        'sqlite',
        `open files over ${turns} turns`,
        list((one) => one.files),
        'no growth',
        steady,
      );
      report.add(
        'sqlite',
        '  write-ahead log',
        `${list((one) => one.walMb)} MB`,
        '< 100 MB',
        seen.every((one) => one.walMb < 100),
      );
      report.add(
        'sqlite',
        '  resident memory',
        `${list((one) => one.mb)} MB`,
        `< ${RESIDENT_MB} MB`,
        seen.every((one) => one.mb < RESIDENT_MB),
      );
    },
  );
}

function residentMb(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;
}

if (values.help) process.stdout.write(`${USAGE}\n`);
else {
  const parts = values.parts.split(',');
  if (parts.includes('throughput')) for (const sessions of [1000, 100_000]) await measureThroughput(sessions);
  if (parts.includes('telegram')) await measureTelegram(report);
  if (parts.includes('memory')) await measureMemory(Number(values.conversations));
  if (parts.includes('endurance')) await measureEndurance(Number(values.turns));
  if (parts.includes('space')) {
    const prepare = (database: DatabaseSync): Promise<void> => fillMostlyEnded(database, report);
    await withGateway(prepare, async (gateway) => {
      await measureSpace(report, gateway);
      await measurePage(report, gateway, LIVE);
    });
  }
  process.stdout.write(values.json ? `${JSON.stringify(report.figures, null, 2)}\n` : `${report.table()}\n`);
}

import { Agent, get } from 'node:http';
import type { DatabaseSync } from 'node:sqlite';
import type { GatewayProcess } from '../test/gateway/process.ts';
import { sqliteFiller } from './engines.ts';
import { fill } from './fill.ts';
import type { Report } from './report.ts';

/** Fewer for a quick look. */
const SESSIONS = Number(process.env.BENCH_SESSIONS ?? 1_000_000);
export const LIVE = 10_000;
const CLIENTS = 20;
const POLL_MS = 1000;
const MEASURE_MS = 20_000;
const SNAPSHOT_MS = 50;
const UNCHANGED_MS = 2;

/** A store in which nearly everything has ended, over the last week. */
export async function fillMostlyEnded(database: DatabaseSync, report: Report): Promise<void> {
  await fill(sqliteFiller(database), { sessions: SESSIONS }, (done) => {
    if (done % 200_000 === 0) report.progress(`space: ${done} sessions filled`);
  });
  const now = Date.now();
  database.exec(`UPDATE sessions SET state = 'ended', end_reason = 'idle_expiry', end_cause = 'idle', expires_at = NULL,
      expires_cause = NULL, check_at = NULL, started_at = ${now} - 600000 - (rowid * 604), ended_at = ${now} - (rowid * 604)
    WHERE rowid > ${LIVE}`);
  report.progress(`space: all but ${LIVE} ended`);
}

/** What visualizers ask for, while nothing happens and while people talk. */
export async function measureSpace(report: Report, gateway: GatewayProcess): Promise<void> {
  const first = await ask(gateway, {});
  report.add('sqlite', `first snapshot of ${LIVE} open sessions among ${SESSIONS / 1e6} M`, ms([first.ms], 0));
  report.add('sqlite', '  its size', `${(first.bytes / 1e6).toFixed(1)} MB`);
  await poll(gateway, {}, 3000);
  report.progress('space: a quiet store');
  goal(report, `snapshot, ${CLIENTS} clients each second, nothing happens`, await poll(gateway, {}), SNAPSHOT_MS);
  report.progress('space: people talk');
  const talking = talk(gateway);
  goal(report, `snapshot, ${CLIENTS} clients each second, 10 messages a second`, await poll(gateway, {}), SNAPSHOT_MS);
  await talking.stop();
  const { etag } = await ask(gateway, {});
  report.progress('space: nothing has changed');
  const unchanged = await oneByOne(gateway, { 'if-none-match': etag });
  goal(report, 'a poll with an unchanged tag (304), one after the other', unchanged, UNCHANGED_MS);
  const health = await oneByOne(gateway, {}, '/health');
  report.add('sqlite', '  beside it: /health, which does nothing', shown(health));
  const timeline = await oneByOne(gateway, {}, '/v1/space/timeline?from=24h', 20);
  report.add('sqlite', 'the timeline of a day (143,000 starts and ends)', ms(timeline, 0.5));
}

function goal(report: Report, what: string, latencies: readonly number[], limit: number): void {
  const p99 = quantile(latencies, 0.99);
  report.add('sqlite', what, shown(latencies), `p99 < ${limit} ms`, p99 < limit);
}

function shown(latencies: readonly number[]): string {
  const [p50, p99] = [quantile(latencies, 0.5), quantile(latencies, 0.99)];
  return `p50 ${p50.toFixed(1)} ms, p99 ${p99.toFixed(1)} ms (${latencies.length})`;
}

function ms(latencies: readonly number[], q: number): string {
  return `${quantile(latencies, q).toFixed(1)} ms`;
}

function quantile(latencies: readonly number[], q: number): number {
  return latencies.toSorted((a, b) => a - b)[Math.floor(latencies.length * q)] ?? 0;
}

/** Clients that come at moments of their own, each once a second. */
async function poll(gateway: GatewayProcess, headers: Record<string, string>, forMs = MEASURE_MS): Promise<number[]> {
  const latencies: number[] = [];
  const end = performance.now() + forMs;
  const client = async (): Promise<void> => {
    await pause(Math.random() * POLL_MS);
    while (performance.now() < end) {
      const answer = await ask(gateway, headers);
      latencies.push(answer.ms);
      await pause(Math.max(0, POLL_MS - answer.ms));
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return latencies;
}

async function oneByOne(
  gateway: GatewayProcess,
  headers: Record<string, string>,
  path = '/v1/space/activity',
  times = 1000,
): Promise<number[]> {
  const latencies: number[] = [];
  for (let i = 0; i < times; i++) latencies.push((await ask(gateway, headers, path)).ms);
  return latencies;
}

function pause(time: number): Promise<void> {
  return new Promise((done) => setTimeout(done, time));
}

interface Answer {
  readonly ms: number;
  readonly bytes: number;
  readonly etag: string;
}

const agent = new Agent({ keepAlive: true });

function ask(gateway: GatewayProcess, headers: Record<string, string>, path = '/v1/space/activity'): Promise<Answer> {
  const sent = performance.now();
  return new Promise((resolve, reject) => {
    const asked = get(new URL(path, gateway.url), { agent, headers }, (answer) => {
      let bytes = 0;
      answer.on('data', (chunk: Buffer) => {
        bytes += chunk.length;
      });
      answer.on('error', reject);
      answer.on('end', () => resolve({ ms: performance.now() - sent, bytes, etag: answer.headers.etag ?? '' }));
    });
    asked.on('error', (error) => {
      // The gateway closes a connection that nobody used for a while; who uses it just then asks again.
      if (asked.reusedSocket) resolve(ask(gateway, headers, path));
      else reject(error);
    });
  });
}

function talk(gateway: GatewayProcess): { stop(): Promise<void> } {
  let n = 0;
  const under: Promise<unknown>[] = [];
  const timer = setInterval(() => under.push(gateway.chat({ text: 'hello', conversation: `space-${n++ % 50}` })), 100);
  return {
    stop: async () => {
      clearInterval(timer);
      await Promise.all(under);
    },
  };
}

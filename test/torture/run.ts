import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { createDatabase, type PostgresServer, startPostgres } from '../support/postgres.ts';
import { checkEverything, type Figures } from './check.ts';
import { Fleet } from './fleet.ts';
import { Follower } from './follower.ts';
import { drawPlan, type Fault, killsOf, planText } from './plan.ts';
import { openSql, type Sql, whole } from './sql.ts';
import { Violations } from './violations.ts';

export interface TortureOptions {
  readonly engine: 'sqlite' | 'postgres';
  readonly kills: number;
  readonly seed: number;
  readonly workers: number;
  /** How often the PostgreSQL server is killed. */
  readonly serverCrashes: number;
  /** Keep the evidence also when nothing is wrong. */
  readonly keep: boolean;
}

export interface TortureReport {
  readonly violations: readonly string[];
  readonly figures: Figures;
  readonly kills: { readonly killed: number; readonly paused: number; readonly crashed: number };
  readonly seconds: number;
  /** Where the evidence is, when it was kept. */
  readonly evidence: string | undefined;
}

const DRAIN_MS = 45_000;
const EVIDENCE = ['instances', 'sessions', 'turns', 'events', 'subscribers', 'lanes', 'dead_letters', 'deliveries'];

/** Runs processes on one store, kills and pauses them by plan, lets them settle, and checks everything. */
export async function runTorture(options: TortureOptions, log: (line: string) => void): Promise<TortureReport> {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), 'moirai-torture-')));
  const plan = drawPlan(options);
  log(`in ${directory}\nplan: ${planText(plan)}`);
  writeFileSync(join(directory, 'plan.txt'), `${JSON.stringify(options)}\n${planText(plan)}\n`);
  const place = await openPlace(options, directory);
  const violations = new Violations();
  const started = performance.now();
  try {
    const { kills, followed } = await torture(options, { plan, directory, place, violations, log });
    log(`settled after ${seconds(started)} s; checking`);
    const sql = await openSql(place.url);
    const figures = await checkEverything(sql, join(directory, 'journals'), followed, violations);
    const keep = options.keep || violations.total > 0;
    if (keep) await keepEvidence(sql, directory, violations);
    await sql.close();
    if (!keep) rmSync(directory, { recursive: true });
    const evidence = keep ? directory : undefined;
    return { violations: violations.lines, figures, kills, seconds: Number(seconds(started)), evidence };
  } finally {
    await place.close();
  }
}

interface Scene {
  readonly plan: readonly Fault[];
  readonly directory: string;
  readonly place: Place;
  readonly violations: Violations;
  readonly log: (line: string) => void;
}

async function torture(
  options: TortureOptions,
  scene: Scene,
): Promise<{ kills: TortureReport['kills']; followed: string[] }> {
  const { directory, place, violations } = scene;
  const journals = join(directory, 'journals');
  mkdirSync(journals);
  const task = { url: place.url, directory: journals, seed: options.seed, serverCrashes: options.serverCrashes > 0 };
  const wrong = (what: string): void => violations.add('a process misbehaved', what);
  const fleet = new Fleet({ task, workers: options.workers, wrong });
  const follower = await Follower.open(place.url, directory);
  try {
    fleet.start();
    const crashed = await execute(options, scene, fleet);
    await fleet.drain();
    const sql = await openSql(place.url);
    await settled(sql, 'while the workers ran', violations);
    await fleet.stop();
    await fleet.sweep(() => settled(sql, 'after the workers stopped', violations));
    await sql.close();
    return { kills: { ...fleet.kills, crashed }, followed: follower.ids };
  } finally {
    await fleet.killAll();
    await follower.finish();
  }
}

/** Does what the plan says, and tells how far it got. Returns how often the server was crashed. */
async function execute(options: TortureOptions, { plan, place, log }: Scene, fleet: Fleet): Promise<number> {
  const started = performance.now();
  let crashed = 0;
  let done = 0;
  for (const fault of plan) {
    await sleep(fault.afterMs);
    if (fault.fault === 'server') {
      await place.crash();
      crashed++;
      continue;
    }
    await fleet.suffer(fault);
    const step = Math.max(5, Math.ceil(options.kills / 10));
    const before = Math.floor(done / step);
    done += killsOf(fault, options.workers);
    if (Math.floor(done / step) > before) {
      const crashes = crashed > 0 ? `, ${crashed} server crashes` : '';
      log(`${done}/${options.kills} kills (${fleet.kills.paused} of them pauses)${crashes}, ${seconds(started)} s`);
    }
  }
  return crashed;
}

/** Waits until nothing is left to be delivered or to expire. */
async function settled(sql: Sql, when: string, violations: Violations): Promise<void> {
  const deadline = Date.now() + DRAIN_MS;
  for (;;) {
    const [row] = await sql.all(
      `SELECT (SELECT count(*) FROM lanes WHERE queue <> 'ticks') AS lanes,
         (SELECT count(*) FROM sessions WHERE expires_at <= ?) AS overdue,
         (SELECT count(*) FROM sessions s JOIN instances i ON i.id = s.owner WHERE i.state = 'dead') AS orphans`,
      Date.now(),
    );
    if (row !== undefined && whole(row, 'lanes') + whole(row, 'overdue') + whole(row, 'orphans') === 0) return;
    if (Date.now() > deadline) {
      const lanes = await sql.all("SELECT * FROM lanes WHERE queue <> 'ticks' LIMIT 3");
      const example = `${when}: ${JSON.stringify(row)}, such as ${JSON.stringify(lanes)}`;
      violations.add(`not everything was settled in ${DRAIN_MS / 1000} s`, example);
      return;
    }
    await sleep(100);
  }
}

/** Where the store is, and what can be done to it. */
interface Place {
  readonly url: string;
  crash(): Promise<void>;
  close(): Promise<void>;
}

async function openPlace(options: TortureOptions, directory: string): Promise<Place> {
  if (options.engine === 'sqlite') {
    return {
      url: `sqlite:${join(directory, 'moirai.db')}`,
      crash: async () => undefined,
      close: async () => undefined,
    };
  }
  // The run's own server, unless one is given that need not be crashed.
  const given = options.serverCrashes === 0 ? process.env.MOIRAI_TEST_PG : undefined;
  const server: PostgresServer | undefined = given ? undefined : await startPostgres();
  const database = await createDatabase(server?.url ?? given);
  const close = async (): Promise<void> => {
    await database.drop();
    await server?.stop();
  };
  return { url: database.url, crash: async () => server?.crash(), close };
}

/** What is needed to see what happened when the processes and the server are gone. */
async function keepEvidence(sql: Sql, directory: string, violations: Violations): Promise<void> {
  writeFileSync(join(directory, 'violations.txt'), `${violations.lines.join('\n')}\n`);
  if (sql.engine === 'sqlite') return;
  for (const table of EVIDENCE) {
    const rows = await sql.all(`SELECT * FROM ${table}`);
    writeFileSync(join(directory, `${table}.ndjson`), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  }
}

function seconds(since: number): string {
  return ((performance.now() - since) / 1000).toFixed(1);
}

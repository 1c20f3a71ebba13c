import { mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { until } from '../cli/cli-fixture.ts';
import { someOf } from '../support/full-run.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { GatewayProcess } from './process.ts';

const folder = mkdtempSync(join(tmpdir(), 'moirai-backup-'));
const file = join(folder, 'kept.db');
const opened: GatewayProcess[] = [];
const databases: TestDatabase[] = [];

afterEach(async () => {
  for (const gateway of opened.splice(0)) await gateway.close();
  for (const database of databases.splice(0)) await database.drop();
  rmSync(file, { force: true });
});

afterAll(() => rmSync(folder, { recursive: true }));

/** A gateway in a home of its own, on a store of its own. */
async function gatewayOn(engine: 'sqlite' | 'postgres'): Promise<GatewayProcess> {
  let settings = {};
  if (engine === 'postgres') {
    const database = await createDatabase();
    databases.push(database);
    settings = { store: { url: database.url } };
  }
  const gateway = new GatewayProcess(settings);
  opened.push(gateway);
  return gateway;
}

/** Conversations that write one message after the other; each is noted once it was answered. */
function startLoad(gateway: GatewayProcess): { answered: string[]; stop(): Promise<void> } {
  const answered: string[] = [];
  let stopped = false;
  const conversations = ['a', 'b', 'c'].map(async (conversation) => {
    for (let n = 1; !stopped; n++) {
      const text = `${conversation}-${n}-word`;
      const { status } = await gateway.chat({ text, conversation });
      expect(status).toBe(200);
      answered.push(text);
    }
  });
  const stop = async (): Promise<void> => {
    stopped = true;
    await Promise.all(conversations);
  };
  return { answered, stop };
}

const PAIRS = [
  ['sqlite', 'sqlite'],
  ['postgres', 'postgres'],
  ['sqlite', 'postgres'],
  ['postgres', 'sqlite'],
] as const;

test.each(someOf(PAIRS, ([from, to]) => from === to))(
  'a backup of %s under load, restored into %s at another place, has every message that was answered before it',
  { timeout: 120_000 },
  async (from, to) => {
    const gateway = await gatewayOn(from);
    await gateway.start();
    const load = startLoad(gateway);
    await until('there is load', () => load.answered.length > 30, 30_000);
    const before = [...load.answered];
    const taken = await gateway.moirai('backup', file, '--json');
    expect(taken).toMatchObject({ code: 0 });
    await load.stop();
    expect(JSON.parse(taken.output)).toMatchObject({ file, engine: from, sessions: 3, bytes: statSync(file).size });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(readdirSync(folder)).toEqual(['kept.db']);
    // A backup is not replaced by accident, and restoring under a running gateway is refused.
    expect((await gateway.moirai('backup', file)).errors).toContain('[backup_exists]');
    expect((await gateway.moirai('restore', file, '--force')).errors).toContain('[gateway_running]');
    const doctor = JSON.parse((await gateway.moirai('doctor', '--json')).output);
    expect(doctor.checks.find(({ check }: { check: string }) => check === 'backup')).toMatchObject({
      status: 'ok',
      details: { file },
    });
    await gateway.end('SIGKILL');

    const other = await gatewayOn(to);
    expect(await other.moirai('restore', file)).toMatchObject({ code: 0 });
    expect(await other.moirai('doctor')).toMatchObject({ code: 0, output: expect.stringContaining('All is well.') });
    await other.start();
    const { data } = await other.get<{ data: { id: string }[] }>('/v1/sessions?kind=api');
    const texts: string[] = [];
    for (const { id } of data) {
      const page = await other.get<{ data: { text: string }[] }>(`/v1/sessions/${id}/messages?limit=500`);
      texts.push(...page.data.map(({ text }) => text));
    }
    expect(before.filter((text) => !texts.includes(text))).toEqual([]);
    // What was cut by the backup goes on, and so do the conversations.
    expect(await other.chat({ text: 'and now', conversation: 'a' })).toMatchObject({ status: 200, outcome: 'done' });
    await until('nothing is left running', async () => {
      const { output } = await other.moirai('sessions', 'stats', '--json');
      return JSON.parse(output).open_unowned === 0;
    });
    expect((await other.moirai('doctor')).code).toBe(0);
  },
);

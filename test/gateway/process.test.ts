import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import pg from 'pg';
import { afterEach, describe, expect, test } from 'vitest';
import { launcher } from '../cli/cli-fixture.ts';
import type { HttpFake, RecordedMessage } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { patience } from '../support/patience.ts';
import { createDatabase } from '../support/postgres.ts';
import { startPostgresProxy } from '../support/postgres-proxy.ts';
import { GatewayProcess } from './process.ts';

let gateway: GatewayProcess;
let model: HttpFake | null = null;

afterEach(async () => {
  await gateway.close();
  await model?.close();
  model = null;
});

async function begin(script: ModelScript, settings: Record<string, unknown> = {}): Promise<void> {
  model = await startOpenAiServer(script);
  gateway = new GatewayProcess({ model: { base_url: model.url, name: 'fake-model', api_key: 'key' }, ...settings });
  await gateway.start();
}

async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + patience(15_000);
  while (!(await holds())) {
    if (performance.now() > deadline) throw new TypeError(`in vain: ${what}\n${gateway.log}`);
    await new Promise((resume) => setTimeout(resume, 20));
  }
}

const asked = (): number => (model === null ? 0 : questions(model).length);
const messagesOf = (question: number): readonly RecordedMessage[] =>
  (model === null ? [] : questions(model))[question]?.body.messages ?? [];

async function agentEvents(): Promise<string[]> {
  const events = await gateway.events('agent:start,agent:end,session:resume_pending,session:resume,session:suspend');
  return events.map(({ type }) => String(type));
}

describe('with nothing configured', () => {
  test('it is ready soon and answers', async () => {
    gateway = new GatewayProcess();
    expect(await gateway.start()).toBeLessThan(patience(5000));
    const answer = await gateway.chat({ text: 'hello' });
    expect(answer).toMatchObject({ status: 200, outcome: 'done' });
    expect(answer.reply).toContain('offline');
    expect(await gateway.get('/ready')).toMatchObject({ state: 'ready' });
    expect(await gateway.end('SIGTERM')).toBe(0);
  });

  test('a second one in the same home is told who is there', async () => {
    gateway = new GatewayProcess();
    await gateway.start();
    const second = spawnSync(process.execPath, [launcher, 'gateway', 'run', '--home', gateway.home], {
      encoding: 'utf8',
    });
    expect(second.status).toBe(1);
    expect(second.stderr).toContain(`process ${gateway.pid}`);
    expect(second.stderr).toContain('gateway_running');
    expect((await gateway.chat({ text: 'still there?' })).status).toBe(200);
  });

  test('a bad configuration is told, with what was meant, and exits with 78', () => {
    gateway = new GatewayProcess({ gatway: { port: 1 } });
    const run = spawnSync(process.execPath, [launcher, 'gateway', 'run', '--home', gateway.home], { encoding: 'utf8' });
    expect(run.status).toBe(78);
    expect(run.stderr).toContain('gateway');
  });

  test('a port that is taken is told', async () => {
    gateway = new GatewayProcess();
    await gateway.start();
    const other = new GatewayProcess({ gateway: { port: Number(new URL(gateway.url).port) } });
    await expect(other.start()).rejects.toThrow(/port_in_use/);
    await other.close();
  });
});

describe('SIGTERM in a turn', () => {
  test('lets it finish when it is quick enough', async () => {
    await begin([{ text: 'done in time', beforeMs: 500 }]);
    const waiting = gateway.chat({ text: 'hello', conversation: 'c' });
    await until('the model is asked', () => asked() === 1);
    expect(await gateway.end('SIGTERM')).toBe(0);
    expect(await waiting).toMatchObject({ status: 200, reply: 'done in time' });
  });

  test('is the same when it comes again as a command with the same key', async () => {
    await begin([{ text: 'heard' }]);
    const body = { text: '/queue hello', conversation: 'c', idempotency_key: 'k' };
    const first = await gateway.chat(body);
    expect(first).toMatchObject({ status: 200, reply: 'heard' });
    expect(await gateway.chat(body)).toMatchObject({ status: 200, turn_id: first.turn_id, reply: 'heard' });
    expect((await gateway.chat({ ...body, text: '/queue other' })).status).toBe(409);
  });

  test('cuts it when it is not, and the next start goes on in the same session and says why', async () => {
    const hang: ModelScript = (_, index) => (index === 0 ? { text: 'never', beforeMs: 60_000 } : { text: 'at last' });
    await begin(hang, { gateway: { drain_timeout: '500ms' } });
    const body = { text: 'hello', conversation: 'c', idempotency_key: 'k' };
    const waiting = gateway.chat(body).catch(() => null);
    await until('the model is asked', () => asked() === 1);
    const began = performance.now();
    await gateway.end('SIGTERM');
    expect(performance.now() - began).toBeLessThan(patience(3500));
    expect((await waiting)?.status ?? 503).toBe(503);
    await gateway.start();
    const again = await gateway.chat(body);
    expect(again).toMatchObject({ status: 200, reply: 'at last', outcome: 'done' });
    expect(await agentEvents()).toEqual([
      ...['agent:start', 'agent:end', 'session:resume_pending'],
      ...['session:resume', 'agent:start', 'agent:end'],
    ]);
    expect(JSON.stringify(messagesOf(1))).toContain('shut down');
    expect(JSON.stringify(messagesOf(1).filter(({ role }) => role === 'user'))).toContain('hello');
    expect(messagesOf(1).filter(({ role }) => role === 'user')).toHaveLength(1);
  });

  test('and a second one does not wait', async () => {
    await begin([{ text: 'never', beforeMs: 60_000 }]);
    const waiting = gateway.chat({ text: 'hello', conversation: 'c' }).catch(() => null);
    await until('the model is asked', () => asked() === 1);
    const began = performance.now();
    const first = gateway.end('SIGTERM');
    await until('it drains', async () => (await gateway.get<{ state: string }>('/ready')).state === 'draining');
    process.kill(gateway.pid, 'SIGTERM');
    expect(await first).toBe(0);
    expect(performance.now() - began).toBeLessThan(patience(6000));
    await waiting;
  });
});

describe('a tool that kills the gateway', () => {
  test('runs once in total; the model is told that its outcome is unknown', async () => {
    const script: ModelScript = ({ body }) => {
      const called = body.messages.some(({ role }: { role: string }) => role === 'tool');
      return called ? { text: 'I see' } : { toolCalls: [{ name: 'run_command', args: { command: 'sh kill.sh' } }] };
    };
    await begin(script, { agent: { workspace: 'shared', allow_commands: ['sh **'] } });
    const workspace = join(gateway.home, 'workspace');
    mkdirSync(workspace, { recursive: true });
    writeFileSync(join(workspace, 'kill.sh'), `echo once >> ran.txt\nkill -9 ${gateway.pid}\n`);
    const body = { text: 'kill yourself', conversation: 'c', idempotency_key: 'k' };
    await gateway.chat(body).catch(() => null);
    await until('it is gone', () => existsSync(join(workspace, 'ran.txt')));
    await gateway.end('SIGKILL');
    await gateway.start();
    expect(await gateway.chat(body)).toMatchObject({ status: 200, reply: 'I see' });
    expect(readFileSync(join(workspace, 'ran.txt'), 'utf8')).toBe('once\n');
    const told = messagesOf(asked() - 1).find(({ role }) => role === 'tool');
    expect(JSON.stringify(told)).toMatch(/unknown/i);
  });
});

describe('a turn in which the gateway crashes three times', () => {
  test('is given up: the session is parked, the client told, and the next message starts afresh', async () => {
    await begin([{ text: 'never', beforeMs: 60_000 }]);
    const body = { text: 'hello', conversation: 'c', idempotency_key: 'k' };
    for (let crash = 1; crash <= 3; crash++) {
      const waiting = gateway.chat(body).catch(() => null);
      await until('the model is asked', () => asked() === crash);
      await gateway.end('SIGKILL');
      await waiting;
      await gateway.start();
    }
    const last = await gateway.chat(body);
    expect(last.outcome).toBe('failed');
    expect(await agentEvents()).toContain('session:suspend');
    const { data } = await gateway.get<{ data: Record<string, unknown>[] }>('/v1/sessions');
    expect(data[0]).toMatchObject({ state: 'suspended' });
    const fresh = gateway.chat({ text: 'anew', conversation: 'c' }).catch(() => null);
    await until('the model is asked again', () => asked() === 4);
    const [ended] = await gateway.events('session:end');
    expect(ended).toMatchObject({ reason: 'auto_reset', cause: 'suspended' });
    await gateway.end('SIGKILL');
    await fresh;
  });
});

describe('a lease that ran out', () => {
  /** Throws when its process is not there any more. */
  const assertAlive = (): void => void process.kill(gateway.pid, 0);

  /** Until a second instance has begun in the process, which must not end meanwhile. */
  async function untilBegunAgain(): Promise<void> {
    await until('another one has begun', async () => {
      assertAlive();
      // Between the two nobody listens.
      const events = await gateway.events('gateway:startup').catch(() => []);
      return new Set(events.map(({ instance }) => instance)).size === 2;
    });
  }

  const script: ModelScript = () => ({ text: 'yes' });

  test('is followed by another one in the same process, and conversations go on', async () => {
    await begin(script, { sessions: { heartbeat: '500ms' } });
    const before = await gateway.chat({ text: 'one', conversation: 'c' });
    const db = new DatabaseSync(join(gateway.home, 'state.db'), { timeout: 10_000 });
    db.exec('UPDATE instances SET lease_until = 0');
    db.close();
    await untilBegunAgain();
    const after = await gateway.chat({ text: 'two', conversation: 'c' });
    expect(after).toMatchObject({ status: 200, outcome: 'done', session_id: before.session_id });
    expect(await gateway.end('SIGTERM')).toBe(0);
  });

  test('is followed by another one also when the server is silent while that begins', async ({ onTestFinished }) => {
    const database = await createDatabase();
    onTestFinished(() => database.drop());
    const proxy = await startPostgresProxy(database.url);
    onTestFinished(() => proxy.close());
    await begin(script, { sessions: { heartbeat: '500ms' }, store: { url: proxy.through(database.url) } });
    // What is asked first when a store is opened.
    proxy.silenceAt('server_version_num');
    const outside = new pg.Client({ connectionString: database.url });
    await outside.connect();
    await outside.query('UPDATE moirai.instances SET lease_until = 0');
    await outside.end();
    await until('it could not begin', () => {
      assertAlive();
      return gateway.log.includes('begins again later');
    });
    await proxy.restore();
    await untilBegunAgain();
    expect(await gateway.chat({ text: 'two' })).toMatchObject({ status: 200, outcome: 'done' });
    await gateway.end('SIGKILL');
  });
});

describe('a session that expired', () => {
  test('is never resurrected: a restart and a message give a new one that knows nothing of it', async () => {
    const settings = { sessions: { reset: { mode: 'idle', idle: '700ms' } }, memory: { provider: 'none' } };
    await begin([{ text: 'noted' }], settings);
    const first = await gateway.chat({ text: 'my secret is plum', conversation: 'c' });
    await until('it expired', async () => (await gateway.events('session:end')).length === 1);
    await gateway.end('SIGTERM');
    await gateway.start();
    const second = await gateway.chat({ text: 'what is my secret?', conversation: 'c' });
    expect(second.session_id).not.toBe(first.session_id);
    expect(JSON.stringify(messagesOf(1))).not.toContain('plum');
  });
});

describe('what the model is sent', () => {
  test('begins with all it was sent before, byte for byte, through a restart', async () => {
    await begin(({ body }) => ({ text: `answer ${body.messages.length}` }));
    for (const text of ['one', 'two', 'three']) await gateway.chat({ text, conversation: 'c' });
    await gateway.end('SIGTERM');
    await gateway.start();
    for (const text of ['four', 'five']) await gateway.chat({ text, conversation: 'c' });
    const sent = Array.from({ length: 5 }, (_, i) => messagesOf(i));
    for (const [i, messages] of sent.entries()) {
      const before = sent[i - 1];
      if (before === undefined) continue;
      expect(JSON.stringify(messages.slice(0, before.length))).toBe(JSON.stringify(before));
    }
  });
});

import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, describe, expect, test } from 'vitest';
import type { HttpFake } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { patience } from '../support/patience.ts';
import { createDatabase, type TestDatabase } from '../support/postgres.ts';
import { share } from '../support/share.ts';
import { GatewayProcess } from './process.ts';

const JOBS = share(10, 25);
const ROUNDS = share(2, 3);

const gateways: GatewayProcess[] = [];
let model: HttpFake | null = null;
let database: TestDatabase | null = null;

afterEach(async () => {
  for (const gateway of gateways.splice(0)) await gateway.close();
  await model?.close();
  await database?.drop();
  [model, database] = [null, null];
});

async function start(more: Record<string, unknown> = {}): Promise<GatewayProcess> {
  const settings = { model: { base_url: model?.url, name: 'fake-model', api_key: 'key' }, ...more };
  const gateway = new GatewayProcess(settings);
  gateways.push(gateway);
  await gateway.start();
  return gateway;
}

const asked = (): number => (model === null ? 0 : questions(model).length);

interface Job {
  readonly id: string;
  readonly state: string;
  readonly last_run: { readonly session_id: string; readonly end_reason: string | null } | null;
}

async function add(gateway: GatewayProcess, schedule: string, prompt: string): Promise<string> {
  const { status, answer } = await gateway.post('/v1/cron', { schedule, prompt, deliver: 'local' });
  expect(status).toBe(201);
  return (answer as Job).id;
}

async function jobs(gateway: GatewayProcess): Promise<Job[]> {
  return (await gateway.get<{ data: Job[] }>('/v1/cron')).data;
}

async function until(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  const deadline = performance.now() + patience(20_000);
  while (!(await holds())) {
    if (performance.now() > deadline) throw new TypeError(`in vain: ${what}\n${gateways.map(({ log }) => log)}`);
    await sleep(50);
  }
}

async function endedAs(gateway: GatewayProcess, reason: string): Promise<void> {
  await until(`a run ended as ${reason}`, async () => (await jobs(gateway))[0]?.last_run?.end_reason === reason);
}

const hangOnce: ModelScript = (_, index) => (index === 0 ? { text: 'never', beforeMs: 60_000 } : { text: 'swept' });

async function sessionEvents(gateway: GatewayProcess): Promise<string[]> {
  const events = await gateway.events('session:start,session:end');
  return events.filter(({ kind }) => kind === 'cron').map(({ type, reason }) => `${type} ${reason ?? ''}`.trim());
}

/** Lets another job run: by then the gateway has taken everything that it believes to be due. */
async function runAnother(gateway: GatewayProcess): Promise<void> {
  const id = await add(gateway, 'every 1h', 'water the plants');
  await gateway.post(`/v1/cron/${id}/run`, {});
  await until('another job has run', async () => {
    return (await jobs(gateway)).find((job) => job.id === id)?.last_run?.end_reason === 'cron_complete';
  });
}

describe('SIGKILL during a run', () => {
  test('the tick is not run again, its session ends, and the next tick runs', async () => {
    model = await startOpenAiServer(hangOnce);
    const gateway = await start();
    const id = await add(gateway, 'every 1h', 'sweep');
    await gateway.post(`/v1/cron/${id}/run`, {});
    await until('the model is asked', () => asked() === 1);
    await gateway.end('SIGKILL');
    await gateway.start();
    await endedAs(gateway, 'reaped');
    await gateway.post(`/v1/cron/${id}/run`, {});
    await endedAs(gateway, 'cron_complete');
    expect(asked()).toBe(2);
    const [first, second] = [
      ['session:start', 'session:end reaped'],
      ['session:start', 'session:end cron_complete'],
    ];
    expect(await sessionEvents(gateway)).toEqual([...first, ...second]);
  });

  test('another gateway on the same store ends it, and does not run it again', async () => {
    model = await startOpenAiServer(hangOnce);
    database = await createDatabase();
    const store = { store: { url: database.url } };
    const first = await start(store);
    await add(first, 'in 1s', 'sweep');
    await until('the model is asked', () => asked() === 1);
    const second = await start(store);
    await first.end('SIGKILL');
    await endedAs(second, 'reaped');
    expect(await jobs(second)).toMatchObject([{ state: 'done' }]);
    expect(await sessionEvents(second)).toEqual(['session:start', 'session:end reaped']);
    await runAnother(second);
    expect(asked()).toBe(2);
  });
});

test('SIGTERM during a run gives it the drain timeout, then it has failed, and is not run again', async () => {
  model = await startOpenAiServer(hangOnce);
  const gateway = await start({ gateway: { drain_timeout: '300ms' } });
  await add(gateway, 'in 1s', 'sweep');
  await until('the model is asked', () => asked() === 1);
  expect(await gateway.end('SIGTERM')).toBe(0);
  await gateway.start();
  expect((await jobs(gateway))[0]).toMatchObject({ state: 'done', last_run: { end_reason: 'cron_failed' } });
  await runAnother(gateway);
  expect(asked()).toBe(2);
});

test('what a run needs an approval for is refused at once: nobody is there', async () => {
  model = await startOpenAiServer(({ body }) => {
    const called = body.messages.some(({ role }: { role: string }) => role === 'tool');
    return called ? { text: 'I see' } : { toolCalls: [{ name: 'run_command', args: { command: 'touch here' } }] };
  });
  const gateway = await start();
  await add(gateway, 'in 1s', 'sweep');
  await endedAs(gateway, 'cron_complete');
  expect(JSON.stringify(questions(model).at(-1)?.body.messages)).toContain('nobody can be asked here');
});

test('what a job brought is in the prompt of whoever asks about it, also over HTTP', async () => {
  model = await startOpenAiServer([{ text: 'seven plums' }]);
  const gateway = await start();
  const say = (text: string) => gateway.chat({ text, conversation: 'c' });
  expect((await say('/cron add in 1s count the plums')).reply).toMatch(/^Scheduled: /);
  await endedAs(gateway, 'cron_complete');
  await until('it is told', async () => {
    await say('how many?');
    return JSON.stringify(questions(model as HttpFake).at(-1)?.body.messages).includes('> seven plums');
  });
  const users = questions(model)
    .at(-1)
    ?.body.messages.filter(({ role }: { role: string }) => role === 'user');
  expect(JSON.stringify(users)).not.toContain('/cron');
});

test('gateways that share a store take each tick once', async () => {
  model = await startOpenAiServer([{ text: 'swept', beforeMs: 30 }]);
  database = await createDatabase();
  const store = { store: { url: database.url } };
  const [first, second] = [await start(store), await start(store)];
  const ids = await Promise.all(Array.from({ length: JOBS }, (_, i) => add(first, 'every 1h', `sweep ${i}`)));
  for (let round = 1; round <= ROUNDS; round++) {
    await Promise.all(ids.map((id, i) => (i % 2 === 0 ? first : second).post(`/v1/cron/${id}/run`, {})));
    await until(`round ${round} is over`, async () => {
      return (await sessionEvents(second)).filter((end) => end === 'session:end cron_complete').length === JOBS * round;
    });
  }
  await Promise.all([runAnother(first), runAnother(second)]);
  expect(asked()).toBe(JOBS * ROUNDS + 2);
  const events = (await first.events('session:start')).filter(({ kind }) => kind === 'cron');
  expect(new Set(events.map(({ session_id }) => session_id)).size).toBe(JOBS * ROUNDS + 2);
}, 60_000);

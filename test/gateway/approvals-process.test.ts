import { afterEach, beforeEach, expect, test } from 'vitest';
import type { HttpFake } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { until } from '../hooks/scene.ts';
import { createDatabase } from '../support/postgres.ts';
import { GatewayProcess } from './process.ts';

/** Runs what it is told to, and then says what came of it. */
const script: ModelScript = ({ body }) => {
  const last = body.messages.at(-1);
  if (last?.role === 'tool') return { text: `It said: ${String(last.content)}` };
  if (JSON.stringify(last).includes('hang')) return { text: 'one two', hangAfter: 0 };
  return { toolCalls: [{ name: 'run_command', args: { command: 'echo plums | tr p P' } }] };
};

interface Approval {
  readonly id: string;
  readonly summary: string;
  readonly turn_id: string;
}

let model: HttpFake;
let database: Awaited<ReturnType<typeof createDatabase>>;
let one: GatewayProcess;
let two: GatewayProcess;

beforeEach(async () => {
  model = await startOpenAiServer(script);
  database = await createDatabase();
  const settings = {
    store: { url: database.url },
    model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
  };
  [one, two] = [new GatewayProcess(settings), new GatewayProcess(settings)];
  await Promise.all([one.start(), two.start()]);
});

afterEach(async () => {
  await Promise.all([one.close(), two.close()]);
  await model.close();
  await database.drop();
});

async function asked(): Promise<Approval> {
  let found: Approval | undefined;
  await until('it is asked', async () => {
    [found] = (await two.get<{ data: Approval[] }>('/v1/approvals')).data;
    return found !== undefined;
  });
  if (found === undefined) throw new TypeError('nothing was asked');
  return found;
}

test('what an agent asks at one gateway is answered at another, by HTTP and from the command line', {
  timeout: 120_000,
}, async () => {
  const say = (text: string) => one.chat({ text, conversation: 'c' });
  const first = say('run it');
  const question = await asked();
  expect(question).toMatchObject({ summary: 'echo plums | tr p P' });
  const answer = await two.post(`/v1/approvals/${question.id}`, { decision: 'once' });
  expect(answer).toMatchObject({ status: 200, answer: { decision: 'once', by: 'api' } });
  expect((await first).reply).toContain('Plums');
  const late = await one.post(`/v1/approvals/${question.id}`, { decision: 'deny' });
  expect(late).toMatchObject({ status: 409, answer: { error: { code: 'approval_over' } } });

  const second = say('run it again');
  const again = await asked();
  const listed = JSON.parse((await two.moirai('approvals', 'list', '--json')).output);
  expect(listed).toMatchObject({ data: [{ id: again.id, decision: null }], always: [] });
  const told = await two.moirai('approvals', 'answer', again.id, 'always');
  expect(told).toMatchObject({ code: 0, output: 'Allowed from now on: echo plums | tr p P\n' });
  expect((await second).reply).toContain('Plums');
  expect((await say('once more')).reply).toContain('Plums');
  expect((await one.moirai('approvals', 'revoke', again.id)).output).toContain('Revoked: echo plums');
  const { data } = await one.get<{ data: { type: string; decision?: string; by?: string }[] }>(
    '/v1/events?types=approval:*',
  );
  expect(data.map(({ type, decision, by }) => [type, decision, by])).toEqual([
    ['approval:asked', undefined, undefined],
    ['approval:answered', 'once', 'api'],
    ['approval:asked', undefined, undefined],
    ['approval:answered', 'always', 'cli'],
  ]);

  // Nobody could answer a one-shot request: it does not wait.
  const alone = await one.chat({ text: 'run it' });
  expect(alone.reply).toContain('nobody can be asked here');
});

test('a turn that runs at one gateway is waited for and stopped at another', { timeout: 120_000 }, async () => {
  const running = one.chat({ text: 'hang', conversation: 'c' });
  await until('the model is asked', () => questions(model).length === 1);
  const { data } = await two.get<{ data: { turn_id: string }[] }>('/v1/events?types=agent:start');
  const turnId = data[0]?.turn_id ?? '';
  expect(await two.get(`/v1/turns/${turnId}?wait=50ms`)).toMatchObject({ id: turnId, state: 'running' });
  const stopped = await two.post(`/v1/turns/${turnId}/stop`, {});
  expect(stopped).toMatchObject({ status: 200, answer: { state: 'over', outcome: 'interrupted' } });
  expect(await running).toMatchObject({ status: 200, outcome: 'interrupted' });
});

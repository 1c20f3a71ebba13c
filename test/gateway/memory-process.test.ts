import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, test } from 'vitest';
import { personHash } from '../../src/memory/scope.ts';
import type { HttpFake, RecordedRequest } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { patience } from '../support/patience.ts';
import { GatewayProcess } from './process.ts';

let gateway: GatewayProcess;
let model: HttpFake;

afterEach(async () => {
  await gateway.close();
  await model.close();
});

async function begin(script: ModelScript, memory: object): Promise<void> {
  model = await startOpenAiServer(script);
  gateway = new GatewayProcess({ model: { base_url: model.url, name: 'fake-model', api_key: 'key' }, memory });
  mkdirSync(join(gateway.home, 'memory'), { recursive: true });
}

function tellEverybody(text: string): void {
  writeFileSync(join(gateway.home, 'memory', 'MEMORY.md'), text);
}

async function until(what: string, holds: () => boolean): Promise<void> {
  const deadline = performance.now() + patience(15_000);
  while (!holds()) {
    if (performance.now() > deadline) throw new TypeError(`in vain: ${what}\n${gateway.log}`);
    await sleep(20);
  }
}

const isReview = ({ body }: RecordedRequest): boolean => String(body.messages.at(-1)?.content).includes('Look over');

test('what a session was told is the same after a kill in its first turn', async () => {
  await begin((_, index) => (index === 0 ? { text: 'never', beforeMs: 60_000 } : { text: 'at last' }), {
    review_every: 0,
  });
  tellEverybody('the cellar is locked');
  await gateway.start();
  const body = { text: 'hello', conversation: 'c', idempotency_key: 'k' };
  const waiting = gateway.chat(body).catch(() => null);
  await until('the model is asked', () => questions(model).length === 1);
  await gateway.end('SIGKILL');
  await waiting;
  tellEverybody('the cellar is open');
  await gateway.start();
  expect(await gateway.chat(body)).toMatchObject({ reply: 'at last' });
  await gateway.chat({ text: 'and now?', conversation: 'c' });
  const systems = questions(model).map(({ body: { messages } }) => messages[0]?.content);
  expect(systems).toHaveLength(3);
  expect(systems[0]).toContain('the cellar is locked');
  expect(new Set(systems).size).toBe(1);
});

test('a conversation that was being looked over at a kill is looked over after it', async () => {
  let isHanging = true;
  const script: ModelScript = (request) => {
    if (!isReview(request)) return { text: 'ok' };
    return isHanging ? { text: 'never', beforeMs: 60_000 } : { text: 'likes plums' };
  };
  await begin(script, { review_every: 1 });
  await gateway.start();
  await gateway.chat({ text: 'I like plums', conversation: 'c', user: 'ada' });
  await until('it is looked over', () => questions(model).some(isReview));
  await gateway.end('SIGKILL');
  isHanging = false;
  await gateway.start();
  const file = join(gateway.home, 'memory', 'users', personHash('api', 'ada'), 'MEMORY.md');
  const text = (): string => {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      return ''; // It is not there yet.
    }
  };
  await until('it is remembered', () => text() === '- likes plums\n');
});

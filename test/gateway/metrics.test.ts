import { readFileSync } from 'node:fs';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { until } from '../cli/cli-fixture.ts';
import { type HttpFake, sendJson, startHttpFake } from '../fakes/http-fake.ts';
import type { GatewayProcess } from './process.ts';
import { TelegramScene } from './telegram-scene.ts';
import { userLines } from './user-lines.ts';

const page = readFileSync(new URL('../../docs/observability.md', import.meta.url), 'utf8');

let scene: TelegramScene;
let receiver: HttpFake;
let gateway: GatewayProcess;

beforeAll(async () => {
  scene = await TelegramScene.open(({ body }) => {
    const said = userLines(body.messages).at(-1) ?? '';
    return said.includes('fail') ? { status: 400, error: { message: 'no' } } : { text: `did: ${said}` };
  });
  receiver = await startHttpFake(async (_, response) => sendJson(response, 500, {}));
  const ledger = { name: 'ledger', url: receiver.url, secret: 'whsec_bG9vbQ==', events: ['session:start'] };
  gateway = scene.gateway({ hooks: { webhooks: [ledger] } });
  await gateway.start();
}, 60_000);

afterAll(async () => {
  await scene.close();
  await receiver.close();
});

async function metrics(): Promise<string> {
  return (await fetch(`${gateway.url}/metrics`)).text();
}

/** The value of each sample, by its name and labels. */
async function samples(): Promise<ReadonlyMap<string, number>> {
  const lines = [...(await metrics()).matchAll(/^([a-z_]+(?:\{.*\})?) (\S+)$/gm)];
  return new Map(lines.map(([, name = '', value]) => [name, Number(value)]));
}

test('turns, replies, retries and platforms are counted as they happen', { timeout: 60_000 }, async () => {
  for (const [i, text] of ['one', 'two', 'fail', 'three'].entries()) {
    scene.bot.say({ text });
    await scene.heardIn(42, i + 1);
  }
  expect((await gateway.chat({ text: 'once' })).outcome).toBe('done');
  scene.bot.failNext('sendMessage', { code: 429, description: 'Too Many', parameters: { retry_after: 60 } });
  scene.bot.say({ text: 'late', chat: 43, from: 43 });
  const late = 'moirai_delivery_attempts_total{platform="telegram",outcome="retry"}';
  const retries = 'moirai_subscriber_retries_total{subscriber="webhook:ledger"}';
  await until('all of it is counted', async () => {
    const found = await samples();
    return found.get(late) === 1 && (found.get(retries) ?? 0) >= 1;
  });
  expect(Object.fromEntries(await samples())).toMatchObject({
    'moirai_turn_seconds_count{outcome="done"}': 5,
    'moirai_turn_seconds_count{outcome="failed"}': 1,
    moirai_turn_wait_seconds_count: 6,
    'moirai_delivery_seconds_count{platform="telegram"}': 4,
    'moirai_delivery_attempts_total{platform="telegram",outcome="sent"}': 4,
    'moirai_deliveries_waiting{platform="telegram"}': 1,
    moirai_strays: 0,
    'moirai_platform_up{platform="telegram",phase="connected"}': 1,
    'moirai_sessions_ended{reason="api_close"}': 1,
    'moirai_subscriber_dead_letters{subscriber="webhook:ledger"}': 0,
  });
  const found = await samples();
  expect(found.get('moirai_turn_seconds_sum{outcome="done"}')).toBeGreaterThan(0);
  // Each waited for more of the same message before it began, and less than it took to be answered.
  expect(found.get('moirai_turn_wait_seconds_sum')).toBeGreaterThan(1);
  expect(found.get('moirai_deliveries_oldest_seconds')).toBeGreaterThan(0);
  expect(found.get('moirai_subscriber_failures{subscriber="webhook:ledger"}')).toBeGreaterThan(0);
  expect(found.get('moirai_subscriber_oldest_seconds{subscriber="webhook:ledger"}')).toBeGreaterThan(0);
});

test('docs/observability.md lists every figure of a running gateway with its kind, labels and meaning', async () => {
  const text = await metrics();
  const shown = [...text.matchAll(/^# HELP (\w+) (.+)\n# TYPE \w+ (\w+)\n((?:[^#\n].*\n)*)/gm)].map(
    ([, name, help, kind, lines = '']) => `| \`${name}\` | ${kind} | ${labelsIn(lines)} | ${help} |`,
  );
  expect(shown.length).toBeGreaterThan(20);
  const documented = page.split('\n').filter((line) => /^\| `\w+` \| (?:gauge|counter|histogram) \|/.test(line));
  expect(documented.toSorted()).toEqual(shown.toSorted());
});

function labelsIn(lines: string): string {
  const names = [...lines.matchAll(/[{,](\w+)="/g)].map(([, name]) => name);
  return [...new Set(names)].filter((name) => name !== 'le').join(', ');
}

import { afterEach, expect, test } from 'vitest';
import { until } from '../cli/cli-fixture.ts';
import { BotApiFake } from '../fakes/bot-api.ts';
import { GatewayProcess } from './process.ts';

let gateway: GatewayProcess;

afterEach(() => gateway.close());

const NOT_SERVED = 'configured without token, so it is off';

test('a gateway names the platforms that it serves, and those that are configured and lack something', async () => {
  await using bot = await BotApiFake.start();
  gateway = new GatewayProcess({
    platforms: {
      telegram: {
        ...{ token: bot.token, api_root: bot.url },
        accounts: { spare: { allow: [7] }, idle: { enabled: false } },
      },
    },
  });
  await gateway.start();
  expect(gateway.started).toMatchObject({ platforms: ['web', 'api', 'telegram'], not_served: ['telegram@spare'] });
  const status = JSON.parse((await gateway.moirai('gateway', 'status', '--json')).output);
  expect(status.checks).toMatchObject({ telegram: {}, 'telegram@spare': { ok: false, detail: NOT_SERVED } });
  expect(status.checks).not.toHaveProperty('telegram@idle');
  const { output: doctor } = await gateway.moirai('doctor');
  expect(doctor).toContain(`warn  platform:telegram@spare: ${NOT_SERVED}`);
  const { output: check } = await gateway.moirai('config', 'check');
  expect(check).toMatch(/^platforms +telegram, web\ntelegram@spare +configured without token, so it is off$/m);
  const report = JSON.parse((await gateway.moirai('config', 'check', '--json')).output);
  expect(report).toMatchObject({ ok: true, not_served: ['telegram@spare'] });
});

test('without the platform web, the gateway answers programs and serves no page', async () => {
  gateway = new GatewayProcess({ platforms: { web: { enabled: false } } });
  await gateway.start();
  expect(gateway.started).toMatchObject({ platforms: ['api'] });
  expect((await fetch(gateway.url)).status).toBe(404);
  expect(await gateway.chat({ text: 'hello' })).toMatchObject({ status: 200, outcome: 'done' });
});

test('what is brought to a platform that is not there yet is to be brought again, and no other account takes it', async () => {
  await using bot = await BotApiFake.start();
  const webhook = { mode: 'webhook', webhook_url: 'https://gateway.test/platforms/telegram', webhook_secret: 'knock' };
  const accounts = { work: { token: 'no token' } };
  gateway = new GatewayProcess({
    platforms: { telegram: { token: bot.token, api_root: bot.url, ...webhook, accounts } },
  });
  await gateway.start();
  await until('the webhook is registered', () => bot.webhook !== null);
  bot.say({ text: 'for the other bot' });
  expect(await bot.deliver(`${gateway.url}/platforms/telegram/work`)).toBe(503);
  expect(await gateway.post('/platforms/telegram/work', {})).toMatchObject({
    answer: { error: { code: 'platform_not_ready', message: 'telegram@work is not connected' } },
  });
  expect((await gateway.post('/platforms/discord', {})).status).toBe(404);
});

test('a platform whose credential is none has failed, and is not tried again and again', async () => {
  gateway = new GatewayProcess({ platforms: { telegram: { token: 'no token' } } });
  await gateway.start();
  const problem = 'the Telegram token is not of the form 123:abc';
  await until('it has failed', async () => {
    const { data } = await gateway.get<{ data: object[] }>('/v1/platforms');
    return JSON.stringify(data).includes('"failed"');
  });
  const { data } = await gateway.get<{ data: object[] }>('/v1/platforms');
  expect(data).toMatchObject([{ name: 'telegram', phase: 'failed', problem }]);
  expect(gateway.log).not.toContain('trying again');
});

import { afterEach, expect, test } from 'vitest';
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

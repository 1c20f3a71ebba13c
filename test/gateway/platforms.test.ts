import { afterEach, expect, test } from 'vitest';
import { BotApiFake } from '../fakes/bot-api.ts';
import { GatewayProcess } from './process.ts';

let gateway: GatewayProcess;

afterEach(() => gateway.close());

const NOT_SERVED = 'configured, not served by this version';

test('a gateway names the platforms that it serves, and those that are configured and not served', async () => {
  await using bot = await BotApiFake.start();
  gateway = new GatewayProcess({
    platforms: {
      telegram: { token: bot.token, api_root: bot.url },
      discord: { token: 'a' },
      slack: { token: 'b', enabled: false },
      webhook: { routes: { ci: { secret: 'c' } } },
    },
  });
  await gateway.start();
  expect(gateway.started).toMatchObject({ platforms: ['web', 'api', 'telegram'], not_served: ['discord', 'webhook'] });
  const status = JSON.parse((await gateway.moirai('gateway', 'status', '--json')).output);
  expect(status.checks).toMatchObject({ telegram: {}, discord: { ok: false, detail: NOT_SERVED } });
  expect(status.checks).not.toHaveProperty('slack');
  const { output: doctor } = await gateway.moirai('doctor');
  expect(doctor).toContain(`warn  platform:webhook: ${NOT_SERVED}`);
  const { output: check } = await gateway.moirai('config', 'check');
  expect(check).toMatch(/^platforms +telegram, web\ndiscord +configured, not served by this version\nwebhook +conf/m);
  const report = JSON.parse((await gateway.moirai('config', 'check', '--json')).output);
  expect(report).toMatchObject({ ok: true, not_served: ['discord', 'webhook'] });
});

test('without the platform web, the gateway answers programs and serves no page', async () => {
  gateway = new GatewayProcess({ platforms: { web: { enabled: false } } });
  await gateway.start();
  expect(gateway.started).toMatchObject({ platforms: ['api'] });
  expect((await fetch(gateway.url)).status).toBe(404);
  expect(await gateway.chat({ text: 'hello' })).toMatchObject({ status: 200, outcome: 'done' });
});

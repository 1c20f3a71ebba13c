import { afterEach, expect, test } from 'vitest';
import { until } from '../cli/cli-fixture.ts';
import { BotApiFake } from '../fakes/bot-api.ts';
import type { HttpFake } from '../fakes/http-fake.ts';
import { startOpenAiServer } from '../fakes/openai-server.ts';
import { GatewayProcess } from './process.ts';
import { lastUserLine } from './user-lines.ts';

let gateway: GatewayProcess;
let model: HttpFake;

afterEach(async () => {
  await gateway.close();
  await model.close();
});

const textsOf = (bot: BotApiFake): string[] => [...bot.messages.values()].map(({ text }) => text);

test('two bots of one platform have conversations of their own, know the same people, and answer by themselves', async () => {
  await using first = await BotApiFake.start({ token: '777:first' });
  await using second = await BotApiFake.start({ token: '888:second' });
  model = await startOpenAiServer(({ body }) => ({ text: `did: ${lastUserLine(body.messages)}` }));
  const work = {
    token: second.token,
    api_root: second.url,
    webhook_url: 'https://gateway.test/platforms/telegram/work',
  };
  gateway = new GatewayProcess({
    model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
    platforms: {
      telegram: {
        ...{ token: first.token, api_root: first.url, allow: [43] },
        accounts: { work: { ...work, mode: 'webhook', webhook_secret: 'knock' } },
      },
    },
    ...{ access: { allow: ['telegram:42'] }, memory: { provider: 'none' }, display: { streaming: false } },
  });
  await gateway.start();
  expect(gateway.started).toMatchObject({ platforms: ['web', 'api', 'telegram', 'telegram@work'] });
  await until('the webhook is registered', () => second.webhook !== null);
  first.say({ text: 'to the first' });
  second.say({ text: 'to the second' });
  expect(await second.deliver(`${gateway.url}/platforms/telegram/work`)).toBe(200);
  await until('both answer', () => textsOf(first).length === 1 && textsOf(second).length === 1, 10_000);
  expect([textsOf(first), textsOf(second)]).toEqual([['did: to the first'], ['did: to the second']]);
  const { data } = await gateway.get<{ data: { key: string; platform: string }[] }>('/v1/sessions?platform=telegram');
  expect(data.map(({ key, platform }) => [key, platform]).sort()).toEqual([
    ['agent:main:telegram:dm:42', 'telegram'],
    ['agent:main:telegram@work:dm:42', 'telegram'],
  ]);
  // What an account does not set is as for the platform.
  second.say({ text: 'me too', chat: 43, from: 43 });
  await second.deliver(`${gateway.url}/platforms/telegram/work`);
  await until('the other person is answered', () => textsOf(second).includes('did: me too'), 10_000);
  const sent = await gateway.moirai('send', 'telegram@work:42', 'from outside');
  expect(sent).toMatchObject({ code: 0 });
  await until('it arrives', () => textsOf(second).includes('from outside'), 10_000);
  expect(textsOf(first)).toEqual(['did: to the first']);
});

test('an account with the credential of another is named and not started: they would throw each other out', async () => {
  await using bot = await BotApiFake.start({ token: '777:first' });
  model = await startOpenAiServer(() => ({ text: 'ok' }));
  const accounts = { again: { token: bot.token, api_root: bot.url } };
  gateway = new GatewayProcess({
    model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
    platforms: { telegram: { token: bot.token, api_root: bot.url, accounts } },
  });
  await gateway.start();
  expect(gateway.started).toMatchObject({ platforms: ['web', 'api', 'telegram'], not_served: ['telegram@again'] });
  const { output } = await gateway.moirai('config', 'check');
  expect(output).toContain('has the same credential as telegram, so it is off');
});

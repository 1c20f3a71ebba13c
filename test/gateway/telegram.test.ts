import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { until } from '../cli/house.ts';
import { BotApiFake } from '../fakes/bot-api.ts';
import type { HttpFake } from '../fakes/http-fake.ts';
import { startOpenAiServer } from '../fakes/openai-server.ts';
import { lastWords } from './last-words.ts';
import { GatewayProcess } from './process.ts';

let bot: BotApiFake;
let model: HttpFake;
let gateway: GatewayProcess;

beforeEach(async () => {
  bot = await BotApiFake.start();
  model = await startOpenAiServer(({ body }) => ({ text: `did: ${lastWords(body.messages)}` }));
});

afterEach(async () => {
  await gateway?.close();
  await bot.close();
  await model.close();
});

function makeGateway(settings: Record<string, unknown> = {}, telegram: Record<string, unknown> = {}): GatewayProcess {
  gateway = new GatewayProcess({
    model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
    platforms: { telegram: { token: bot.token, api_root: bot.url, allow: ['42', '43', '-100'], ...telegram } },
    memory: { provider: 'none' },
    ...settings,
  });
  return gateway;
}

function textsIn(chat: number): string[] {
  return [...bot.messages.values()].filter((message) => message.chat === chat).map(({ text }) => text);
}

async function heardIn(chat: number, count: number): Promise<string[]> {
  await until(
    `${count} messages in ${chat}, not ${JSON.stringify(textsIn(chat))}`,
    () => textsIn(chat).length >= count,
  );
  return textsIn(chat);
}

describe('conversations on Telegram', () => {
  test('direct chat, group and forum topic are sessions of their own', async () => {
    await makeGateway({ display: { streaming: false } }).start();
    bot.say({ text: 'hello' });
    bot.say({ text: 'hello @moirai_bot', chat: -100, type: 'supergroup' });
    bot.say({ text: 'hello @moirai_bot', chat: -100, type: 'supergroup', topic: 5 });
    await heardIn(42, 1);
    await heardIn(-100, 2);
    const { data } = await gateway.get<{ data: { key: string }[] }>('/v1/sessions?platform=telegram');
    expect(data.map(({ key }) => key).toSorted()).toEqual([
      'agent:main:telegram:dm:42',
      'agent:main:telegram:group:-100:42',
      'agent:main:telegram:thread:-100:5',
    ]);
    expect(textsIn(42)).toEqual(['did: hello']);
    expect(bot.callsOf('setMyCommands')).toHaveLength(1);
    expect(bot.callsOf('sendChatAction').length).toBeGreaterThan(0);
  });
});

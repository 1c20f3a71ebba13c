import { setTimeout as sleep } from 'node:timers/promises';
import { BotApiFake } from '../test/fakes/bot-api.ts';
import { GatewayProcess } from '../test/gateway/process.ts';
import { rateOf } from './load.ts';
import { startModelProcess } from './model-process.ts';
import type { Report } from './report.ts';

const WARM_MS = 3000;
const MEASURED_MS = 12_000;
const LOOK_MS = 2;
/** So long the gateway waits for more of the same message. */
const SETTLE_MS = 600;

/** Messages in and replies out, against a Bot API on loopback and a model that answers at once. */
export async function measureTelegram(report: Report): Promise<void> {
  const model = await startModelProcess();
  for (const chats of [1, 256]) {
    report.progress(`gateway: Telegram, ${chats} chats`);
    const bot = await BotApiFake.start();
    const gateway = new GatewayProcess({
      model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
      platforms: { telegram: { token: bot.token, api_root: bot.url, allow: ['*'] } },
      ...{ display: { streaming: false, typing: false }, memory: { provider: 'none' }, log: { level: 'warn' } },
    });
    try {
      await gateway.start();
      await talk(bot, chats, WARM_MS);
      const began = performance.now();
      const { perSecond, p50, p99 } = rateOf(await talk(bot, chats, MEASURED_MS), performance.now() - began);
      const added = `p50 ${(p50 - SETTLE_MS).toFixed(0)} ms, p99 ${(p99 - SETTLE_MS).toFixed(0)} ms`;
      report.add(
        'telegram',
        `messages answered, ${chats} chats at once`,
        `${((perSecond * MEASURED_MS) / (performance.now() - began)).toFixed(0)} /s`,
      );
      report.add('telegram', `  added to the ${SETTLE_MS} ms in which more may come`, added);
    } finally {
      await gateway.close();
      await bot.close();
    }
  }
  model.close();
}

/** Every chat says something, waits for the reply, and says the next thing. Returns how long each reply took. */
async function talk(bot: BotApiFake, chats: number, ms: number): Promise<number[]> {
  const elapsed: number[] = [];
  const end = performance.now() + ms;
  const chat = async (id: number): Promise<void> => {
    while (performance.now() < end) {
      const before = repliesTo(bot, id);
      const said = performance.now();
      bot.say({ text: 'hello', chat: id, from: id });
      while (repliesTo(bot, id) === before) await sleep(LOOK_MS);
      elapsed.push(performance.now() - said);
    }
  };
  await Promise.all(Array.from({ length: chats }, (_, i) => chat(1000 + i)));
  return elapsed;
}

function repliesTo(bot: BotApiFake, chat: number): number {
  return counted(bot).get(chat) ?? 0;
}

const counts = new WeakMap<BotApiFake, { seen: number; byChat: Map<number, number> }>();

/** How many messages each chat got; looks only at what is new. */
function counted(bot: BotApiFake): ReadonlyMap<number, number> {
  const known = counts.get(bot) ?? { seen: 0, byChat: new Map<number, number>() };
  counts.set(bot, known);
  for (; known.seen < bot.calls.length; known.seen++) {
    const call = bot.calls[known.seen];
    if (call?.method !== 'sendMessage') continue;
    const chat = Number(call.payload.chat_id);
    known.byChat.set(chat, (known.byChat.get(chat) ?? 0) + 1);
  }
  return known.byChat;
}

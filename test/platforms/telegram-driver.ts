import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Place } from '../../src/platforms/platform.ts';
import { Telegram } from '../../src/platforms/telegram/platform.ts';
import { BotApiFake, type ChatMessage } from '../fakes/bot-api.ts';
import {
  type Driver,
  type Shown,
  testRuntime,
  type UserMessage,
  until,
  type Where,
  webhookRequest,
} from './contract/scene.ts';

const PLACES = {
  dm: { type: 'dm', chat: '42' },
  group: { type: 'group', chat: '-100' },
  thread: { type: 'thread', chat: '-1001', thread: '5' },
} as const satisfies Record<Where, Place>;

const CHATS = {
  dm: { chat: 42, type: 'private' },
  group: { chat: -100, type: 'group' },
  thread: { chat: -1001, type: 'supergroup', topic: 5 },
} as const;

/** A platform at a fake, and what it warned of. */
export function telegramAt(fake: BotApiFake, webhook: { url: string; secret: string } | null = null, speed = 100) {
  const runtime = testRuntime('telegram', speed);
  const { token, url: apiRoot } = fake;
  const platform = new Telegram({ token, apiRoot, webhook, runtime });
  return { platform, warnings: runtime.warnings };
}

/** Plays Telegram and the people there; Telegram is asked for updates, or brings them. */
export async function telegramDriver(mode: 'polling' | 'webhook'): Promise<Driver & { readonly fake: BotApiFake }> {
  const fake = await BotApiFake.start();
  const door = mode === 'webhook' ? await openDoor(fake) : null;
  const { platform, warnings } = telegramAt(fake, door?.webhook ?? null);
  if (door !== null) door.platform = platform;
  let last: Record<string, unknown> = {};
  const say = (kind: string, message: Record<string, unknown>) => {
    last = { [kind]: message };
    fake.push(last);
  };
  return {
    fake,
    platform,
    warnings,
    place: (where) => PLACES[where],
    say: async (said) => {
      const message = messageOf(fake, said);
      say('message', message);
      return String(message.message_id);
    },
    change: async (messageId, text) => {
      const message = fake.message({ text });
      say('edited_message', { ...message, message_id: Number(messageId), edit_date: message.date });
    },
    echo: async (text) => say('message', fake.message({ text, fields: { from: fake.self } })),
    bringAgain: async () => void fake.push(last),
    shown: () => [...fake.messages.values()].map(shownOf),
    unacknowledged: () => fake.pending.length,
    press: async (messageId, data) => {
      const message = { ...fake.message({}), message_id: Number(messageId), from: fake.self };
      const id = `press-${messageId}`;
      fake.push({ callback_query: { id, from: { id: 42, is_bot: false, first_name: 'Ada' }, message, data } });
      await until(() => fake.callbackAnswers.has(id), 'the answer to the press');
      return fake.callbackAnswers.get(id) ?? null;
    },
    typed: () => fake.callsOf('sendChatAction').length,
    reactions: (messageId) => fake.reactions.get(`42:${messageId}`) ?? [],
    limitRate: (ms) => {
      const retry_after = ms / 1000;
      const description = `Too Many Requests: retry after ${retry_after}`;
      fake.failNext('sendMessage', { code: 429, description, parameters: { retry_after } });
    },
    stumble: () => fake.failNext('sendMessage', { html: 502 }),
    cut: () => fake.cut(),
    restart: async () => {
      const next = telegramAt(fake, door?.webhook ?? null).platform;
      if (door !== null) door.platform = next;
      return next;
    },
    [Symbol.asyncDispose]: async () => {
      await door?.close();
      await fake.close();
    },
  };
}

interface Door {
  readonly webhook: { url: string; secret: string };
  platform: Telegram | null;
  close(): Promise<void>;
}

/** Whoever owns the port, and Telegram, which brings everything until it is taken. */
async function openDoor(fake: BotApiFake): Promise<Door> {
  const server: Server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const answer = await door.platform?.receiveWebhook(webhookRequest(request, Buffer.concat(chunks)));
    response.writeHead(answer?.status ?? 503, answer?.headers).end(answer?.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/telegram`;
  let delivering: Promise<unknown> | null = null;
  const pump = setInterval(() => {
    if (delivering !== null || fake.webhook === null) return;
    delivering = fake.deliver().catch(() => undefined);
    void delivering.finally(() => (delivering = null));
  }, 10);
  const door: Door = {
    webhook: { url, secret: 'knock-knock' },
    platform: null,
    close: async () => {
      clearInterval(pump);
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
  return door;
}

function messageOf(fake: BotApiFake, { text, where = 'dm', file, repliesTo }: UserMessage) {
  const words = file === undefined ? { text } : { caption: text };
  const document =
    file === undefined
      ? {}
      : { document: { ...fake.keepFile(file.bytes), file_name: file.name, mime_type: file.mime } };
  const answered = repliesTo === undefined ? undefined : fake.messages.get(`${CHATS[where].chat}:${repliesTo}`);
  const from = answered === undefined ? { id: 42, is_bot: false, first_name: 'Ada' } : fake.self;
  const quote =
    repliesTo === undefined ? {} : { reply_to_message: { message_id: Number(repliesTo), from, text: answered?.text } };
  return fake.message({ ...CHATS[where], fields: { ...words, ...document, ...quote } });
}

function shownOf({ messageId, text, thread, payload, files }: ChatMessage): Shown {
  const { reply_parameters, reply_markup } = payload as {
    reply_parameters?: { message_id: number };
    reply_markup?: { inline_keyboard: { text: string }[][] };
  };
  return {
    messageId: String(messageId),
    text,
    thread: thread === null ? null : String(thread),
    repliesTo: reply_parameters === undefined ? null : String(reply_parameters.message_id),
    files,
    buttons: (reply_markup?.inline_keyboard ?? []).flat().map((button) => button.text),
  };
}

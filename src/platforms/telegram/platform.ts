import { MoiraiError } from '../../errors/moirai-error.ts';
import { Connection } from '../connection.ts';
import { withDeadline } from '../deadline.ts';
import type {
  Inbox,
  Outgoing,
  Place,
  Platform,
  PlatformState,
  ReactionSign,
  SentMessage,
  WebhookAnswer,
  WebhookRequest,
} from '../platform.ts';
import { TELEGRAM_ABILITIES } from './abilities.ts';
import { Backlog } from './backlog.ts';
import { type Bot, type BotOptions, type CallSignal, connectBot } from './bot-api.ts';
import { downloadFile } from './download.ts';
import { isRefusal, sendFailureOf, type TelegramTrouble, troubleOf } from './failures.ts';
import { type Parsed, parseUpdate, type Self } from './parse.ts';
import { poll } from './polling.ts';
import { Reception } from './reception.ts';
import { addressOf, chatIdOf, idOf, keyboardOf, Sending, wordsOf } from './send.ts';
import { isFromTelegram, parseBody, registerWebhook, type Webhook } from './webhook.ts';

export interface TelegramOptions extends BotOptions {
  /** Telegram brings updates there; null: we ask for them. */
  readonly webhook: Webhook | null;
}

const CALL_MS = 30_000;
const MOST_COMMANDS = 100;
const SIGNS = { seen: '👀', done: '👍', failed: '👎' } as const satisfies Record<ReactionSign, string>;

/** Who we are once we know, and what is under way; null between `stop` and `start`. */
interface Session {
  readonly reception: Reception;
  readonly stopped: AbortController;
  self: Self | null;
  run: Promise<void>;
}

/** Telegram, by the Bot API. */
export class Telegram implements Platform {
  readonly name: string;
  readonly abilities = TELEGRAM_ABILITIES;
  readonly #webhook: Webhook | null;
  readonly #bot: Bot;
  readonly #connection: Connection<TelegramTrouble>;
  readonly #sending: Sending;
  #session: Session | null = null;

  constructor(options: TelegramOptions) {
    checkOptions(options);
    this.#webhook = options.webhook;
    this.#bot = connectBot(options);
    const { runtime, redact } = this.#bot;
    this.name = runtime.name;
    this.#connection = new Connection({ label: 'Telegram', runtime, troubleOf: (thrown) => troubleOf(thrown, redact) });
    this.#sending = new Sending(this.#bot, (from, to) => void this.#session?.reception.moved(from, to));
  }

  get state(): PlatformState {
    return this.#connection.state;
  }

  async start(inbox: Inbox): Promise<void> {
    if (this.#session !== null) return;
    const { runtime, redact } = this.#bot;
    const reception = new Reception(this.#bot, inbox);
    const session: Session = { reception, stopped: new AbortController(), self: null, run: Promise.resolve() };
    this.#session = session;
    this.#connection.open(inbox);
    session.run = this.#run(session).catch((thrown: unknown) => {
      runtime.warn('Telegram stopped by itself', { error: redact(String(thrown)) });
    });
  }

  async stop(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    session.stopped.abort();
    await session.run;
    await session.reception.settle();
    this.#connection.close();
  }

  /** For the owner of the port. 200 only after the inbox has it; everything else makes Telegram bring it again. */
  async receiveWebhook(request: WebhookRequest): Promise<WebhookAnswer> {
    if (this.#webhook === null) return { status: 404 };
    if (!isFromTelegram(request, this.#webhook.secret)) return { status: 401 };
    const { self, reception } = this.#session ?? { self: null, reception: null };
    if (self === null || reception === null) return { status: 503 };
    const parsed = parseBody(request, (update) => this.#parse(update, self));
    try {
      if (parsed !== null) await reception.take(parsed);
    } catch {
      // Who took it has said why it was not taken.
      return { status: 503 };
    }
    if (this.#session?.reception === reception) this.#connection.succeeded();
    return { status: 200 };
  }

  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    return { messageId: await this.#sending.send(place, message, signal) };
  }

  openFile(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    return downloadFile(this.#bot, ref, Math.min(maxBytes, this.abilities.files.maxBytes), signal);
  }

  async edit(place: Place, messageId: string, message: Outgoing, signal: AbortSignal): Promise<void> {
    const id = idOf(messageId);
    await this.#sending.call(place, signal, async ({ chat, formatted }, deadline) => {
      const { text, mode } = wordsOf(message.text, formatted);
      const target = { chat_id: chatIdOf(chat), message_id: id, ...mode, ...keyboardOf(message.buttons) };
      const changed = this.#bot.api
        .editMessageText({ ...target, text, link_preview_options: { is_disabled: true } }, deadline)
        .catch((thrown: unknown) => {
          if (!isRefusal(thrown, /no text in the message/i)) throw thrown;
          return this.#bot.api.editMessageCaption({ ...target, caption: text }, deadline);
        });
      await unless(changed, /message is not modified/i);
    });
  }

  async remove(place: Place, messageId: string, signal: AbortSignal): Promise<void> {
    const id = idOf(messageId);
    await this.#sending.call(place, signal, async ({ chat }, deadline) => {
      const removed = this.#bot.api.deleteMessage({ chat_id: chatIdOf(chat), message_id: id }, deadline);
      await unless(removed, /message to delete not found/i);
    });
  }

  async showTyping(place: Place, signal: AbortSignal): Promise<void> {
    // A sign of life is no reason to annoy a server that asked for patience.
    if (this.#sending.gate.closedFor(place.chat) > 0) return;
    await this.#sending.call(place, signal, (form, deadline) =>
      this.#bot.api.sendChatAction({ ...addressOf(form), action: 'typing' }, deadline),
    );
  }

  async react(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    const id = idOf(messageId);
    const reaction = sign === null ? [] : [{ type: 'emoji' as const, emoji: SIGNS[sign] }];
    await this.#sending.call(place, signal, ({ chat }, deadline) =>
      this.#bot.api.setMessageReaction({ chat_id: chatIdOf(chat), message_id: id, reaction }, deadline),
    );
  }

  async identify(signal: AbortSignal): Promise<string> {
    try {
      const { id, username } = await withDeadline(signal, CALL_MS, (deadline: CallSignal) =>
        this.#bot.api.getMe(deadline),
      );
      return `@${username} (${id})`;
    } catch (thrown) {
      throw sendFailureOf(thrown, this.#bot.redact);
    }
  }

  /** Those Telegram can show: it allows small letters, digits and `_` in a name. */
  async offerCommands(commands: readonly { name: string; summary: string }[], signal: AbortSignal): Promise<void> {
    const offered = commands
      .filter(({ name, summary }) => /^[a-z0-9_]{1,32}$/.test(name) && summary.trim() !== '')
      .slice(0, MOST_COMMANDS)
      .map(({ name, summary }) => ({ command: name, description: summary.slice(0, 256).toWellFormed() }));
    try {
      await withDeadline(signal, CALL_MS, (deadline: CallSignal) =>
        this.#bot.api.setMyCommands({ commands: offered }, deadline),
      );
    } catch (thrown) {
      throw sendFailureOf(thrown, this.#bot.redact);
    }
  }

  async #run(session: Session): Promise<void> {
    const { signal } = session.stopped;
    const { api } = this.#bot;
    const askWho = () => withDeadline(signal, CALL_MS, (deadline: CallSignal) => api.getMe(deadline));
    const self = await this.#connection.keepTrying(askWho, signal);
    if (self === null) return;
    session.self = self;
    if (this.#webhook !== null) return await registerWebhook(api, this.#webhook, this.#connection, signal);
    const parse = (update: unknown) => this.#parse(update, self);
    const backlog = new Backlog({ parse, take: (parsed) => session.reception.take(parsed) });
    await poll(api, backlog, this.#connection, signal);
  }

  #parse(update: unknown, self: Self): Parsed | null {
    return parseUpdate(update, self);
  }
}

/** Both go into addresses and headers: what does not belong there is refused before anything is sent. */
function checkOptions({ token, apiRoot, webhook }: TelegramOptions): void {
  if (!/^\d+:[\w-]+$/.test(token)) throw new MoiraiError('bad_input', 'the Telegram token is not of the form 123:abc');
  if (!URL.canParse(apiRoot) || !/^https?:$/.test(new URL(apiRoot).protocol)) {
    throw new MoiraiError('bad_input', 'the address of the Bot API server is not an http address');
  }
  if (webhook !== null && !/^[\w-]{1,256}$/.test(webhook.secret)) {
    throw new MoiraiError('bad_input', 'the secret of the Telegram webhook is not 1 to 256 letters, digits, _ and -');
  }
}

async function unless(call: Promise<unknown>, words: RegExp): Promise<void> {
  try {
    await call;
  } catch (thrown) {
    if (!isRefusal(thrown, words)) throw thrown;
  }
}

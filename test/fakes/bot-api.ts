import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readHtml } from './bot-api-html.ts';
import { readMarkdownV2 } from './bot-api-markdown.ts';

/** A call as it came: JSON, or the fields and files of a form. */
export interface BotCall {
  readonly method: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly files: readonly { readonly field: string; readonly name: string; readonly bytes: Uint8Array }[];
  readonly at: number;
}

/** A message as the people of a chat see it. */
export interface ChatMessage {
  readonly messageId: number;
  readonly chat: number;
  readonly thread: number | null;
  /** Without its markup. */
  readonly text: string;
  readonly method: string;
  readonly payload: Readonly<Record<string, unknown>>;
  readonly files: BotCall['files'];
}

/** Makes calls go wrong: an error of the Bot API, an odd result, no JSON, another address, a cut, silence. */
export type Fault =
  | { readonly code: number; readonly description: string; readonly parameters?: Record<string, number> }
  | { readonly result: unknown }
  | { readonly html: number }
  | { readonly redirect: string }
  | 'cut'
  /** It is done, and the answer is lost. */
  | 'lost'
  | 'silence';

export interface Words {
  readonly text?: string;
  readonly chat?: number;
  readonly type?: 'private' | 'group' | 'supergroup' | 'channel';
  readonly from?: number;
  readonly topic?: number;
  /** More fields of the message, over those made from the above. */
  readonly fields?: Record<string, unknown>;
}

interface Update {
  readonly update_id: number;
  readonly [kind: string]: unknown;
}

interface Poll {
  readonly response: ServerResponse;
  readonly answer: () => void;
  readonly timer: NodeJS.Timeout;
}

const MAX_TEXT = 4096;
const MAX_CAPTION = 1024;
const TYPES = { private: {}, group: { title: 'Group' }, supergroup: { title: 'Forum' }, channel: { title: 'Channel' } };

/**
 * Telegram's Bot API on loopback: keeps updates until they are confirmed by an offset, throws out the older of two that
 * poll, reads HTML as strictly as the real one, and counts lengths behind the markup.
 */
export class BotApiFake {
  readonly self = { id: 777, is_bot: true, first_name: 'Moirai', username: 'moirai_bot' };
  readonly token: string;
  readonly calls: BotCall[] = [];
  /** What people see now, in the order it was sent. */
  readonly messages = new Map<string, ChatMessage>();
  readonly reactions = new Map<string, readonly string[]>();
  readonly callbackAnswers = new Map<string, string | null>();
  /** By `file_path`. */
  readonly files = new Map<string, { bytes: Uint8Array; contentLength?: number; redirect?: string }>();
  /** What the server keeps for the bot. */
  readonly pending: Update[] = [];
  webhook: { url: string; secret: string } | null = null;
  /** The token is not known any more. */
  revoked = false;
  /** Called when a message of the bot was taken, before it is answered. */
  onTaken: (() => void) | null = null;
  readonly #server: Server;
  readonly #faults = new Map<string, Fault[]>();
  readonly #held = new Set<ServerResponse>();
  readonly #migrated = new Map<number, number>();
  #poll: Poll | null = null;
  #nextUpdate = 1000;
  #nextMessage = 1;
  #nextSecond = 1_700_000_000;

  private constructor(token: string) {
    this.token = token;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  static async start({ token = '777:secret-of-the-bot', port = 0 } = {}): Promise<BotApiFake> {
    const fake = new BotApiFake(token);
    await new Promise<void>((resolve, reject) => {
      fake.#server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** True while the bot waits for updates. */
  get isPolled(): boolean {
    return this.#poll !== null;
  }

  /** Keeps an update for the bot, as it is; returns its number. */
  push(update: Record<string, unknown>): number {
    const update_id = this.#nextUpdate++;
    this.pending.push({ update_id, ...update });
    this.#poll?.answer();
    return update_id;
  }

  /** Somebody says something. Returns the message as the Bot API gives it. */
  say(words: Words, kind = 'message'): Record<string, unknown> & { message_id: number } {
    const message = this.message(words);
    this.push({ [kind]: message });
    return message;
  }

  /** A message as the Bot API gives it. */
  message({ text, chat = 42, type = 'private', from = 42, topic, fields = {} }: Words) {
    return {
      message_id: this.#nextMessage++,
      date: this.#nextSecond++,
      chat: { id: chat, type, ...TYPES[type], ...(type === 'private' ? { first_name: 'Ada' } : {}) },
      from: { id: from, is_bot: false, first_name: 'Ada', last_name: 'Lovelace' },
      ...(text === undefined ? {} : { text }),
      ...(topic === undefined ? {} : { message_thread_id: topic, is_topic_message: true }),
      ...fields,
    };
  }

  /**
   * A group grows and becomes a supergroup: both chats are told, and whatever is sent to the old one is refused with the
   * new id.
   */
  migrate(from: number, to: number): void {
    this.#migrated.set(from, to);
    this.say({ chat: from, type: 'group', fields: { migrate_to_chat_id: to } });
    this.say({ chat: to, type: 'supergroup', fields: { migrate_from_chat_id: from } });
  }

  /** A file that people send; returns what names it in a message. */
  keepFile(bytes: Uint8Array, contentLength?: number): { file_id: string; file_unique_id: string; file_size: number } {
    const id = `file${this.files.size + 1}`;
    this.files.set(`documents/${id}`, { bytes, ...(contentLength === undefined ? {} : { contentLength }) });
    return { file_id: id, file_unique_id: `u-${id}`, file_size: bytes.length };
  }

  /** The next calls of a method go wrong, one fault each. */
  failNext(method: string, ...faults: Fault[]): void {
    this.#faults.set(method, [...(this.#faults.get(method) ?? []), ...faults]);
  }

  /** Cuts every connection that is open. */
  cut(): void {
    this.#dropPoll();
    this.#server.closeAllConnections();
  }

  callsOf(method: string): BotCall[] {
    return this.calls.filter((call) => call.method === method);
  }

  /** Brings what is kept to the webhook, one after the other, as long as it is taken; returns the last status. */
  async deliver(to = this.webhook?.url ?? ''): Promise<number> {
    let status = 200;
    for (let update = this.pending[0]; update !== undefined && status === 200; update = this.pending[0]) {
      status = await this.#post(update, to);
      if (status === 200) this.pending.shift();
    }
    return status;
  }

  async close(): Promise<void> {
    this.#dropPoll();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #post(update: Update, url: string): Promise<number> {
    const { secret } = this.webhook ?? { secret: '' };
    const headers = { 'content-type': 'application/json', 'x-telegram-bot-api-secret-token': secret };
    const response = await fetch(url, { method: 'POST', headers, body: JSON.stringify(update) });
    await response.arrayBuffer();
    return response.status;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://fake').pathname);
    if (path.startsWith('/file/')) return this.#giveFile(path, response);
    const [, token, method = ''] = /^\/bot([^/]+)\/(\w+)$/.exec(path) ?? [];
    const call = await readCall(method, request);
    this.calls.push(call);
    const fault = this.#faults.get(method)?.shift();
    if (fault !== undefined && fault !== 'lost') return this.#fail(response, fault);
    if (token !== this.token || this.revoked) return this.#fail(response, { code: 401, description: 'Unauthorized' });
    if (method === 'getUpdates') return this.#getUpdates(call, response);
    try {
      const result = this.#perform(call);
      if (method.startsWith('send') && method !== 'sendChatAction') this.onTaken?.();
      if (fault === 'lost') return void response.destroy();
      answer(response, 200, { ok: true, result });
    } catch (refusal) {
      this.#fail(response, refusal as Fault);
    }
  }

  #fail(response: ServerResponse, fault: Fault): void {
    if (fault === 'cut' || fault === 'lost') response.destroy();
    else if (fault === 'silence') this.#held.add(response);
    else if ('result' in fault) answer(response, 200, { ok: true, ...fault });
    else if ('redirect' in fault) response.writeHead(307, { location: fault.redirect }).end();
    else if ('html' in fault)
      response.writeHead(fault.html, { 'content-type': 'text/html' }).end('<h1>Bad Gateway</h1>');
    else {
      const { code: error_code, description, parameters } = fault;
      answer(response, error_code, { ok: false, error_code, description, ...(parameters ? { parameters } : {}) });
    }
  }

  #getUpdates({ payload }: BotCall, response: ServerResponse): void {
    const { offset = 0, timeout = 0, limit = 100 } = payload as { offset?: number; timeout?: number; limit?: number };
    if (this.webhook !== null) {
      const description =
        "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete it";
      this.#fail(response, { code: 409, description });
      return;
    }
    this.#conflict();
    while (this.pending[0] !== undefined && this.pending[0].update_id < offset) this.pending.shift();
    const give = () => {
      clearTimeout(timer);
      if (this.#poll?.response === response) this.#poll = null;
      answer(response, 200, { ok: true, result: this.pending.slice(0, limit) });
    };
    const timer = setTimeout(give, timeout * 1000);
    response.on('close', () => {
      clearTimeout(timer);
      if (this.#poll?.response === response) this.#poll = null;
    });
    this.#poll = { response, answer: give, timer };
    if (this.pending.length > 0) give();
  }

  /** Whoever asked before hears that somebody else asks. */
  #conflict(): void {
    const poll = this.#poll;
    if (poll === null) return;
    clearTimeout(poll.timer);
    this.#poll = null;
    const description =
      'Conflict: terminated by other getUpdates request; make sure that only one bot instance is running';
    this.#fail(poll.response, { code: 409, description });
  }

  #dropPoll(): void {
    if (this.#poll !== null) clearTimeout(this.#poll.timer);
    this.#poll?.response.destroy();
    this.#poll = null;
  }

  #perform(call: BotCall): unknown {
    const { method, payload } = call;
    const successor = this.#migrated.get(Number(payload.chat_id));
    if (successor !== undefined) {
      const description = 'Bad Request: group chat was upgraded to a supergroup chat';
      throw { code: 400, description, parameters: { migrate_to_chat_id: successor } } satisfies Fault;
    }
    switch (method) {
      case 'getMe':
        return this.self;
      case 'deleteWebhook':
        this.webhook = null;
        return true;
      case 'setWebhook':
        this.webhook = { url: String(payload.url), secret: String(payload.secret_token) };
        return true;
      case 'getFile':
        return this.#fileOf(String(payload.file_id));
      case 'editMessageText':
      case 'editMessageCaption':
        return this.#edit(call);
      case 'deleteMessage':
        if (!this.messages.delete(keyOf(payload))) refuse('Bad Request: message to delete not found');
        return true;
      case 'setMessageReaction':
        this.reactions.set(
          keyOf(payload),
          (payload.reaction as { emoji: string }[]).map(({ emoji }) => emoji),
        );
        return true;
      case 'answerCallbackQuery':
        this.callbackAnswers.set(String(payload.callback_query_id), (payload.text as string | undefined) ?? null);
        return true;
      case 'sendChatAction':
      case 'setMyCommands':
        return true;
      case 'sendMediaGroup':
        return (payload.media as unknown[]).map((_, index) => this.#show(call, index));
      default:
        return method.startsWith('send') ? this.#show(call, null) : refuse('Not Found', 404);
    }
  }

  #show(call: BotCall, index: number | null) {
    const { method, payload } = call;
    const text = textOf(payload);
    const isText = isWords(method);
    if (isText && text.trim() === '') refuse('Bad Request: message text is empty');
    if (isText && text.length > MAX_TEXT) refuse('Bad Request: message is too long');
    if (!isText && text.length > MAX_CAPTION) refuse('Bad Request: message caption is too long');
    const [message_id, chat] = [this.#nextMessage++, Number(payload.chat_id)];
    const thread = payload.message_thread_id === undefined ? null : Number(payload.message_thread_id);
    const files = index === null ? call.files : call.files.slice(index, index + 1);
    this.messages.set(`${chat}:${message_id}`, { messageId: message_id, chat, thread, text, method, payload, files });
    return { message_id, date: this.#nextSecond++, chat: { id: chat, type: 'private' }, from: this.self };
  }

  #edit({ method, payload }: BotCall): unknown {
    const shown = this.messages.get(keyOf(payload));
    if (shown === undefined) return refuse('Bad Request: message to edit not found');
    const isText = isWords(shown.method);
    if (method === 'editMessageText' && !isText) refuse('Bad Request: there is no text in the message to edit');
    const text = textOf(payload);
    if (text.length > (isText ? MAX_TEXT : MAX_CAPTION)) refuse('Bad Request: message is too long');
    if (text === shown.text && markupOf(payload) === markupOf(shown.payload)) {
      refuse('Bad Request: message is not modified: specified new message content is the same as the current one');
    }
    this.messages.set(keyOf(payload), { ...shown, text, payload: { ...payload, method } });
    const { messageId: message_id, chat: id } = shown;
    return { message_id, date: this.#nextSecond++, chat: { id, type: 'private' }, from: this.self, text };
  }

  #fileOf(id: string): unknown {
    const file_path = `documents/${id}`;
    const file = this.files.get(file_path);
    if (file === undefined) return refuse('Bad Request: wrong file_id or the file is temporarily unavailable');
    return { file_id: id, file_unique_id: `u-${id}`, file_path, file_size: file.contentLength ?? file.bytes.length };
  }

  #giveFile(path: string, response: ServerResponse): void {
    const file = this.files.get(path.replace(`/file/bot${this.token}/`, ''));
    if (file === undefined) return void response.writeHead(404).end();
    if (file.redirect !== undefined) return void response.writeHead(302, { location: file.redirect }).end();
    // Without a length the body is sent in pieces, and the receiver has to count.
    response.writeHead(200, file.contentLength === undefined ? { 'content-length': file.bytes.length } : {});
    response.end(file.bytes);
  }
}

function keyOf({ chat_id, message_id }: BotCall['payload']): string {
  return `${chat_id as number}:${message_id as number}`;
}

function markupOf({ reply_markup }: BotCall['payload']): string {
  return JSON.stringify(reply_markup ?? null);
}

function isWords(method: string): boolean {
  return method === 'sendMessage' || method === 'sendRichMessage';
}

function textOf({ text, caption, parse_mode, rich_message }: BotCall['payload']): string {
  // What Telegram makes of that by itself is not played here.
  if (rich_message !== undefined) return String((rich_message as { markdown?: unknown }).markdown);
  const words = String(text ?? caption ?? '');
  if (parse_mode !== 'HTML' && parse_mode !== 'MarkdownV2') return words;
  const read = parse_mode === 'HTML' ? readHtml(words) : readMarkdownV2(words);
  return typeof read === 'string' ? read : refuse(`Bad Request: can't parse entities: ${read.problem}`);
}

function refuse(description: string, code = 400): never {
  throw { code, description } satisfies Fault;
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  if (response.destroyed) return;
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
}

async function readCall(method: string, request: IncomingMessage): Promise<BotCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const body = Buffer.concat(chunks);
  const type = request.headers['content-type'] ?? '';
  const at = performance.now();
  if (!type.startsWith('multipart/form-data')) {
    const payload = body.length === 0 ? {} : (JSON.parse(body.toString('utf8')) as Record<string, unknown>);
    return { method, payload, files: [], at };
  }
  return { method, ...(await readForm(body, type)), at };
}

async function readForm(body: Buffer<ArrayBuffer>, type: string): Promise<Pick<BotCall, 'payload' | 'files'>> {
  const form = await new Response(body, { headers: { 'content-type': type } }).formData();
  const payload: Record<string, unknown> = {};
  const files: { field: string; name: string; bytes: Uint8Array }[] = [];
  for (const [field, value] of form) {
    if (typeof value === 'string') payload[field] = fieldOf(value);
    else files.push({ field, name: value.name, bytes: new Uint8Array(await value.arrayBuffer()) });
  }
  return { payload, files };
}

/** Fields of a form are texts; objects and numbers are JSON in them. */
function fieldOf(text: string): unknown {
  if (!/^(?:[[{]|-?\d+$|true$|false$)/.test(text)) return text;
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

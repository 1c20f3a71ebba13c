import { createHash } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { readMarks } from './whatsapp-marks.ts';
import { checkMessage, type GraphRefusal, refusal, UPLOAD_TYPES } from './whatsapp-rules.ts';
import { WhatsAppWebhooks } from './whatsapp-webhooks.ts';

type Json = Readonly<Record<string, unknown>>;

/** A message of the number as the person sees it. */
export interface CloudMessage {
  readonly id: string;
  readonly to: string;
  /** Without the marks. */
  readonly text: string;
  readonly payload: Json;
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array; readonly type: string }[];
}

/** Makes a call for messages or media go wrong. */
export type CloudFault =
  | GraphRefusal
  | { readonly html: number }
  | { readonly redirect: string }
  /** The server says yes in words that say nothing. */
  | { readonly answer: unknown }
  | 'cut'
  /** It is done, and the answer is lost. */
  | 'lost';

export interface CloudWords {
  readonly from: string;
  readonly name?: string;
  /** The fields of the message behind its id and its time. */
  readonly fields: Json;
}

const DAY_MS = 24 * 3_600_000;
/** The server lets so many through at once to one person, and then one in so many milliseconds. */
const PAIR_BURST = 45;
const PAIR_EVERY_MS = 6000;

/**
 * Meta's Cloud API on loopback, for one number: Graph API, media, and webhooks that come again until they are taken. It
 * keeps the window of 24 hours and the limits, and counts lengths as the real one.
 */
export class WhatsAppCloud {
  readonly phoneNumberId = '106540352242922';
  readonly displayNumber = '15550783881';
  readonly token = 'EAAG-token-of-the-system-user';
  readonly appSecret = 'secret-of-the-app-0123456789';
  readonly verifyToken = 'word-that-was-agreed-on';
  readonly webhooks: WhatsAppWebhooks;
  readonly messages = new Map<string, CloudMessage>();
  /** Every call for messages, also for read marks. */
  readonly calls: Json[] = [];
  /** Of messages of people: which were read, and which show that they are answered. */
  readonly read: string[] = [];
  readonly typing: string[] = [];
  readonly reactions = new Map<string, string>();
  readonly uploads = new Map<string, { name: string; bytes: Uint8Array; type: string }>();
  /** Files of people, by id; `url` is where they are said to be. */
  readonly media = new Map<string, { bytes: Uint8Array; type: string; url: string; claimed?: number }>();
  /** The approved templates, by name and language. */
  readonly templates = new Set<string>();
  /** What asked for a file and how it was allowed to. */
  readonly downloads: { readonly path: string; readonly authorization: string | undefined }[] = [];
  revoked = false;
  /** Called when a message was taken, before it is answered. */
  onTaken: (() => void) | null = null;
  /** What comes of messages that were taken: null for all is well. */
  failsLater: { readonly code: number; readonly title: string } | null = null;
  readonly #server: Server;
  readonly #faults = new Map<string, CloudFault[]>();
  readonly #heard = new Map<string, { from: string; at: number }>();
  readonly #windows = new Map<string, number>();
  readonly #pairs = new Map<string, number>();
  #next = 1;
  /** What became of the last message is on its way. */
  #telling: Promise<unknown> = Promise.resolve();

  private constructor() {
    this.webhooks = new WhatsAppWebhooks({ appSecret: this.appSecret, verifyToken: this.verifyToken });
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<WhatsAppCloud> {
    const fake = new WhatsAppCloud();
    await new Promise<void>((resolve, reject) => {
      fake.#server.once('error', reject).listen(0, '127.0.0.1', resolve);
    });
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** A person says something; returns the id of the message and what is brought. */
  hear({ from, name = 'Ada', fields }: CloudWords): { readonly id: string; readonly payload: Json } {
    const id = this.#newId('in');
    const at = Date.now();
    const contacts = [{ profile: { name }, wa_id: from }];
    const messages = [{ from, id, timestamp: String(Math.floor(at / 1000)), ...fields }];
    this.#heard.set(id, { from, at });
    this.#windows.set(from, at + DAY_MS);
    const payload = this.envelope({ contacts, messages });
    void this.webhooks.bring(payload, 'message', from);
    return { id, payload };
  }

  /** What Meta puts around everything that concerns the number. */
  envelope(value: Json, field = 'messages'): Json {
    const metadata = { display_phone_number: this.displayNumber, phone_number_id: this.phoneNumberId };
    const change = { field, value: { messaging_product: 'whatsapp', metadata, ...value } };
    return { object: 'whatsapp_business_account', entry: [{ id: '102290129340398', changes: [change] }] };
  }

  /** Keeps a file that people send; returns what names it in a message. */
  keepFile(bytes: Uint8Array, type: string, claimed?: number): Json {
    const id = String(1_000_000_000_000 + this.#next++);
    const query = new URLSearchParams({ mid: id, ext: '1800000000', hash: 'ARs' });
    const url = `https://lookaside.fbsbx.com/whatsapp_business/attachments/?${query}`;
    this.media.set(id, { bytes, type, url, ...(claimed === undefined ? {} : { claimed }) });
    return { id, mime_type: type, sha256: createHash('sha256').update(bytes).digest('base64') };
  }

  /** From now on nobody may be answered until they write again. */
  closeWindow(): void {
    for (const person of this.#windows.keys()) this.#windows.set(person, 0);
  }

  /** The next calls for `messages` or `media` go wrong, one fault each. */
  failNext(what: 'messages' | 'media' | 'number', ...faults: CloudFault[]): void {
    this.#faults.set(what, [...(this.#faults.get(what) ?? []), ...faults]);
  }

  /** Cuts every connection that is open. */
  cut(): void {
    this.#server.closeAllConnections();
    this.webhooks.cut();
  }

  async close(): Promise<void> {
    await this.webhooks.close();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', 'http://fake');
    const body = await readBody(request);
    const { authorization } = request.headers;
    if (url.pathname === '/whatsapp_business/attachments/') return this.#giveFile(url, authorization, response);
    const fault = this.#faultFor(url, body);
    try {
      if (this.revoked || authorization !== `Bearer ${this.token}`)
        throw refusal(190, 'Invalid OAuth access token.', 401);
      if (fault !== undefined && fault !== 'lost') return this.#fail(response, fault);
      const type = request.headers['content-type'] ?? '';
      const result = await this.#perform(url, request.method ?? 'GET', body, type);
      if (fault === 'lost') return await this.#lose(response);
      this.#answer(response, 200, result);
    } catch (thrown) {
      this.#fail(response, thrown as CloudFault);
    }
  }

  /** Read marks do not go wrong: nothing depends on them. */
  #faultFor({ pathname }: URL, body: Buffer): CloudFault | undefined {
    const what = /^\/v25\.0\/\d+\/(messages|media)$/.exec(pathname)?.[1] ?? 'number';
    return body.includes('"status":"read"') ? undefined : this.#faults.get(what)?.shift();
  }

  /** The answer is on its way for so long that what it is about is told of before. */
  async #lose(response: ServerResponse): Promise<void> {
    if (this.webhooks.url !== null) await this.#telling;
    response.destroy();
  }

  #fail(response: ServerResponse, fault: CloudFault): void {
    if (fault === 'cut' || fault === 'lost') return void response.destroy();
    if ('html' in fault)
      return void response.writeHead(fault.html, { 'content-type': 'text/html' }).end('<h1>Sorry</h1>');
    if ('redirect' in fault) return void response.writeHead(307, { location: fault.redirect }).end();
    if ('answer' in fault) return void this.#answer(response, 200, fault.answer);
    if (!('error' in fault)) throw fault;
    this.#answer(response, fault.status, { error: fault.error }, fault.minutes);
  }

  /** With the usage headers of the Graph API: in how many minutes calls are taken again. */
  #answer(response: ServerResponse, status: number, body: unknown, minutes = 0): void {
    if (response.destroyed) return;
    const usage = { type: 'whatsapp', call_count: minutes > 0 ? 100 : 3, total_cputime: 1, total_time: 1 };
    const business = { '102290129340398': [{ ...usage, estimated_time_to_regain_access: minutes }] };
    const headers = { 'content-type': 'application/json', 'x-business-use-case-usage': JSON.stringify(business) };
    response.writeHead(status, headers).end(JSON.stringify(body));
  }

  async #perform(url: URL, method: string, body: Buffer<ArrayBuffer>, type: string): Promise<unknown> {
    const [, id = '', edge] = /^\/v25\.0\/(\d+)(?:\/(messages|media))?$/.exec(url.pathname) ?? [];
    if (method === 'GET' && id === this.phoneNumberId) {
      return { id, display_phone_number: `+${this.displayNumber}`, verified_name: 'Moirai' };
    }
    const media = this.media.get(id);
    if (method === 'GET' && media !== undefined) {
      const { url: address, type: mime_type, bytes, claimed } = media;
      return { id, url: address, mime_type, file_size: claimed ?? bytes.length, messaging_product: 'whatsapp' };
    }
    if (method === 'POST' && id === this.phoneNumberId && edge === 'media') return this.#upload(body, type);
    if (method === 'POST' && id === this.phoneNumberId && edge === 'messages') {
      return this.#take(JSON.parse(body.toString('utf8')) as Json);
    }
    throw refusal(100, `Unsupported request. Object with ID '${id}' does not exist`, 400, 33);
  }

  async #upload(body: Buffer<ArrayBuffer>, type: string): Promise<unknown> {
    const form = await new Response(body, { headers: { 'content-type': type } }).formData();
    const file = form.get('file');
    if (!(file instanceof File) || form.get('messaging_product') !== 'whatsapp')
      throw refusal(100, 'Invalid parameter');
    if (!UPLOAD_TYPES.has(file.type)) throw refusal(100, `Received file of type '${file.type}'.`);
    const id = String(2_000_000_000_000 + this.#next++);
    this.uploads.set(id, { name: file.name, bytes: new Uint8Array(await file.arrayBuffer()), type: file.type });
    return { id };
  }

  #take(payload: Json): unknown {
    this.calls.push(payload);
    if (payload.messaging_product !== 'whatsapp') throw refusal(100, 'The parameter messaging_product is required.');
    if (payload.status === 'read') return this.#markRead(payload);
    checkMessage(payload, this.templates);
    const to = String(payload.to ?? payload.recipient);
    this.#spend(to);
    if (payload.type !== 'template' && (this.#windows.get(to) ?? 0) <= Date.now()) {
      throw refusal(131047, 'Re-engagement message', 400, undefined, 'More than 24 hours have passed');
    }
    const id = this.#newId('out');
    const failure = this.failsLater;
    if (payload.type === 'reaction') this.#react(payload);
    else if (failure === null) this.#show(id, to, payload);
    const words = failure === null ? ['sent', 'delivered'] : ['failed'];
    this.#telling = Promise.all(words.map((word) => this.#tell(id, to, payload, word, failure)));
    return { messaging_product: 'whatsapp', contacts: [{ input: to, wa_id: to }], messages: [{ id }] };
  }

  #markRead({ message_id, typing_indicator }: Json): unknown {
    const id = String(message_id);
    if (!this.#heard.has(id)) throw refusal(131009, 'Parameter value is not valid');
    this.read.push(id);
    if (typing_indicator !== undefined) this.typing.push(id);
    return { success: true };
  }

  #react(payload: Json): void {
    const { message_id, emoji } = payload.reaction as { message_id: string; emoji: string };
    if (!this.#heard.has(message_id) && !this.messages.has(message_id))
      throw refusal(131009, 'Parameter value is not valid');
    if (emoji === '') this.reactions.delete(message_id);
    else this.reactions.set(message_id, emoji);
  }

  #show(id: string, to: string, payload: Json): void {
    const content = payload[String(payload.type)] as Json;
    const body =
      (content.body as { text?: string } | string | undefined) ?? content.caption ?? parameterIn(content) ?? '';
    const upload = content.id === undefined ? undefined : this.uploads.get(String(content.id));
    if (content.id !== undefined && upload === undefined) throw refusal(131053, 'Media upload error');
    const text = readMarks(typeof body === 'string' ? body : ((body as { text?: string }).text ?? ''));
    const name = (content.filename as string | undefined) ?? upload?.name ?? '';
    const files = upload === undefined ? [] : [{ ...upload, name }];
    this.messages.set(id, { id, to, text, payload, files });
    this.onTaken?.();
  }

  #tell(id: string, to: string, payload: Json, status: string, failure: WhatsAppCloud['failsLater']): Promise<void> {
    const { biz_opaque_callback_data: data } = payload;
    const error =
      failure === null
        ? {}
        : { errors: [{ ...failure, message: failure.title, error_data: { details: failure.title } }] };
    const timestamp = String(Math.floor(Date.now() / 1000));
    const told = { id, status, timestamp, recipient_id: to, ...error };
    const statuses = [data === undefined ? told : { ...told, biz_opaque_callback_data: data }];
    return this.webhooks.bring(this.envelope({ statuses }), 'status', `status ${id}`);
  }

  #spend(to: string): void {
    const now = Date.now();
    const fullAt = Math.max(this.#pairs.get(to) ?? 0, now) + PAIR_EVERY_MS;
    if (fullAt > now + PAIR_BURST * PAIR_EVERY_MS)
      throw refusal(131056, '(Business Account, Consumer Account) pair rate limit hit');
    this.#pairs.set(to, fullAt);
  }

  #giveFile(url: URL, authorization: string | undefined, response: ServerResponse): void {
    this.downloads.push({ path: `${url.pathname}${url.search}`, authorization });
    const file = this.media.get(url.searchParams.get('mid') ?? '');
    if (authorization !== `Bearer ${this.token}`) return void response.writeHead(401).end();
    if (file === undefined) return void response.writeHead(404).end();
    // Without a length where it is lied about: the body is sent in pieces, and the receiver has to count.
    const length = file.claimed === undefined ? { 'content-length': file.bytes.length } : {};
    response.writeHead(200, { 'content-type': file.type, ...length }).end(file.bytes);
  }

  #newId(way: 'in' | 'out'): string {
    return `wamid.${Buffer.from(`${way}:${this.phoneNumberId}:${this.#next++}`).toString('base64')}`;
  }
}

function parameterIn({ components }: Json): string | undefined {
  const [body] = (components as { parameters: { text: string }[] }[] | undefined) ?? [];
  return body?.parameters[0]?.text;
}

async function readBody(request: IncomingMessage): Promise<Buffer<ArrayBuffer>> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type FakeCard, FakeCards } from './dingtalk-cards.ts';
import { type DingtalkRefusal, refuse, refuseOld } from './dingtalk-refusal.ts';
import { StreamServer } from './dingtalk-stream.ts';

/** A call as it came. */
export interface DingtalkCall {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingMessage['headers'];
  readonly body: Readonly<Record<string, unknown>>;
  readonly raw: Buffer<ArrayBuffer>;
}

/** A message of the robot as people see it. */
export interface DingtalkMessage {
  readonly messageId: string;
  readonly chat: string;
  readonly text: string;
  readonly way: 'webhook' | 'api' | 'card';
  readonly files: readonly { readonly name: string; readonly bytes: Uint8Array }[];
  readonly card?: FakeCard;
  readonly raw: Readonly<Record<string, unknown>>;
}

/** Makes calls go wrong: an answer of DingTalk's, a page of a proxy, a cut, or an answer that gets lost. */
export type DingtalkFault =
  | { readonly status: number; readonly body?: object; readonly headers?: Readonly<Record<string, string>> }
  | 'cut'
  | 'lost';

const TOKEN_SECONDS = 7200;
const MOST_BYTES = 20_000;
const SENDS = ['/robot/sendBySession', '/v1.0/robot/groupMessages/send', '/v1.0/robot/oToMessages/batchSend'];

/** DingTalk on loopback: the API, the older API, the addresses that messages bring, cards, files, and stream mode. */
export class DingtalkFake {
  readonly clientId = 'dingfake01';
  readonly clientSecret = 'secret-of-the-app';
  readonly robotCode = 'robot-1';
  readonly template = 'template-1.schema';
  readonly variable = 'content';
  readonly calls: DingtalkCall[] = [];
  /** In the order in which people see them. */
  readonly messages: DingtalkMessage[] = [];
  /** By the id of the message. */
  readonly signs = new Map<string, string[]>();
  /** Files of people, by their code. */
  readonly files = new Map<string, { readonly bytes: Uint8Array; readonly url?: string }>();
  /** Addresses that take answers, with the chat that they belong to and their end. */
  readonly sessions = new Map<string, { readonly chat: string; until: number }>();
  readonly outsiders = new Set<string>();
  readonly disbanded = new Set<string>();
  readonly flowControlled = new Set<string>();
  readonly cards = new FakeCards('template-1.schema', 'content', 'robot-1');
  readonly stream = new StreamServer();
  /** The secret is not known any more. */
  revoked = false;
  /** Called when a message of the robot was taken, before it is answered. */
  onTaken: (() => void) | null = null;
  readonly #tokens = new Set<string>();
  readonly #media = new Map<string, { readonly name: string; readonly bytes: Uint8Array; readonly type: string }>();
  readonly #faults = new Map<string, DingtalkFault[]>();
  readonly #server: Server;
  #next = 1;

  private constructor() {
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
    this.#server.on('upgrade', (request, socket, head) => this.stream.upgrade(request, socket, head));
  }

  static async start(): Promise<DingtalkFake> {
    const fake = new DingtalkFake();
    await new Promise<void>((resolve, reject) => {
      fake.#server.once('error', reject).listen(0, '127.0.0.1', resolve);
    });
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  callsTo(path: string): DingtalkCall[] {
    return this.calls.filter((call) => call.path === path);
  }

  /** The next calls of a path go wrong, one fault each; `send` is whatever sends a message. */
  failNext(path: string, ...faults: DingtalkFault[]): void {
    this.#faults.set(path, [...(this.#faults.get(path) ?? []), ...faults]);
  }

  /** Tokens that were given out are not taken any more. */
  forgetTokens(): void {
    this.#tokens.clear();
  }

  /** An address that takes answers for a chat. */
  session(chat: string, until: number): string {
    const id = `session-${this.#next++}`;
    this.sessions.set(id, { chat, until });
    return `${this.url}/robot/sendBySession?session=${id}`;
  }

  async close(): Promise<void> {
    await this.stream.close();
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = await readCall(request);
    this.calls.push(call);
    const fault = this.#faultOf(call.path);
    if (fault !== undefined && fault !== 'lost') return fail(response, fault);
    try {
      const answer = await this.#perform(call);
      if (fault === 'lost') return void response.destroy();
      if (Buffer.isBuffer(answer)) response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(answer);
      else reply(response, 200, answer);
    } catch (thrown) {
      const { status, body } = thrown as DingtalkRefusal;
      if (status === undefined) throw thrown;
      reply(response, status, body);
    }
  }

  #faultOf(path: string): DingtalkFault | undefined {
    const send = SENDS.includes(path) ? this.#faults.get('send')?.shift() : undefined;
    return send ?? this.#faults.get(path)?.shift();
  }

  #perform(call: DingtalkCall): unknown {
    const { path, body } = call;
    if (path.startsWith('/storage/')) return this.#giveFile(path);
    switch (path) {
      case '/v1.0/oauth2/accessToken':
        return this.#giveToken(body);
      case '/v1.0/gateway/connections/open':
        return this.#openConnection(call);
      case '/robot/sendBySession':
        return this.#answerSession(call);
      case '/media/upload':
        return this.#keepMedia(call);
      default:
        this.#checkToken(call.headers['x-acs-dingtalk-access-token']);
        return this.#performWithToken(call);
    }
  }

  #performWithToken({ method, path, body }: DingtalkCall): unknown {
    switch (`${method} ${path}`) {
      case 'POST /v1.0/robot/groupMessages/send':
      case 'POST /v1.0/robot/oToMessages/batchSend':
        return this.#sendMessage(body);
      case 'POST /v1.0/robot/messageFiles/download':
        return this.#giveAddress(body);
      case 'POST /v1.0/robot/emotion/reply':
      case 'POST /v1.0/robot/emotion/recall':
        return this.#sign(path.endsWith('reply'), body);
      case 'POST /v1.0/card/instances/createAndDeliver': {
        const { card, answer } = this.cards.createAndDeliver(body);
        if (!this.cards.undeliverable)
          this.#show({ chat: card.chat, text: '', way: 'card', card }, card.outTrackId, body);
        return answer;
      }
      case 'PUT /v1.0/card/streaming':
        if (this.cards.stream(body)) this.onTaken?.();
        return { success: true, result: true };
      case 'PUT /v1.0/card/instances':
        this.cards.update(body);
        return { success: true, result: true };
      default:
        return refuse(404, 'InvalidAction.NotFound', 'there is no such call');
    }
  }

  #giveToken({ appKey, appSecret }: DingtalkCall['body']): unknown {
    if (this.revoked || appKey !== this.clientId || appSecret !== this.clientSecret) {
      return refuse(400, 'invalidClientIdOrSecret', '无效的clientId或者clientSecret');
    }
    const accessToken = `token-${this.#next++}-of-the-app`;
    this.#tokens.add(accessToken);
    return { accessToken, expireIn: TOKEN_SECONDS };
  }

  #checkToken(token: unknown): void {
    if (typeof token !== 'string' || !this.#tokens.has(token) || this.revoked) {
      refuse(401, 'InvalidAuthentication', '不合法的access_token');
    }
  }

  #openConnection({ body, headers }: DingtalkCall): unknown {
    const { clientId, clientSecret, subscriptions } = body as { subscriptions?: { type: string; topic: string }[] } & {
      [key: string]: unknown;
    };
    if (this.revoked || clientId !== this.clientId || clientSecret !== this.clientSecret) {
      return refuse(401, 'authFailed', '鉴权失败');
    }
    // Without it the real one answers in XML.
    if (!String(headers.accept).includes('application/json')) return refuse(406, 'NotAcceptable', 'accept');
    const topics = (subscriptions ?? []).map(({ type, topic }) => `${type} ${topic}`);
    if (!topics.includes('CALLBACK /v1.0/im/bot/messages/get')) return refuse(400, 'param.error', 'subscriptions');
    return { endpoint: `${this.url.replace('http:', 'ws:')}/connect`, ticket: this.stream.ticket() };
  }

  #answerSession({ query, body }: DingtalkCall): unknown {
    const session = this.sessions.get(query.get('session') ?? '');
    if (session === undefined || session.until <= Date.now()) return refuseOld(300001, 'token is not exist');
    const { msgtype, markdown } = body as { msgtype?: string; markdown?: { title?: string; text?: string } };
    const { title = '', text = '' } = markdown ?? {};
    if (msgtype !== 'markdown' || title === '' || text === '') return refuseOld(400002, 'params error');
    if (Buffer.byteLength(JSON.stringify(body)) > MOST_BYTES * 2 || Buffer.byteLength(text) > MOST_BYTES) {
      return refuseOld(460101, 'message too long, exceed 20000 bytes');
    }
    this.#show({ chat: session.chat, text: asRead(text), way: 'webhook' }, `webhook-${this.#next++}`, body);
    this.onTaken?.();
    return { errcode: 0, errmsg: 'ok' };
  }

  #sendMessage(body: DingtalkCall['body']): unknown {
    const { robotCode, openConversationId, userIds, msgKey, msgParam } = body as Record<string, string> & {
      userIds?: string[];
    };
    if (robotCode !== this.robotCode) return refuse(400, 'invalidParameter.robotCode.notExsit', 'robot 不存在');
    const chat = openConversationId ?? userIds?.[0] ?? '';
    if (openConversationId !== undefined && (!chat.startsWith('cid') || this.disbanded.has(chat))) {
      return refuse(400, 'invalidParameter.openConversationId.invalid', 'openConversationId invalid');
    }
    const processQueryKey = `query-${this.#next++}`;
    const lists = { invalidStaffIdList: [] as string[], flowControlledStaffIdList: [] as string[] };
    if (this.outsiders.has(chat) || chat.startsWith('$'))
      return { processQueryKey, ...lists, invalidStaffIdList: [chat] };
    if (this.flowControlled.delete(chat)) return { processQueryKey, ...lists, flowControlledStaffIdList: [chat] };
    this.#show({ chat, way: 'api', ...this.#contentOf(msgKey ?? '', msgParam ?? '') }, processQueryKey, body);
    this.onTaken?.();
    return { processQueryKey, ...lists };
  }

  #contentOf(msgKey: string, msgParam: string): { text: string; files?: DingtalkMessage['files'] } {
    const param = JSON.parse(msgParam) as Record<string, string>;
    if (msgKey === 'sampleMarkdown') {
      if (!param.title || !param.text) refuse(400, 'invalidParameter.msgParam', 'title and text');
      if (Buffer.byteLength(param.text ?? '') > MOST_BYTES) refuse(400, 'msgParam.tooLong', 'msgParam is too long');
      return { text: asRead(param.text ?? '') };
    }
    const media = this.#media.get(param.photoURL ?? param.mediaId ?? '');
    const type = { sampleImageMsg: 'image', sampleFile: 'file', sampleAudio: 'voice' }[msgKey];
    if (media === undefined || media.type !== type) return refuse(400, 'invalidParameter.msgParam', 'media');
    if (msgKey === 'sampleAudio' && !/^\d+$/.test(param.duration ?? '')) {
      return refuse(400, 'invalidParameter.msgParam', 'duration');
    }
    if (msgKey === 'sampleFile' && !param.fileType) return refuse(400, 'invalidParameter.msgParam', 'fileType');
    return { text: '', files: [{ name: param.fileName ?? media.name, bytes: media.bytes }] };
  }

  async #keepMedia({ query, headers, raw }: DingtalkCall): Promise<unknown> {
    const token = query.get('access_token') ?? '';
    if (!this.#tokens.has(token)) return refuseOld(40014, '不合法的access_token');
    const type = query.get('type') ?? '';
    if (!['image', 'voice', 'video', 'file'].includes(type)) return refuseOld(40004, '不合法的媒体文件类型');
    const form = await new Response(raw, { headers: { 'content-type': headers['content-type'] ?? '' } }).formData();
    const media = form.get('media');
    if (media === null || typeof media === 'string') return refuseOld(40035, 'media');
    const media_id = `@lAD${this.#next++}`;
    this.#media.set(media_id, { name: media.name, bytes: new Uint8Array(await media.arrayBuffer()), type });
    return { errcode: 0, errmsg: 'ok', media_id, type, created_at: Date.now() };
  }

  #giveAddress({ downloadCode, robotCode }: DingtalkCall['body']): unknown {
    const file = this.files.get(String(downloadCode));
    if (file === undefined || robotCode !== this.robotCode) {
      return refuse(400, 'invalidParameter.robotCode.downloadCode', '下载码有误或者已经过期');
    }
    return { downloadUrl: file.url ?? `${this.url}/storage/${encodeURIComponent(String(downloadCode))}?signature=x` };
  }

  #giveFile(path: string): Buffer {
    const file = this.files.get(decodeURIComponent(path.slice('/storage/'.length)));
    return file === undefined ? refuse(404, 'NoSuchKey', 'there is no such file') : Buffer.from(file.bytes);
  }

  #sign(isPut: boolean, body: DingtalkCall['body']): unknown {
    const { openMsgId, openConversationId, emotionName, emotionType, textEmotion } = body as Record<string, string>;
    if (!openMsgId || !openConversationId?.startsWith('cid') || Number(emotionType) !== 2 || !textEmotion) {
      return refuse(400, 'param.error', 'openMsgId, openConversationId, emotionType, textEmotion');
    }
    const before = this.signs.get(openMsgId) ?? [];
    const rest = before.filter((name) => name !== emotionName);
    if (!isPut && rest.length === before.length) return refuse(400, 'emotion.notExist', 'there is no such emotion');
    this.signs.set(openMsgId, isPut ? [...rest, emotionName ?? ''] : rest);
    return { success: true };
  }

  #show(
    shown: Pick<DingtalkMessage, 'chat' | 'text' | 'way'> & Partial<DingtalkMessage>,
    messageId: string,
    raw: DingtalkCall['body'],
  ): void {
    this.messages.push({ messageId, files: [], raw, ...shown });
  }
}

/** Lines that end in two blanks are lines of their own. */
function asRead(text: string): string {
  return text.replaceAll('  \n', '\n');
}

function fail(response: ServerResponse, fault: Exclude<DingtalkFault, 'lost'>): void {
  if (fault === 'cut') response.destroy();
  else reply(response, fault.status, fault.body ?? '<h1>Bad Gateway</h1>', fault.headers);
}

function reply(response: ServerResponse, status: number, body: unknown, headers: object = {}): void {
  if (response.destroyed) return;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(text);
}

async function readCall(request: IncomingMessage): Promise<DingtalkCall> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  const raw = Buffer.concat(chunks);
  const { pathname: path, searchParams: query } = new URL(request.url ?? '/', 'http://fake');
  const { method = 'GET', headers } = request;
  const isJson = headers['content-type'] === 'application/json' && raw.length > 0;
  const body = isJson ? (JSON.parse(raw.toString('utf8')) as Record<string, unknown>) : {};
  return { method, path, query, headers, body, raw };
}

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type DingtalkCall, readCall } from './dingtalk-call.ts';
import { type FakeCard, FakeCards } from './dingtalk-cards.ts';
import { FakeFiles } from './dingtalk-files.ts';
import { type DingtalkRefusal, refuse, refuseOld } from './dingtalk-refusal.ts';
import { StreamServer } from './dingtalk-stream.ts';

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
  readonly files = new FakeFiles('robot-1');
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
    if (path.startsWith('/storage/')) return this.files.give(path);
    switch (path) {
      case '/v1.0/oauth2/accessToken':
        return this.#giveToken(body);
      case '/v1.0/gateway/connections/open':
        return this.#openConnection(call);
      case '/robot/sendBySession':
        return this.#answerSession(call);
      case '/media/upload':
        if (!this.#tokens.has(call.query.get('access_token') ?? '')) return refuseOld(40014, '不合法的access_token');
        return this.files.upload(call.query.get('type') ?? '', call.raw, call.headers['content-type'] ?? '');
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
        return this.files.addressOf(body, this.url);
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
    return { text: '', files: [this.files.shown(msgKey, param)] };
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

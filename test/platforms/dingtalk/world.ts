import { Dingtalk } from '../../../src/platforms/dingtalk/platform.ts';
import type { Place } from '../../../src/platforms/platform.ts';
import type { DingtalkCall } from '../../fakes/dingtalk-call.ts';
import { DingtalkFake, type DingtalkMessage } from '../../fakes/dingtalk-server.ts';
import {
  type Happening,
  type Shown,
  testRuntime,
  type UserMessage,
  type Where,
  type World,
} from '../contract/scene.ts';

export const GROUP = 'cidGroup1==';
export const MESSAGES = '/v1.0/im/bot/messages/get';
export const PRESSES = '/v1.0/card/instances/callback';
const BOT_USER = '$:LWCP_v1:$bot';
const WEBHOOK_MS = 90 * 60_000;
/** The platform's time runs faster than that of the server, where tests do not need it otherwise. */
const FAST = 100;

export function staffOf(person: number): string {
  return `staff${42 + person}`;
}

function directChat(person: number): string {
  return `cidDirect${staffOf(person)}==`;
}

/** A platform at a fake, and what it warned of. */
export function dingtalkAt(fake: DingtalkFake, { card = true, speed = FAST } = {}) {
  const runtime = testRuntime('dingtalk', speed);
  const { clientId, clientSecret, robotCode, url: apiRoot, template, variable } = fake;
  const make = () =>
    new Dingtalk({ clientId, clientSecret, robotCode, apiRoot, card: card ? { template, variable } : null, runtime });
  return { platform: make(), make, warnings: runtime.warnings, runtime };
}

/** DingTalk and the people there. */
export class DingtalkWorld implements World {
  readonly fake: DingtalkFake;
  readonly settings: World['settings'];
  readonly secrets: readonly string[];
  #last: Record<string, unknown> = {};
  #next = 1;

  private constructor(fake: DingtalkFake, card: boolean) {
    this.fake = fake;
    const { clientId, clientSecret, robotCode, url, template, variable } = fake;
    const app = { client_id: clientId, client_secret: clientSecret, robot_code: robotCode, api_root: url };
    this.settings = { ...app, ...(card ? { card_template: template, card_variable: variable } : {}) };
    this.secrets = [clientSecret, 'of-the-app'];
  }

  static async open({ card }: { card: boolean }): Promise<DingtalkWorld> {
    return new DingtalkWorld(await DingtalkFake.start(), card);
  }

  place(where: Where, person = 0): Place {
    return where === 'dm' ? { type: 'dm', chat: staffOf(person) } : { type: 'group', chat: GROUP };
  }

  async say({ text, where = 'dm', person = 0, file, repliesTo }: UserMessage): Promise<string> {
    const quote = repliesTo === undefined ? undefined : { msgType: 'text', msgId: repliesTo, content: { text: '…' } };
    const shared = file === undefined ? quote : { msgType: 'file', msgId: 'msg-file', content: this.#keepFile(file) };
    const isAlone = file !== undefined && text === '';
    const words = { content: text, ...(shared === undefined ? {} : { isReplyMsg: true, repliedMsg: shared }) };
    const content = isAlone ? { msgtype: 'file', content: this.#keepFile(file) } : { msgtype: 'text', text: words };
    return this.bring({ ...this.message(where, person), ...content });
  }

  /** What every message has, whatever it holds. */
  message(where: Where = 'dm', person = 0) {
    const conversationId = where === 'dm' ? directChat(person) : GROUP;
    const chat = where === 'dm' ? staffOf(person) : GROUP;
    const until = Date.now() + WEBHOOK_MS;
    return {
      conversationId,
      conversationType: where === 'dm' ? '1' : '2',
      ...(where === 'dm' ? {} : { conversationTitle: 'Group', isInAtList: true }),
      msgId: `msg-${this.#next++}==`,
      createAt: Date.now(),
      senderId: `$:LWCP_v1:$${person}`,
      senderStaffId: staffOf(person),
      senderNick: 'Ada Lovelace',
      senderCorpId: 'corp-1',
      chatbotUserId: BOT_USER,
      chatbotCorpId: 'corp-1',
      robotCode: this.fake.robotCode,
      isAdmin: false,
      sessionWebhook: this.fake.session(chat, until),
      sessionWebhookExpiredTime: until,
    };
  }

  /** Brings a message; returns what signs at it refer to. */
  bring(data: ReturnType<DingtalkWorld['message']> & Record<string, unknown>): string {
    this.#last = data;
    void this.fake.stream.keep('CALLBACK', MESSAGES, data);
    return `${data.conversationId}|${data.msgId}`;
  }

  shown(): readonly Shown[] {
    return this.fake.messages.map((message) => this.#shownOf(message));
  }

  unacknowledged(): number {
    return this.fake.stream.unacknowledged;
  }

  async echo(text: string): Promise<void> {
    this.bring({ ...this.message(), senderId: BOT_USER, senderStaffId: '', msgtype: 'text', text: { content: text } });
  }

  async bringAgain(): Promise<void> {
    void this.fake.stream.keep('CALLBACK', MESSAGES, this.#last);
  }

  async press(messageId: string, data: string, person = 0): Promise<string | null> {
    const card = this.fake.cards.all.get(messageId);
    if (card === undefined) throw new TypeError(`there is no card ${messageId}`);
    const isGroup = card.chat === GROUP;
    const buttons = this.fake.cards.buttonsOf(card, staffOf(person));
    const pressed = buttons.find(({ event }) => (event?.params.params as { data?: string } | undefined)?.data === data);
    if (pressed?.event?.type !== 'sendCardRequest') throw new TypeError(`there is no button for ${data}`);
    const { actionId, params } = pressed.event.params;
    const callback = {
      ...{ type: 'actionCallback', outTrackId: messageId, corpId: 'corp-1', userId: staffOf(person), userIdType: 1 },
      spaceType: isGroup ? 'IM_GROUP' : 'IM_ROBOT',
      spaceId: isGroup ? GROUP : directChat(person),
      content: JSON.stringify({ cardPrivateData: { actionIds: [actionId], params } }),
    };
    const { response } = await this.fake.stream.keep('CALLBACK', PRESSES, callback);
    this.fake.cards.apply(card, response as Record<string, unknown>, staffOf(person));
    return this.settledText(messageId, person);
  }

  /** What somebody sees in place of the buttons. */
  settledText(messageId: string, person = 0): string | null {
    const card = this.fake.cards.all.get(messageId);
    const buttons = card === undefined ? [] : this.fake.cards.buttonsOf(card, staffOf(person));
    return buttons.find(({ status }) => status === 'disabled')?.text ?? null;
  }

  reactions(messageId: string): readonly string[] {
    return this.fake.signs.get(messageId.split('|')[1] ?? '') ?? [];
  }

  limitRate(_ms: number): void {
    const code = 'Forbidden.AccessDenied.QpsLimitForAppkeyAndApi';
    const body = { requestid: 'request-1', code, message: 'qps limit' };
    this.fake.failNext('send', { status: 403, body });
  }

  stumble(): void {
    this.fake.failNext('send', { status: 503 });
  }

  loseAnswer(): void {
    this.fake.failNext('send', 'lost');
  }

  cut(): void {
    this.fake.stream.cut();
  }

  revoke(): void {
    this.fake.revoked = true;
    this.fake.stream.cut();
  }

  onTaken(callback: (() => void) | null): void {
    this.fake.onTaken = callback;
  }

  async happen(what: Happening): Promise<void> {
    const eventType = { removed: 'chat_disband', joined: 'chat_add_member' }[what as 'removed' | 'joined'];
    const data = { openConversationId: GROUP, chatId: 'chat1', userId: [staffOf(7)], operator: staffOf(1) };
    void this.fake.stream.keep('EVENT', '*', data, {
      eventType,
      eventId: `event-${this.#next++}`,
      eventCorpId: 'corp-1',
    });
  }

  /** `data` of a frame is JSON in a text; in samples it is written as what it says. */
  push(payload: Record<string, unknown>): void {
    this.fake.stream.push(frameOf(payload));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fake.close();
  }

  #shownOf({ messageId, chat, text, card, files }: DingtalkMessage): Shown {
    const labels = card === undefined ? [] : this.fake.cards.buttonsOf(card).map((button) => button.text);
    const stream = card === undefined ? {} : { stream: card.stream === 'finished' ? card.stream : ('open' as const) };
    const shown = card === undefined ? text : card.content;
    return { messageId, chat, text: shown, thread: null, repliesTo: null, files, buttons: labels, ...stream };
  }

  #keepFile({ bytes, name }: NonNullable<UserMessage['file']>) {
    const downloadCode = `code-${this.#next++}+/=`;
    this.fake.files.set(downloadCode, { bytes });
    return { downloadCode, fileName: name, fileId: `file-${this.#next++}` };
  }
}

export function frameOf(payload: Record<string, unknown>): Record<string, unknown> {
  const { data } = payload;
  return typeof data === 'object' && data !== null ? { ...payload, data: JSON.stringify(data) } : payload;
}

/** What a call carried that is JSON in a text. */
export function paramOf({ body }: DingtalkCall): Record<string, string> {
  return JSON.parse(String(body.msgParam)) as Record<string, string>;
}

import { createPrivateKey, type KeyObject, sign } from 'node:crypto';
import type { Place } from '../../../src/platforms/platform.ts';
import { labelsOf, type QqMessage, referenceOf } from '../../fakes/qq-messages.ts';
import { QqServer } from '../../fakes/qq-server.ts';
import { type Happening, type Shown, type UserMessage, until, type Where, type World } from '../contract/scene.ts';

export const GROUP = 'GROUP0OPENID00000000000000000001';
const DELIVER_MS = 10;
const ONLINE_MS = 60_000;
/** QQ waits no longer for an answer. */
const PATIENCE_MS = 3000;
const PKCS8 = Buffer.from('302e020100300506032b657004220420', 'hex');

export type QqMode = 'websocket' | 'webhook';

export function personId(person: number): string {
  return `PERSON0OPENID000000000000000${1000 + person}`;
}

/** The same person has another id in each group. */
export function memberId(person: number): string {
  return `MEMBER0OPENID000000000000000${1000 + person}`;
}

/** QQ and the people there; it is connected to, or brings events. */
export class QqWorld implements World {
  readonly server: QqServer;
  readonly settings: World['settings'];
  readonly secrets: readonly string[];
  readonly #mode: QqMode;
  readonly #pump: NodeJS.Timeout | null;
  readonly #pending: Record<string, unknown>[] = [];
  #door: string | null = null;
  #delivering = false;
  #last: Record<string, unknown> = {};
  #count = 0;
  #now: () => number = Date.now;

  private constructor(server: QqServer, mode: QqMode) {
    this.server = server;
    this.#mode = mode;
    this.settings = { app_id: server.appId, client_secret: server.secret, mode, api_root: server.url };
    this.secrets = [server.secret, 'token-1'];
    this.#pump = mode === 'webhook' ? setInterval(() => void this.#deliver(), DELIVER_MS) : null;
  }

  static async open(mode: QqMode): Promise<QqWorld> {
    return new QqWorld(await QqServer.start(), mode);
  }

  /** The platform's time may run faster than that of the machine, and what is signed is of its time. */
  setClock(now: () => number): void {
    this.#now = now;
  }

  place(where: Where, person = 0): Place {
    if (where === 'thread') throw new TypeError('there are no threads on QQ');
    return where === 'dm' ? { type: 'dm', chat: personId(person) } : { type: 'group', chat: GROUP };
  }

  async say({ text, where = 'dm', person = 0, file, repliesTo }: UserMessage): Promise<string> {
    // Nobody finds a bot that has never been online; what is said to one that is away waits for its session.
    if (this.#mode === 'websocket') await until(() => this.server.gateway.hasSession, 'the bot online', ONLINE_MS);
    const id = `ROBOT1.0_said-${++this.#count}!!`;
    const ext = [`msg_idx=${referenceOf(id)}`];
    const quoted = this.server.messages.shown.find((message) => nameOf(message) === repliesTo);
    if (quoted !== undefined) ext.push(`ref_msg_idx=${quoted.reference}`);
    const d = {
      ...{ id, content: text, timestamp: new Date().toISOString(), message_scene: { source: 'default', ext } },
      ...(quoted === undefined ? {} : { message_type: 103, msg_elements: [{ content: quoted.text }] }),
      ...(file === undefined ? {} : { attachments: [this.#attachment(file)] }),
    };
    const isDirect = where === 'dm';
    const author = isDirect ? { user_openid: personId(person) } : { member_openid: memberId(person), username: 'Ada' };
    this.server.messages.said(id, isDirect ? `/v2/users/${personId(person)}` : `/v2/groups/${GROUP}`);
    const t = isDirect ? 'C2C_MESSAGE_CREATE' : 'GROUP_MESSAGE_CREATE';
    this.#bring({ op: 0, id: `${t}:${id}`, t, d: { ...d, author, ...(isDirect ? {} : { group_openid: GROUP }) } });
    return id;
  }

  push(payload: Record<string, unknown>): void {
    this.#bring(payload);
  }

  shown(): readonly Shown[] {
    return this.server.messages.shown.map((message) => this.#shownOf(message));
  }

  unacknowledged(): number {
    return this.#mode === 'webhook' ? this.#pending.length : this.server.gateway.unacknowledged;
  }

  async echo(text: string): Promise<void> {
    const author = { id: '777000777', username: 'Moirai', bot: true };
    const d = { id: 'echo-1', channel_id: '20', guild_id: '10', content: text, author };
    this.#bring({ op: 0, id: 'echo', t: 'MESSAGE_CREATE', d });
  }

  async bringAgain(): Promise<void> {
    this.#bring(this.#last);
  }

  async press(messageId: string, data: string, person = 0): Promise<string | null> {
    const message = this.server.messages.shown.find((each) => nameOf(each) === messageId);
    const isGroup = message?.path === `/v2/groups/${GROUP}`;
    const id = `press-${++this.#count}`;
    const eventId = `INTERACTION_CREATE:${id}`;
    this.server.messages.happened(eventId, message?.path ?? '');
    const who = isGroup
      ? { chat_type: 1, group_openid: GROUP, group_member_openid: memberId(person) }
      : { chat_type: 2, user_openid: personId(person) };
    const resolved = { button_data: data, button_id: '1', message_id: message?.id };
    const d = { id, type: 11, version: 1, ...who, data: { type: 11, resolved } };
    this.#bring({ op: 0, id: eventId, t: 'INTERACTION_CREATE', d });
    await until(() => this.server.presses.get(id) === 0, 'the acknowledgement of the press');
    const answer = (): QqMessage | undefined => {
      return this.server.messages.shown.find(({ body }) => body.event_id === eventId);
    };
    await until(() => answer() !== undefined, 'the answer to the press');
    return answer()?.text ?? null;
  }

  limitRate(ms: number): void {
    this.server.failNext({ status: 429, retryAfter: ms / 1000 });
  }

  stumble(): void {
    this.server.failNext({ html: 502 });
  }

  cut(): void {
    this.server.gateway.cut();
  }

  revoke(): void {
    this.server.revoked = true;
  }

  loseAnswer(): void {
    this.server.failNext('lost');
  }

  closeWindow(): void {
    this.server.messages.closeWindows();
  }

  onTaken(callback: (() => void) | null): void {
    this.server.onTaken = callback;
  }

  bringTo(url: string | null): void {
    this.#door = url;
  }

  async forge(how: 'unsigned' | 'forged' | 'stale'): Promise<number> {
    const d = { id: 'forged', author: { user_openid: personId(0) }, content: 'forged', timestamp: '2026-01-01' };
    const body = JSON.stringify({ op: 0, id: 'forged', t: 'C2C_MESSAGE_CREATE', d });
    const seconds = Math.floor(this.#now() / 1000) - (how === 'stale' ? 3600 : 0);
    const secret = how === 'forged' ? 'not the secret' : this.server.secret;
    const headers = how === 'unsigned' ? {} : signedHeaders(body, seconds, secret);
    return (await fetch(this.#door ?? '', { method: 'POST', headers, body })).status;
  }

  async happen(what: Happening): Promise<void> {
    const t = what === 'added' ? 'GROUP_ADD_ROBOT' : 'GROUP_DEL_ROBOT';
    const d = { group_openid: GROUP, op_member_openid: memberId(1), timestamp: 1_700_000_000 };
    this.#bring({ op: 0, id: `${t}:1`, t, d });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#pump !== null) clearInterval(this.#pump);
    await this.server.close();
  }

  #bring(payload: Record<string, unknown>): void {
    this.#last = payload;
    if (this.#mode === 'webhook') this.#pending.push(payload);
    else this.server.gateway.dispatch(payload);
  }

  /** Brings everything until it is taken, one after the other. */
  async #deliver(): Promise<void> {
    if (this.#delivering) return;
    this.#delivering = true;
    for (let payload = this.#pending[0]; payload !== undefined; payload = this.#pending[0]) {
      if ((await this.#post(payload)) !== 200) break;
      this.#pending.shift();
    }
    this.#delivering = false;
  }

  async #post(payload: Record<string, unknown>): Promise<number> {
    if (this.#door === null) return 0;
    const body = JSON.stringify(payload);
    const headers = signedHeaders(body, Math.floor(this.#now() / 1000), this.server.secret);
    try {
      const signal = AbortSignal.timeout(PATIENCE_MS);
      const response = await fetch(this.#door, { method: 'POST', headers, body, signal });
      const said = await response.text();
      return response.status === 200 && said !== '{"op":12}' ? 0 : response.status;
    } catch {
      return 0;
    }
  }

  #attachment({ bytes, name, mime }: NonNullable<UserMessage['file']>) {
    return { content_type: mime, filename: name, size: bytes.length, url: this.server.keepFile(bytes) };
  }

  #shownOf(message: QqMessage): Shown {
    const { body, path, text, file, stream } = message;
    const reference = (body.message_reference as { message_id?: string } | undefined)?.message_id;
    const quoted = typeof body.msg_id === 'string' && referenceOf(body.msg_id) === reference ? body.msg_id : null;
    return {
      messageId: nameOf(message),
      chat: path.split('/').at(-1) ?? '',
      text: text.replaceAll('\u200b', ''),
      thread: null,
      repliesTo: quoted,
      files: file === null ? [] : [file],
      buttons: labelsOf(body.keyboard),
      ...(stream === null ? {} : { stream }),
    };
  }
}

/** QQ names no message that it refuses as a repetition, so an answer is called by what it answers, and its number. */
function nameOf({ id, body }: QqMessage): string {
  return typeof body.msg_id === 'string' ? `${body.msg_id}/${String(body.msg_seq)}` : id;
}

export function signedHeaders(body: string, seconds: number, secret: string): Record<string, string> {
  const signature = sign(null, Buffer.from(`${seconds}${body}`), keyOf(secret)).toString('hex');
  return {
    ...{ 'content-type': 'application/json', 'user-agent': 'QQBot-Callback', 'x-bot-appid': '102030405' },
    ...{ 'x-signature-ed25519': signature, 'x-signature-timestamp': String(seconds) },
  };
}

function keyOf(secret: string): KeyObject {
  let seed = secret;
  while (seed.length < 32) seed += seed;
  const key = Buffer.concat([PKCS8, Buffer.from(seed.slice(0, 32))]);
  return createPrivateKey({ key, format: 'der', type: 'pkcs8' });
}

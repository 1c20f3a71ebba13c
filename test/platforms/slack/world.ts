import type { Place } from '../../../src/platforms/platform.ts';
import { SlackServer } from '../../fakes/slack-server.ts';
import type { SlackMessage } from '../../fakes/slack-workspace.ts';
import {
  type Forgery,
  type Happening,
  type Shown,
  type UserMessage,
  until,
  type Where,
  type World,
} from '../contract/scene.ts';
import { buttonsOf, shownOf } from './shown.ts';

const FIRST_PERSON = 42;
const CHANNEL = 'C1';
const NO_ANSWER_MS = 300;

/** Slack and the people there; the app asks for a socket, or Slack brings everything to it. Direct chats are the assistant's. */
export class SlackWorld implements World {
  readonly fake: SlackServer;
  readonly settings: World['settings'];
  readonly secrets: readonly string[];
  readonly #roots = new Map<string, string>();
  #door: string | null = null;
  #pushed = 0;
  #events = 0;
  #last: Record<string, unknown> = {};

  private constructor(fake: SlackServer) {
    this.fake = fake;
    const { token, appToken, url, delivery } = fake;
    const { mode, signingSecret } = delivery;
    const proof = mode === 'socket' ? { app_token: appToken } : { signing_secret: signingSecret };
    this.settings = { token, api_root: url, mode, ...proof };
    this.secrets = [token, appToken, signingSecret];
    fake.workspace.channels.set(CHANNEL, { name: 'general', isDirect: false });
    this.place('dm');
    this.place('thread');
  }

  static async open(mode: 'socket' | 'http'): Promise<SlackWorld> {
    return new SlackWorld(await SlackServer.start(mode));
  }

  /** In a direct chat everybody has one thread of the assistant, which the app itself has begun. */
  place(where: Where, person = 0): Place {
    const scope = this.fake.workspace.team;
    if (where === 'group') return { type: 'channel', chat: CHANNEL, scope };
    if (where === 'thread') return { type: 'thread', chat: CHANNEL, scope, thread: this.#rootOf(CHANNEL, 'U42') };
    const chat = `D${FIRST_PERSON + person}`;
    return { type: 'dm', chat, scope, thread: this.#rootOf(chat, this.fake.workspace.self.user) };
  }

  async say({ text, where = 'dm', person = 0, file, repliesTo }: UserMessage): Promise<string> {
    const place = this.place(where, person);
    const files = file === undefined ? [] : [this.fake.workspace.addFile(file.name, file.mime, file.bytes)];
    const thread = repliesTo ?? place.thread ?? null;
    return this.tell({ text, person, channel: place.chat, thread, files }).ts;
  }

  /** Somebody says something anywhere; a message that names us is told of twice. */
  tell(said: {
    text: string;
    person?: number;
    channel: string;
    thread?: string | null;
    files?: SlackMessage['files'];
  }) {
    const { text, person = 0, channel, thread = null, files = [] } = said;
    const message = this.fake.workspace.add({
      ...{ channel, thread, files, user: `U${FIRST_PERSON + person}`, text: this.written(text) },
      ...(files.length === 0 ? {} : { subtype: 'file_share' }),
    });
    this.#bringMessage(message);
    return message;
  }

  /** In Slack's own notation. */
  written(text: string): string {
    const escaped = text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
    return escaped.replaceAll('@moirai', `<@${this.fake.workspace.self.user}>`);
  }

  shown(): readonly Shown[] {
    return this.fake.workspace.messages.filter(({ isBot, subtype }) => isBot && subtype === undefined).map(shownOf);
  }

  unacknowledged(): number {
    return this.fake.delivery.pending;
  }

  async change(messageId: string, text: string): Promise<void> {
    const message = this.fake.workspace.messages.find(({ ts }) => ts === messageId)!;
    const previous = this.fake.workspace.apiMessage(message);
    message.text = this.written(text);
    message.edited = this.fake.workspace.nextTime();
    const changed = this.fake.workspace.apiMessage(message);
    const ts = message.edited;
    const { channel } = message;
    this.event({
      type: 'message',
      subtype: 'message_changed',
      channel,
      ts,
      message: changed,
      previous_message: previous,
    });
  }

  async echo(text: string): Promise<void> {
    const { chat, thread } = this.place('dm');
    this.#bringMessage(
      this.fake.workspace.add({ channel: chat, thread: thread ?? null, isBot: true, subtype: 'echo', text }),
    );
  }

  async bringAgain(): Promise<void> {
    void this.fake.delivery.bring('events_api', this.#last);
  }

  async press(messageId: string, data: string, person = 0): Promise<string | null> {
    const { fake } = this;
    const message = fake.workspace.messages.find(({ ts }) => ts === messageId)!;
    const button = buttonsOf(message).find(({ value }) => value === data)!;
    const answer = `press-${messageId}-${data}`;
    await fake.delivery.bring('interactive', {
      ...{ type: 'block_actions', team: { id: 'T1', domain: 'test' }, trigger_id: `trigger-${answer}` },
      user: { id: `U${FIRST_PERSON + person}`, username: 'ada', name: 'ada', team_id: 'T1' },
      ...{ channel: { id: message.channel }, message: fake.workspace.apiMessage(message) },
      container: {
        ...{ type: 'message', message_ts: message.ts, channel_id: message.channel, is_ephemeral: false },
        ...(message.thread === null ? {} : { thread_ts: message.thread }),
      },
      response_url: `${fake.url}/actions/${encodeURIComponent(answer)}`,
      actions: [{ ...button, block_id: 'b1', action_ts: fake.workspace.nextTime() }],
    });
    const given = () => fake.answers.get(encodeURIComponent(answer));
    await until(() => given() !== undefined, 'the answer to the press', NO_ANSWER_MS).catch(() => undefined);
    return (given()?.text as string | undefined) ?? null;
  }

  /** Somebody enters a slash command; returns the number under which an answer would come. */
  async command(command: string, text: string, channel: string, person = 0): Promise<string> {
    this.#events += 1;
    const answer = `command-${this.#events}`;
    await this.fake.delivery.bring('slash_commands', {
      ...{ command, text, team_id: 'T1', team_domain: 'test', channel_id: channel, channel_name: 'somewhere' },
      ...{ user_id: `U${FIRST_PERSON + person}`, user_name: 'ada', api_app_id: 'A1' },
      ...{ trigger_id: `trigger-${answer}`, response_url: `${this.fake.url}/commands/${answer}` },
    });
    return answer;
  }

  typed(): number {
    return this.fake.workspace.statuses.length;
  }

  reactions(messageId: string): readonly string[] {
    const entries = [...this.fake.workspace.reactions];
    return entries.filter(([place]) => place.endsWith(`:${messageId}`)).flatMap(([, names]) => names);
  }

  limitRate(ms: number): void {
    this.fake.failNext('chat.postMessage', { retryAfter: String(ms / 1000) });
  }

  stumble(): void {
    this.fake.failNext('chat.postMessage', { status: 503 });
  }

  cut(): void {
    this.fake.cut();
  }

  invalidate(): void {
    this.fake.delivery.forget();
  }

  revoke(): void {
    this.fake.revoked = true;
  }

  loseAnswer(): void {
    this.fake.failNext('chat.postMessage', 'lost');
  }

  onTaken(callback: (() => void) | null): void {
    this.fake.onTaken = callback;
  }

  bringTo(url: string | null): void {
    this.#door = url;
    this.fake.delivery.bringTo(url);
  }

  async forge(how: Forgery): Promise<number> {
    const body = JSON.stringify(
      this.#callbackOf({ type: 'message', text: 'forged', channel: 'D42', user: 'U42', ts: '1.1' }),
    );
    const now = Math.floor(Date.now() / 1000);
    const time = String(how === 'stale' ? now - 600 : now);
    const signature = how === 'forged' ? `v0=${'0'.repeat(64)}` : this.fake.delivery.sign(time, body);
    const signed = { 'x-slack-request-timestamp': time, 'x-slack-signature': signature };
    const headers = { 'content-type': 'application/json', ...(how === 'unsigned' ? {} : signed) };
    return (await fetch(this.#door ?? '', { method: 'POST', headers, body })).status;
  }

  async happen(what: Happening, messageId: string): Promise<void> {
    const at = { channel: CHANNEL, channel_type: 'C', team: 'T1' };
    if (what === 'added') this.event({ type: 'member_joined_channel', user: 'UBOT', ...at });
    if (what === 'removed') this.event({ type: 'channel_left', channel: CHANNEL, actor_id: 'U42' });
    if (what === 'joined') this.event({ type: 'member_joined_channel', user: 'U43', ...at });
    const item = { type: 'message', channel: CHANNEL, ts: messageId };
    if (what === 'reaction')
      this.event({ type: 'reaction_added', user: 'U43', reaction: 'tada', item, item_user: 'U42' });
    if (what !== 'deleted') return;
    const message = this.fake.workspace.find(CHANNEL, messageId)!;
    const previous = this.fake.workspace.apiMessage(message);
    this.fake.workspace.remove(message);
    const deleted = { subtype: 'message_deleted', deleted_ts: messageId, previous_message: previous };
    this.event({ type: 'message', ...deleted, channel: CHANNEL, channel_type: 'channel', hidden: true });
  }

  /** An event of any kind; the message of somebody comes by `tell`. */
  event(event: Record<string, unknown>): void {
    this.#last = this.#callbackOf({ event_ts: this.fake.workspace.nextTime(), ...event });
    const { channel } = event;
    void this.fake.delivery.bring('events_api', this.#last, typeof channel === 'string' ? channel : '');
  }

  push(payload: Record<string, unknown>): Promise<void> {
    const kind =
      payload.type === 'block_actions'
        ? 'interactive'
        : payload.command === undefined
          ? 'events_api'
          : 'slash_commands';
    // The same bytes in the same second would be a repetition by somebody else.
    return this.fake.delivery.bring(kind, { ...payload, odd_number: ++this.#pushed });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.fake.close();
  }

  #bringMessage(message: SlackMessage): void {
    const { channel, ts } = message;
    const isDirect = channel.startsWith('D');
    const said = { ...this.fake.workspace.apiMessage(message), channel, event_ts: ts };
    this.event({ ...said, channel_type: isDirect ? 'im' : 'channel' });
    const isMention = message.text.includes(`<@${this.fake.workspace.self.user}>`);
    if (isMention && !isDirect) this.event({ ...said, type: 'app_mention' });
  }

  #callbackOf(event: Record<string, unknown>): Record<string, unknown> {
    this.#events += 1;
    return {
      ...{ token: 'old', team_id: 'T1', api_app_id: 'A1', type: 'event_callback', event },
      ...{ event_id: `Ev${this.#events}`, event_time: 1_760_000_000 },
      authorizations: [{ team_id: 'T1', user_id: 'UBOT', is_bot: true }],
    };
  }

  #rootOf(channel: string, user: string): string {
    const known = this.#roots.get(channel);
    if (known !== undefined) return known;
    const { workspace } = this.fake;
    const isBot = user === workspace.self.user;
    if (isBot) workspace.channels.set(channel, { name: channel, isDirect: true });
    const root = { channel, user, isBot, text: 'New thread', ...(isBot ? { subtype: 'assistant_app_thread' } : {}) };
    const { ts } = workspace.add(root);
    this.#roots.set(channel, ts);
    return ts;
  }
}

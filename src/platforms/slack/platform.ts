import { MoiraiError } from '../../errors/moirai-error.ts';
import { Connection } from '../connection.ts';
import { withDeadline } from '../deadline.ts';
import type { Fields } from '../fields.ts';
import type {
  Abilities,
  Inbox,
  Outgoing,
  Place,
  Platform,
  PlatformState,
  ReactionSign,
  ReplyStream,
  SentMessage,
  StreamOpening,
  WebhookAnswer,
  WebhookRequest,
} from '../platform.ts';
import { SLACK_ABILITIES, slackAbilitiesAt } from './abilities.ts';
import { downloadFile } from './download.ts';
import { sendFailureOf, troubleOf } from './failures.ts';
import { findByKey } from './history.ts';
import { askWho } from './identity.ts';
import { listPlaces } from './listing.ts';
import { Reactions } from './reactions.ts';
import { renderMarkdown } from './render.ts';
import { Sending } from './send.ts';
import { Session } from './session.ts';
import { connectSlack, type SlackBot, type SlackOptions } from './slack-client.ts';
import { Streams } from './stream.ts';
import { payloadOf, RequestGuard } from './webhook.ts';

const CALL_MS = 30_000;
const STATUS = 'is thinking…';

/** Slack, by its Web API and socket mode or signed requests. */
export class Slack implements Platform {
  readonly name: string;
  readonly abilities = SLACK_ABILITIES;
  readonly #options: SlackOptions;
  readonly #bot: SlackBot;
  readonly #connection: Connection;
  readonly #guard: RequestGuard;
  readonly #sending: Sending;
  readonly #streams: Streams;
  readonly #reactions: Reactions;
  #session: Session | null = null;

  constructor(options: SlackOptions) {
    checkOptions(options);
    this.#options = options;
    this.#bot = connectSlack(options);
    const { runtime, redact } = this.#bot;
    this.name = runtime.name;
    this.#connection = new Connection({ label: 'Slack', runtime, troubleOf: (thrown) => troubleOf(thrown, redact) });
    this.#guard = new RequestGuard(options.signingSecret, options.clock);
    this.#sending = new Sending(this.#bot);
    this.#streams = new Streams(this.#sending);
    this.#reactions = new Reactions(this.#sending);
  }

  get state(): PlatformState {
    return this.#connection.state;
  }

  async start(inbox: Inbox): Promise<void> {
    if (this.#session !== null) return;
    this.#connection.open(inbox);
    this.#session = new Session(this.#options, this.#bot, this.#connection, inbox);
    this.#session.begin();
  }

  async stop(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    await session.end();
    this.#connection.close();
  }

  /** For the owner of the port. 200 only after the inbox has it; everything else makes Slack bring it again. */
  async receiveWebhook(request: WebhookRequest): Promise<WebhookAnswer> {
    if (this.#options.mode !== 'http' || request.method !== 'POST') return { status: 404 };
    if (!this.#guard.admits(request)) return { status: 401 };
    const payload = payloadOf(request);
    const challenge = challengeOf(payload);
    if (challenge !== null) return { status: 200, headers: { 'content-type': 'text/plain' }, body: challenge };
    const session = this.#session;
    if (session === null || (await session.take(payload)) === null) {
      this.#guard.release(request);
      return { status: 503 };
    }
    if (this.#session === session) this.#connection.succeeded();
    return { status: 200 };
  }

  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    return { messageId: await this.#sending.send(place, message, signal) };
  }

  async findSent(place: Place, key: string, signal: AbortSignal): Promise<SentMessage | null> {
    const messageId = await findByKey(this.#sending, place, key, signal);
    return messageId === null ? null : { messageId };
  }

  openFile(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    return downloadFile(this.#bot, ref, Math.min(maxBytes, this.abilities.files.maxBytes), signal);
  }

  measure(text: string): number {
    return renderMarkdown(text).length;
  }

  abilitiesAt(place: Place): Abilities {
    return slackAbilitiesAt(place);
  }

  startStream(place: Place, opening: StreamOpening, signal: AbortSignal): Promise<ReplyStream> {
    return this.#streams.start(place, opening, signal);
  }

  resumeStream(_place: Place, handle: string): ReplyStream {
    return this.#streams.resume(handle);
  }

  async listPlaces(signal: AbortSignal): Promise<readonly Place[]> {
    return await listPlaces(this.#sending, (await this.#who(signal)).teamId, signal);
  }

  async edit(place: Place, messageId: string, message: Outgoing, signal: AbortSignal): Promise<void> {
    await this.#sending.edit(place, messageId, message, signal);
  }

  async remove(place: Place, messageId: string, signal: AbortSignal): Promise<void> {
    const target = { channel: place.chat, ts: messageId };
    await this.#sending.callUnless('chat.delete', target, signal, 'message_not_found');
  }

  async showTyping({ type, chat, thread }: Place, signal: AbortSignal): Promise<void> {
    if (type !== 'dm' || thread === undefined) return;
    const status = { channel_id: chat, thread_ts: thread, status: STATUS };
    await this.#sending.call('assistant.threads.setStatus', status, signal);
  }

  async react(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    await this.#reactions.show(place, messageId, sign, signal);
  }

  async identify(signal: AbortSignal): Promise<string> {
    const { name, team, userId } = await this.#who(signal);
    return `@${name} in ${team} (${userId})`;
  }

  async #who(signal: AbortSignal) {
    try {
      return await withDeadline(signal, CALL_MS, (deadline) => askWho(this.#bot, deadline));
    } catch (thrown) {
      throw sendFailureOf(thrown, this.#bot.redact);
    }
  }
}

/** Slack asks for this once, when the address is entered. */
function challengeOf(payload: unknown): string | null {
  const { type, challenge } = (payload ?? {}) as Fields;
  return type === 'url_verification' && typeof challenge === 'string' ? challenge.slice(0, 1000) : null;
}

/** Tokens go into headers: what does not belong there is refused before anything is sent. */
function checkOptions({ token, appToken, signingSecret, mode, apiRoot }: SlackOptions): void {
  const given = mode === 'socket' ? [token, appToken] : [token, signingSecret];
  if (!given.every((secret) => /^[\w.-]+$/.test(secret))) {
    throw new MoiraiError('bad_input', 'a token or secret of Slack has signs that belong to none');
  }
  if (token.startsWith('xapp-') || appToken.startsWith('xoxb-')) {
    throw new MoiraiError(
      'bad_input',
      "the Slack tokens are in each other's place: token is xoxb-..., app_token is xapp-...",
    );
  }
  if (apiRoot !== null && !(URL.canParse(apiRoot) && /^https?:$/.test(new URL(apiRoot).protocol))) {
    throw new MoiraiError('bad_input', 'the address of the Slack server is not an http address');
  }
}

import { MoiraiError } from '../../errors/moirai-error.ts';
import { Connection } from '../connection.ts';
import { type Fields, nameOf } from '../fields.ts';
import {
  type Abilities,
  type Inbox,
  type Outgoing,
  type Place,
  type Platform,
  type PlatformState,
  type ReactionSign,
  type ReplyStream,
  SendFailure,
  type SentMessage,
  type StreamOpening,
  type WebhookAnswer,
  type WebhookRequest,
} from '../platform.ts';
import { abilitiesIn, QQ_ABILITIES } from './abilities.ts';
import { type ApiOptions, QqApi } from './api.ts';
import { downloadFile } from './download.ts';
import { sendFailureOf, troubleOf } from './failures.ts';
import { receiveFromGateway } from './gateway.ts';
import { type Parsed, parsePayload, type Self } from './parse.ts';
import { react } from './reactions.ts';
import { Reception } from './reception.ts';
import { measureText } from './render.ts';
import { ResumeState } from './resume-state.ts';
import { sceneOf } from './scenes.ts';
import { Sending } from './send.ts';
import { resumeQqStream, type StreamDeps, startQqStream } from './stream.ts';
import { StreamNotes } from './stream-notes.ts';
import { acknowledgement, payloadOf, SigningKeys, validation } from './webhook.ts';

export interface QqOptions extends ApiOptions {
  /** Whether we connect to QQ, or QQ brings events to us. */
  readonly mode: 'websocket' | 'webhook';
}

/** Who we are once we know, and what is under way; null between `stop` and `start`. */
interface Session {
  readonly reception: Reception;
  readonly state: ResumeState;
  readonly stopped: AbortController;
  self: Self;
  run: Promise<void>;
}

const UNKNOWN: Self = { id: '' };

/** A bot of QQ, by the interface for bots. */
export class Qq implements Platform {
  readonly name: string;
  readonly abilities = QQ_ABILITIES;
  readonly #options: QqOptions;
  readonly #api: QqApi;
  readonly #connection: Connection;
  readonly #sending: Sending;
  readonly #streams: StreamDeps;
  readonly #keys: SigningKeys;
  #session: Session | null = null;

  constructor(options: QqOptions) {
    checkOptions(options);
    const { runtime } = options;
    this.#options = options;
    this.name = runtime.name;
    this.#api = new QqApi(options);
    this.#connection = new Connection({
      label: 'QQ',
      runtime,
      troubleOf: (thrown) => troubleOf(thrown, this.#api.redact),
    });
    this.#sending = new Sending(this.#api);
    this.#streams = { api: this.#api, sending: this.#sending, notes: new StreamNotes(runtime) };
    this.#keys = new SigningKeys(options.clientSecret);
  }

  get state(): PlatformState {
    return this.#connection.state;
  }

  async start(inbox: Inbox): Promise<void> {
    if (this.#session !== null) return;
    const { runtime } = this.#options;
    const session: Session = {
      reception: new Reception(this.#api, this.#sending, inbox),
      state: new ResumeState(runtime),
      stopped: new AbortController(),
      self: UNKNOWN,
      run: Promise.resolve(),
    };
    this.#session = session;
    this.#connection.open(inbox);
    session.run = this.#run(session).catch((thrown: unknown) => {
      runtime.warn('receiving from QQ has ended unexpectedly', { error: this.#api.redact(String(thrown)) });
    });
  }

  async stop(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    session.stopped.abort();
    await session.run;
    await session.reception.settle();
    await session.state.flush();
    this.#connection.close();
  }

  /** For the owner of the port. Acknowledged only after the inbox has it; everything else makes QQ bring it again. */
  async receiveWebhook(request: WebhookRequest): Promise<WebhookAnswer> {
    if (this.#options.mode !== 'webhook') return { status: 404 };
    const payload = payloadOf(request);
    const handshake = payload === null ? null : validation(payload, this.#keys);
    if (handshake !== null) return handshake;
    if (!this.#keys.isFromQq(request, this.#options.runtime.now())) return { status: 401 };
    const session = this.#session;
    if (session === null) return { status: 503 };
    const parsed = this.#parse(payload, session.self);
    try {
      if (parsed !== null) await session.reception.take(parsed);
    } catch {
      // Who took it has said why it was not taken.
      return { status: 503 };
    }
    if (this.#session === session) this.#connection.succeeded();
    return acknowledgement();
  }

  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    return { messageId: await this.#sending.send(place, message, signal) };
  }

  startStream(place: Place, opening: StreamOpening): Promise<ReplyStream> {
    return startQqStream(this.#streams, place, opening);
  }

  resumeStream(place: Place, handle: string): ReplyStream {
    return resumeQqStream(this.#streams, place, handle);
  }

  openFile(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    const files = { root: this.#options.mediaRoot, redact: this.#api.redact };
    return downloadFile(files, ref, Math.min(maxBytes, this.abilities.files.maxBytes), signal);
  }

  measure(text: string): number {
    return measureText(text);
  }

  abilitiesAt(place: Place): Abilities {
    return abilitiesIn(place);
  }

  async react(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    if (sceneOf(place) !== 'channel') throw new SendFailure('QQ shows signs at messages of channels only', null);
    // A sign is no reason to annoy a server that asked for patience.
    if (this.#sending.gate.closedFor(place.chat) > 0) return;
    await react(this.#api, place, messageId, sign, signal);
  }

  async identify(signal: AbortSignal): Promise<string> {
    try {
      const { username, id } = await this.#api.call({ method: 'GET', path: '/users/@me' }, signal);
      return `${nameOf(username) ?? 'a bot without a name'} (${nameOf(id) ?? this.#options.appId})`;
    } catch (thrown) {
      throw sendFailureOf(thrown, this.#api.redact);
    }
  }

  async #run(session: Session): Promise<void> {
    const { signal } = session.stopped;
    if (this.#options.mode === 'webhook') return await this.#learnSelf(session, signal);
    const { reception, state } = session;
    const take = (payload: Fields, self: Self, taken: () => void): void => {
      const parsed = this.#parse(payload, self);
      if (parsed === null) taken();
      else
        void reception.takeSurely(parsed, signal).then((isTaken) => {
          if (isTaken) taken();
        });
    };
    const { runtime } = this.#options;
    await receiveFromGateway({ api: this.#api, connection: this.#connection, state, runtime, take }, signal);
  }

  /** QQ brings events whether we ask who we are or not; asking shows whether the credential is taken. */
  async #learnSelf(session: Session, signal: AbortSignal): Promise<void> {
    const ask = () => this.#api.call({ method: 'GET', path: '/users/@me' }, signal);
    const self = await this.#connection.keepTrying(ask, signal);
    if (self === null) return;
    session.self = { id: nameOf(self.id) ?? '' };
    this.#connection.succeeded();
  }

  #parse(payload: unknown, self: Self): Parsed | null {
    const { runtime } = this.#options;
    return parsePayload(payload, { self, now: runtime.now(), ownName: (id) => this.#sending.ownName(id) });
  }
}

/** They go into addresses, headers and keys: what does not belong there is refused before anything is sent. */
function checkOptions({ appId, clientSecret }: QqOptions): void {
  if (!/^\w{1,64}$/.test(appId)) throw new MoiraiError('bad_input', 'the AppID of QQ is not letters and digits');
  if (clientSecret.trim() === '') throw new MoiraiError('bad_input', 'the AppSecret of QQ is empty');
}

import { MoiraiError } from '../../errors/moirai-error.ts';
import { Connection } from '../connection.ts';
import { nameOf } from '../fields.ts';
import type {
  Inbox,
  Outgoing,
  Place,
  Platform,
  PlatformState,
  ReactionSign,
  ReplyContext,
  SendFailure,
  SentMessage,
  WebhookAnswer,
  WebhookRequest,
} from '../platform.ts';
import { WHATSAPP_ABILITIES } from './abilities.ts';
import { Answers } from './answers.ts';
import { measureWords, type Template } from './compose.ts';
import { concernsConnection, sendFailureOf, troubleOf } from './failures.ts';
import { GraphApi, type GraphOptions } from './graph-api.ts';
import { Ledger } from './ledger.ts';
import { downloadMedia } from './media.ts';
import { parseWebhook } from './parse.ts';
import { Reception } from './reception.ts';
import { Sending } from './send.ts';
import { answerHandshake, isFromMeta, isStale, readBody } from './webhook.ts';

export interface WhatsAppOptions extends Omit<GraphOptions, 'secrets'> {
  /** What Meta signs with. */
  readonly appSecret: string;
  /** What Meta shows when it asks whether the address is ours. */
  readonly verifyToken: string;
  readonly template: Template | null;
}

const CALL_MS = 30_000;
const SIGNS = { seen: '👀', done: '👍', failed: '👎' } as const satisfies Record<ReactionSign, string>;

/** What is under way between `start` and `stop`. */
interface Session {
  readonly reception: Reception;
  readonly stopped: AbortController;
  /** Ends the rest until somebody doubts that the connection is as it was. */
  doubt: () => void;
  run: Promise<void>;
}

/** WhatsApp, by Meta's Cloud API: one number. */
export class WhatsApp implements Platform {
  readonly name: string;
  readonly abilities = WHATSAPP_ABILITIES;
  readonly measure = measureWords;
  readonly #appSecret: string;
  readonly #verifyToken: string;
  readonly #api: GraphApi;
  readonly #connection: Connection;
  readonly #ledger: Ledger;
  readonly #sending: Sending;
  #session: Session | null = null;

  constructor({ appSecret, verifyToken, template, ...graph }: WhatsAppOptions) {
    checkOptions(graph);
    this.#appSecret = appSecret;
    this.#verifyToken = verifyToken;
    this.#api = new GraphApi({ ...graph, secrets: [appSecret, verifyToken] });
    const { runtime, redact } = this.#api;
    this.name = runtime.name;
    this.#connection = new Connection({ label: 'WhatsApp', runtime, troubleOf: (thrown) => troubleOf(thrown, redact) });
    this.#ledger = new Ledger(runtime);
    const outcome = (failure: SendFailure | null): void => this.#heardOf(failure);
    this.#sending = new Sending({ api: this.#api, template, ledger: this.#ledger, outcome });
  }

  get state(): PlatformState {
    return this.#connection.state;
  }

  async start(inbox: Inbox): Promise<void> {
    if (this.#session !== null) return;
    const { runtime, redact } = this.#api;
    const answers = new Answers(this.#sending, runtime);
    const reception = new Reception({ inbox, answers, ledger: this.#ledger, runtime });
    const stopped = new AbortController();
    const session: Session = { reception, stopped, doubt: () => undefined, run: Promise.resolve() };
    this.#session = session;
    stopped.signal.addEventListener('abort', () => session.doubt());
    this.#connection.open(inbox);
    session.run = this.#run(session).catch((thrown: unknown) => {
      runtime.warn('WhatsApp stopped by itself', { error: redact(String(thrown)) });
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

  /** For the owner of the port. 200 only after the inbox has all of it; everything else makes Meta bring it again. */
  async receiveWebhook(request: WebhookRequest): Promise<WebhookAnswer> {
    if (request.path !== '') return { status: 404 };
    if (request.method === 'GET') return answerHandshake(request, this.#verifyToken);
    if (!isFromMeta(request, this.#appSecret)) return { status: 401 };
    const session = this.#session;
    if (session === null) return { status: 503 };
    const { runtime, phoneNumberId } = this.#api;
    const { items, newestAt } = parseWebhook(readBody(request), phoneNumberId);
    if (isStale(newestAt, runtime)) {
      runtime.warn('a request was refused that is signed and older than Meta keeps any');
      return { status: 401 };
    }
    if (!(await session.reception.take(items))) return { status: 503 };
    this.#connection.alive();
    return { status: 200 };
  }

  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    return await this.#sending.send(place, message, signal);
  }

  openFile(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    return downloadMedia(this.#api, ref, Math.min(maxBytes, this.abilities.files.maxBytes), signal);
  }

  /** WhatsApp shows it at a message of theirs, and marks that as read. */
  async showTyping(place: Place, signal: AbortSignal, reply?: ReplyContext): Promise<void> {
    const messageId = reply?.messageId ?? this.#ledger.lastOf(place.chat);
    if (messageId !== null) await this.#sending.markRead(place, messageId, true, signal);
  }

  async react(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    await this.#sending.react(place, messageId, sign === null ? '' : SIGNS[sign], signal);
  }

  async identify(signal: AbortSignal): Promise<string> {
    try {
      return await this.#askWho(signal);
    } catch (thrown) {
      throw sendFailureOf(thrown, this.#api.redact);
    }
  }

  /** Asks who we are until Meta says so; then again whenever sending makes one doubt that it still holds. */
  async #run(session: Session): Promise<void> {
    const { signal } = session.stopped;
    while (!signal.aborted) {
      const doubted = new Promise<void>((resolve) => (session.doubt = resolve));
      const self = await this.#connection.keepTrying(() => this.#askWho(signal), signal);
      if (self !== null && !signal.aborted) this.#connection.succeeded();
      await doubted;
    }
  }

  async #askWho(signal: AbortSignal): Promise<string> {
    const { phoneNumberId } = this.#api;
    const path = `${phoneNumberId}?fields=display_phone_number,verified_name`;
    const self = await this.#api.call(path, {}, CALL_MS, signal);
    const words = [nameOf(self.verified_name), nameOf(self.display_phone_number), `(${phoneNumberId})`];
    return words.filter((word) => word !== null).join(' ');
  }

  /** A send that fails for a reason of the connection, or succeeds although there should be none. */
  #heardOf(failure: SendFailure | null): void {
    const isConnected = this.state.phase === 'connected';
    if (failure === null ? !isConnected : concernsConnection(failure)) this.#session?.doubt();
  }
}

/** They go into addresses: what does not belong there is refused before anything is sent. */
function checkOptions({ phoneNumberId, apiVersion, token }: Omit<GraphOptions, 'secrets'>): void {
  if (!/^\d{1,32}$/.test(phoneNumberId)) {
    throw new MoiraiError('bad_input', 'the id of the WhatsApp number is not a row of digits');
  }
  if (!/^v\d{1,3}\.\d{1,2}$/.test(apiVersion)) {
    throw new MoiraiError('bad_input', 'the version of the Graph API is not of the form v25.0');
  }
  if (!/^[\x21-\x7e]+$/.test(token)) throw new MoiraiError('bad_input', 'the WhatsApp token has blanks or odd signs');
}

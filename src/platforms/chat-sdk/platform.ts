import { Connection } from '../connection.ts';
import type {
  Abilities,
  Inbox,
  Outgoing,
  Place,
  Platform,
  PlatformRuntime,
  PlatformState,
  ReactionSign,
  SentMessage,
  WebhookAnswer,
  WebhookRequest,
} from '../platform.ts';
import { type Redact, redaction } from '../redaction.ts';
import { abilitiesOf, takesMarkdown } from './abilities.ts';
import type { Adapter } from './adapter.ts';
import { AdapterChat } from './chat.ts';
import { ended } from './ended.ts';
import { sendFailureOf, troubleOf } from './failures.ts';
import { type AdapterPackage, loadAdapter } from './load.ts';
import { adapterLogger } from './logger.ts';
import { idOf } from './parse.ts';
import { Sending } from './send.ts';
import { ThreadIds } from './thread-ids.ts';

const CALL_MS = 30_000;
const GRACE_MS = 2000;
const SHORTEST_SECRET = 8;

export interface ChatSdkOptions {
  readonly package: AdapterPackage;
  /** What the adapter is made with. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** Loads the adapter of a package, and makes a platform of it. */
export async function openChatSdk(options: ChatSdkOptions, runtime: PlatformRuntime): Promise<ChatSdk> {
  const redact = redaction(...textsIn(options.options).filter((text) => text.length >= SHORTEST_SECRET));
  const logger = adapterLogger(runtime, redact);
  const adapter = await loadAdapter(options.package, { logger, ...options.options });
  return new ChatSdk(adapter, options, runtime, redact);
}

/** A platform through an adapter of the Chat SDK. */
export class ChatSdk implements Platform {
  readonly name: string;
  readonly abilities: Abilities;
  readonly #adapter: Adapter;
  readonly #package: string;
  readonly #runtime: PlatformRuntime;
  readonly #redact: Redact;
  readonly #connection: Connection;
  readonly #chat: AdapterChat;
  readonly #sending: Sending;
  readonly #answers = new Set<Promise<void>>();
  #session: { readonly stopped: AbortController; run: Promise<void> } | null = null;

  constructor(
    adapter: Adapter,
    { package: { name }, options }: ChatSdkOptions,
    runtime: PlatformRuntime,
    redact: Redact,
  ) {
    this.name = runtime.name;
    this.abilities = abilitiesOf(name, adapter);
    this.#adapter = adapter;
    this.#package = name;
    this.#runtime = runtime;
    this.#redact = redact;
    this.#connection = new Connection({ label: name, runtime, troubleOf: (thrown) => troubleOf(thrown, redact) });
    const threads = new ThreadIds(adapter, runtime);
    const deps = { adapter, threads, runtime, redact };
    this.#sending = new Sending({ ...deps, raw: takesMarkdown(name) });
    const userName = typeof options.userName === 'string' ? options.userName : '';
    this.#chat = new AdapterChat({ ...deps, userName, show: (...words) => this.#show(...words) });
  }

  get state(): PlatformState {
    return this.#connection.state;
  }

  async start(inbox: Inbox): Promise<void> {
    if (this.#session !== null) return;
    const session = { stopped: new AbortController(), run: Promise.resolve() };
    this.#session = session;
    this.#chat.open(inbox);
    this.#connection.open(inbox);
    session.run = this.#run(session.stopped.signal).catch((thrown: unknown) => {
      this.#runtime.warn('an adapter ended unexpectedly', { error: this.#redact(String(thrown)) });
    });
  }

  async stop(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    session.stopped.abort();
    await session.run;
    await this.#chat.close();
    await this.#within(GRACE_MS, Promise.all([...this.#answers, this.#adapter.disconnect?.()]));
    this.#connection.close();
  }

  /** A success only after the inbox has all that the adapter made of it; everything else makes the server bring it again. */
  async receiveWebhook(request: WebhookRequest): Promise<WebhookAnswer> {
    if (this.state.phase !== 'connected') return { status: 503 };
    let response: Response | null;
    try {
      const given = requestOf(request);
      response = await this.#chat.requests.run((options) => this.#adapter.handleWebhook(given, options));
    } catch (thrown) {
      this.#runtime.warn('an adapter failed over a webhook', { error: this.#redact(String(thrown)) });
      return { status: 503 };
    }
    if (response === null) return { status: 503 };
    if (response.ok && this.#session !== null) this.#connection.alive();
    const body = await response.text();
    return { status: response.status, headers: Object.fromEntries(response.headers), body };
  }

  send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    return this.#sending.send(place, message, signal);
  }

  edit(place: Place, messageId: string, message: Outgoing, signal: AbortSignal): Promise<void> {
    return this.#sending.edit(place, messageId, message, signal);
  }

  remove(place: Place, messageId: string, signal: AbortSignal): Promise<void> {
    return this.#sending.remove(place, messageId, signal);
  }

  showTyping(place: Place, signal: AbortSignal): Promise<void> {
    return this.#sending.showTyping(place, signal);
  }

  react(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    return this.#sending.react(place, messageId, sign, signal);
  }

  openFile(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    return this.#sending.openFile(ref, maxBytes, signal);
  }

  /** As far as an adapter knows it once it was initialized. */
  async identify(signal: AbortSignal): Promise<string> {
    try {
      await ended(this.#adapter.initialize(this.#chat), CALL_MS, signal);
    } catch (thrown) {
      throw sendFailureOf(thrown, this.#redact);
    } finally {
      if (this.#session === null) await this.#within(GRACE_MS, Promise.resolve(this.#adapter.disconnect?.()));
    }
    const { userName, botUserId } = this.#adapter;
    const who = [idOf(userName), idOf(botUserId)].filter((part) => part !== null);
    return `${this.#package} as ${who.length === 0 ? 'somebody it does not know yet' : who.join(', ')}`;
  }

  async #run(signal: AbortSignal): Promise<void> {
    const ready = await this.#connection.keepTrying(async () => {
      await ended(this.#adapter.initialize(this.#chat), CALL_MS, signal);
      return true;
    }, signal);
    if (ready !== null && !signal.aborted) this.#connection.succeeded();
  }

  /** Nobody waits for it: the press itself is taken. */
  #show(threadId: string, userId: string | null, text: string): void {
    const shown = this.#sending.show(threadId, userId, text).finally(() => this.#answers.delete(shown));
    this.#answers.add(shown);
  }

  async #within(ms: number, work: Promise<unknown>): Promise<void> {
    const { promise: enough, resolve } = Promise.withResolvers<void>();
    const cancel = this.#runtime.after(ms, resolve);
    await Promise.race([work, enough]).catch((thrown: unknown) => {
      this.#runtime.warn('an adapter did not stop well', { error: this.#redact(String(thrown)) });
    });
    cancel();
  }
}

/** No adapter may take the address for that of a server: it is not known here. */
function requestOf({ method, path, query, headers, body }: WebhookRequest): Request {
  const search = query.toString();
  const url = `https://gateway.invalid/${encodeURIComponent(path)}${search === '' ? '' : `?${search}`}`;
  const hasBody = method !== 'GET' && method !== 'HEAD';
  return new Request(url, { method, headers: { ...headers }, ...(hasBody ? { body: Buffer.from(body) } : {}) });
}

function textsIn(value: unknown): string[] {
  if (typeof value === 'string') return [value];
  return typeof value === 'object' && value !== null ? Object.values(value).flatMap(textsIn) : [];
}

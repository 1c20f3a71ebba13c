import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { AcceptedTurn, ChatRequest } from '../../src/api/backend.ts';
import { type RunningApi, startApi } from '../../src/api/server.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import type { Abilities, Inbox, Incoming, Place, Platform, PlatformState } from '../../src/platforms/platform.ts';
import { MAX_TEXT_CHARS } from '../../src/store/limits.ts';
import { ScriptedBackend } from '../api/support/scripted-backend.ts';
import { freePort } from '../support/free-port.ts';
import { bootTestEngine, openTestStore } from '../support/stores.ts';
import type { Driver, Shown, UserMessage } from './contract/scene.ts';

export const HTTP_ABILITIES: Abilities = {
  ...{ maxText: MAX_TEXT_CHARS, counts: 'utf16', markdown: true, edit: false, remove: false, typing: false },
  ...{ reactions: false, threads: false, buttons: false, editEveryMs: 0 },
  files: { in: false, out: false, maxBytes: 0 },
};

const CONVERSATION = 'loom';
const PLACE: Place = { type: 'dm', chat: CONVERSATION };
const AGAIN_MS = 20;

/** Hands what is said over HTTP to an inbox first: what the gateway's own backend does with the store. */
class InboxBackend extends ScriptedBackend {
  readonly #receive: (message: Incoming) => Promise<void>;

  constructor(engine: Engine, receive: (message: Incoming) => Promise<void>) {
    super(engine);
    this.#receive = receive;
  }

  override async receive(request: ChatRequest): Promise<AcceptedTurn> {
    const id = request.idempotencyKey ?? '';
    try {
      await this.#receive({
        ...{ id, messageId: id, place: PLACE, from: { id: request.userId, name: null, bot: false } },
        ...{
          text: request.text,
          files: [],
          repliesTo: null,
          addressed: true,
          edited: false,
          group: null,
          at: Date.now(),
        },
      });
    } catch (cause) {
      throw new MoiraiError('draining', 'not now', { cause });
    }
    return super.receive(request);
  }
}

/** The gateway's HTTP port as a platform: the real routes in front of an inbox. */
class HttpDoor implements Platform {
  readonly name: 'api' | 'web';
  readonly abilities = HTTP_ABILITIES;
  readonly #engine: Engine;
  readonly #port: number;
  readonly #sent: (sessionId: string) => Promise<void>;
  readonly #receiving = new Set<Promise<void>>();
  #api: RunningApi | null = null;
  #lastSuccessAt: number | null = null;

  constructor(name: 'api' | 'web', engine: Engine, port: number, sent: (sessionId: string) => Promise<void>) {
    this.name = name;
    this.#engine = engine;
    this.#port = port;
    this.#sent = sent;
  }

  get state(): PlatformState {
    return { phase: this.#api === null ? 'stopped' : 'connected', problem: null, lastSuccessAt: this.#lastSuccessAt };
  }

  async start(inbox: Inbox): Promise<void> {
    const backend = new InboxBackend(this.#engine, (message) => this.#hand(inbox, message));
    const rules = { host: '127.0.0.1', port: this.#port, apiKey: null, allowedOrigins: [], version: '0' };
    this.#api = await startApi({ ...rules, backend, engine: this.#engine });
    this.#lastSuccessAt = Date.now();
    inbox.changed();
  }

  async stop(): Promise<void> {
    const api = this.#api;
    this.#api = null;
    await api?.close();
    await Promise.allSettled(this.#receiving);
  }

  /** What is said to a conversation that nothing is sent to stands in its transcript. */
  async send(_: Place, { text }: { readonly text: string }, signal: AbortSignal): Promise<{ messageId: string }> {
    signal.throwIfAborted();
    const key = `agent:main:${this.name}:dm:${CONVERSATION}`;
    const open = await this.#engine.store.read('openSession', { key });
    const conversation = {
      key,
      kind: 'api',
      platform: this.name,
      userId: null,
      origin: null,
      attached: false,
    } as const;
    const session = open ?? (await this.#engine.start(conversation, {}));
    const position = await this.#engine.appendBeside(session.id, [{ role: 'assistant', text, turnId: null }]);
    await this.#sent(session.id);
    return { messageId: String(position) };
  }

  #hand(inbox: Inbox, message: Incoming): Promise<void> {
    const handed = inbox.receive(message);
    const settled = handed.catch(() => undefined).finally(() => this.#receiving.delete(settled));
    this.#receiving.add(settled);
    return handed;
  }
}

/** A client that keeps what it says until it knows that it was taken, and says it again until then. */
export async function httpDriver(name: 'api' | 'web'): Promise<Driver> {
  const opened = await openTestStore('sqlite');
  const engine = await bootTestEngine(opened.store);
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  const waiting: { id: string; text: string }[] = [];
  const gone = new AbortController();
  let shown: Shown[] = [];
  let current = new AbortController();
  let last: { id: string; text: string } | null = null;

  const post = async (message: { id: string; text: string }): Promise<boolean> => {
    current = new AbortController();
    const response = await fetch(`${url}/v1/chat`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': message.id },
      body: JSON.stringify({
        text: message.text,
        conversation: CONVERSATION,
        platform: name,
        user: 'ada',
        stream: true,
      }),
      signal: AbortSignal.any([current.signal, gone.signal]),
    });
    // The stream begins once the message is durable; its end is the end of the turn.
    if (response.status !== 200) return false;
    if (waiting[0] === message) waiting.shift();
    await response.text().catch(() => undefined);
    return true;
  };
  const talk = async (): Promise<void> => {
    while (!gone.signal.aborted) {
      const [next] = waiting;
      const accepted = next === undefined ? false : await post(next).catch(() => false);
      if (!accepted) await sleep(AGAIN_MS);
    }
  };
  const look = async (sessionId: string): Promise<void> => {
    const response = await fetch(`${url}/v1/sessions/${sessionId}/messages?limit=500`);
    const { data } = (await response.json()) as { data: { position: number; text: string; turn_id: string | null }[] };
    const rest = { thread: null, repliesTo: null, files: [], buttons: [] };
    shown = data
      .filter(({ turn_id }) => turn_id === null)
      .map(({ position, text }) => ({ messageId: String(position), text, ...rest }));
  };
  const talking = talk();
  const make = (): Platform => new HttpDoor(name, engine, port, look);
  return {
    platform: make(),
    warnings: [],
    place: () => PLACE,
    say: async ({ text }: UserMessage) => {
      last = { id: randomUUID(), text };
      waiting.push(last);
      return last.id;
    },
    shown: () => shown,
    unacknowledged: () => waiting.length,
    bringAgain: async () => {
      if (last !== null) await post({ ...last });
    },
    cut: () => current.abort(),
    restart: async () => make(),
    [Symbol.asyncDispose]: async () => {
      gone.abort();
      await talking;
      await opened.remove();
    },
  };
}

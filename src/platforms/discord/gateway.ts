import type { Connection } from '../connection.ts';
import { pause } from '../deadline.ts';
import { type Fields, fieldsOf, integerOf, listOf, nameOf, textOf } from '../fields.ts';
import { LowWater } from '../low-water.ts';
import { type PlatformRuntime, SendFailure } from '../platform.ts';
import type { DiscordApi } from './api.ts';
import { type SocketClosed, statusOf } from './failures.ts';
import type { KeptMarks, KeptSessions } from './kept-state.ts';
import type { Self } from './parse.ts';
import type { Reception } from './reception.ts';
import { snowflakeOf } from './snowflake.ts';
import { GatewaySocket, type Resumption } from './socket.ts';

/** What Discord sends us, as bits: guilds and threads, messages, reactions, and the same in direct chats. */
const BASE_INTENTS = (1 << 0) | (1 << 9) | (1 << 10) | (1 << 12) | (1 << 13);
const MEMBERS = { intent: 1 << 1, flags: (1 << 14) | (1 << 15) };
const CONTENT = { intent: 1 << 15, flags: (1 << 18) | (1 << 19) };
/** Discord closes whoever begins sessions faster. */
const BEGIN_EVERY_MS = 5000;
/** What waits for the inbox in memory; more is left to Discord, which keeps it with the session. */
const MOST_WAITING = 1000;

export interface GatewayDeps {
  readonly api: DiscordApi;
  readonly connection: Connection;
  readonly kept: KeptSessions;
  readonly marks: KeptMarks;
  readonly reception: Reception;
  readonly signal: AbortSignal;
  /** We know who we are. */
  readonly known: (self: Self) => void;
}

interface Live {
  readonly resumption: Resumption;
  readonly self: Self;
  readonly water: LowWater<number>;
  /** Below which everything was durable when it was gone on with. */
  readonly base: number;
}

/** Keeps a session with Discord's gateway, over as many connections as it takes, and begins another when it is over. */
export class Gateway {
  readonly #deps: GatewayDeps;
  readonly #runtime: PlatformRuntime;
  #live: Live | null = null;
  /** What came up to here has been looked at by this process. */
  #handled = 0;
  #completeAt: number | null = null;
  #members = false;
  #overflowed = false;
  /** Interactions that were looked at before their turn. */
  readonly #early = new Set<number>();
  #beganAt = Number.NEGATIVE_INFINITY;
  #socket: GatewaySocket | null = null;
  #connected = false;

  constructor(deps: GatewayDeps) {
    this.#deps = deps;
    this.#runtime = deps.api.runtime;
  }

  /** Goes on until the signal ends it, or there is no use in trying. */
  async run(): Promise<void> {
    const { connection, signal } = this.#deps;
    if ((await connection.keepTrying(() => this.#recall(), signal)) === null) return;
    while (!signal.aborted) {
      try {
        await this.#connectOnce();
      } catch (thrown) {
        if (signal.aborted) return;
        if ((await connection.failed(thrown, signal)).phase === 'failed') return;
      }
    }
  }

  /** What a process before this one has kept. */
  async #recall(): Promise<true> {
    const { kept, marks } = this.#deps;
    const read = Promise.all([kept.read(), marks.read()]);
    const [{ session, completeAt }] = await read.catch(() => {
      throw new SendFailure('what was kept of the session cannot be read', 1000, 'transient');
    });
    this.#completeAt = completeAt;
    if (session === null || !this.#isTrusted(session.resumption.url)) return true;
    const { resumption, self, position } = session;
    this.#live = { resumption, self, base: position, water: new LowWater() };
    this.#handled = position;
    this.#deps.known(self);
    return true;
  }

  /** One connection, from its beginning to its end. Throws when that was none that Discord itself wished. */
  async #connectOnce(): Promise<void> {
    const { api, signal } = this.#deps;
    if (!this.#isFull) this.#overflowed = false;
    const { url, intents } = this.#live === null ? await this.#address() : { url: '', intents: 0 };
    signal.throwIfAborted();
    this.#connected = false;
    const socket = new GatewaySocket({
      ...{ token: api.token, intents, url, resumption: this.#live?.resumption ?? null },
      position: () => this.#position,
      isTrusted: (address) => this.#isTrusted(address),
      onReady: (resumption, position, ready) => this.#begin(resumption, position, ready),
      onResumed: () => this.#isConnected(),
      onDispatch: (type, position, data) => this.#dispatch(type, position, data),
      onAlive: () => this.#alive(),
    });
    this.#socket = socket;
    const stop = () => void socket.close();
    signal.addEventListener('abort', stop, { once: true });
    const closed = await socket.closed;
    signal.removeEventListener('abort', stop);
    this.#socket = null;
    if (signal.aborted) return;
    await this.#settleClosed(socket, closed);
  }

  async #settleClosed(socket: GatewaySocket, closed: SocketClosed): Promise<void> {
    const { signal } = this.#deps;
    const { random } = this.#runtime;
    const wasResumed = this.#live !== null;
    if (socket.isOver(closed)) this.#live = null;
    // Discord wishes a pause of this length before another session begins.
    if (wasResumed && socket.isInvalid) return await pause(this.#runtime, 1000 + random() * 4000, signal);
    if (!this.#connected || !socket.isWished) throw closed;
    await pause(this.#runtime, 250 + random() * 500, signal);
  }

  /** Where a session begins, and what may be asked for there. */
  async #address(): Promise<{ url: string; intents: number }> {
    const { api, signal } = this.#deps;
    const intents = await this.#intents();
    const fields = fieldsOf(await api.raw('GET', '/gateway/bot', {}, signal));
    const url = textOf(fields?.url, 512) ?? '';
    if (!this.#isTrusted(url)) throw new SendFailure('Discord names no address for its gateway', 1000, 'transient');
    const limit = fieldsOf(fields?.session_start_limit);
    if (limit?.remaining === 0) {
      const wait = integerOf(limit.reset_after) ?? 60_000;
      throw new SendFailure('the bot has connected too often today: Discord lets it wait', wait, 'rate_limited');
    }
    const left = this.#beganAt + BEGIN_EVERY_MS - this.#runtime.now();
    if (left > 0) await pause(this.#runtime, left, signal);
    this.#beganAt = this.#runtime.now();
    return { url, intents };
  }

  /** What is not granted must not be asked for: Discord would refuse the whole connection. */
  async #intents(): Promise<number> {
    const { api, signal } = this.#deps;
    let flags: number | null = null;
    try {
      flags = integerOf(fieldsOf(await api.raw('GET', '/applications/@me', {}, signal))?.flags);
    } catch (thrown) {
      if (statusOf(thrown) === 401 || statusOf(thrown) === null) throw thrown;
    }
    this.#members = flags !== null && (flags & MEMBERS.flags) !== 0;
    const hearsAll = flags === null || (flags & CONTENT.flags) !== 0;
    if (!hearsAll) {
      const hint = 'turn on Message Content Intent in the Developer Portal';
      this.#runtime.warn('in servers only messages that mention the bot can be read', { hint });
    }
    return BASE_INTENTS | (hearsAll ? CONTENT.intent : 0) | (this.#members ? MEMBERS.intent : 0);
  }

  #isTrusted(address: string): boolean {
    return isGatewayAddress(address, this.#deps.api.apiRoot);
  }

  #begin(resumption: Resumption, position: number, ready: Fields): void {
    const { kept, reception } = this.#deps;
    const self = selfIn(ready, this.#members);
    if (self === null) return void this.#socket?.close();
    const water = new LowWater<number>();
    const live = { resumption, self, base: position, water };
    this.#live = live;
    this.#handled = position;
    this.#overflowed = false;
    this.#early.clear();
    this.#deps.known(self);
    // The next process may go on with this session only when what came before it is durable.
    kept.moveTo({ session: null, completeAt: this.#completeAt });
    const done = water.begin(position);
    const guilds = listOf(ready.guilds).flatMap((each) => snowflakeOf(fieldsOf(each)?.id) ?? []);
    reception.begin(self, guilds, this.#completeAt).then(
      () => this.#advance(live, done),
      () => undefined,
    );
    this.#completeAt ??= this.#runtime.now();
    this.#isConnected();
  }

  #isConnected(): void {
    this.#connected = true;
    this.#deps.connection.succeeded();
  }

  #dispatch(type: string, position: number, data: Fields): void {
    const live = this.#live;
    // What is at or below that is in memory already.
    if (live === null || position <= this.#handled) return;
    if (this.#early.delete(position)) return;
    this.#overflowed ||= live.water.size >= MOST_WAITING;
    if (this.#overflowed) {
      // What is not looked at comes again. Only whoever pressed a button or gave a command cannot wait for that.
      if (type !== 'INTERACTION_CREATE') return;
      this.#early.add(position);
      this.#deps.reception.take(type, data, live.self).catch(() => undefined);
      return;
    }
    this.#handled = position;
    const done = live.water.begin(position);
    this.#deps.reception.take(type, data, live.self).then(
      () => this.#advance(live, done),
      () => undefined,
    );
  }

  get #position(): number {
    const live = this.#live;
    return live === null ? 0 : (live.water.mark ?? live.base);
  }

  #advance(live: Live, done: () => boolean): void {
    const moved = done();
    if (moved && live === this.#live) this.#keep(live);
    // There is room again: the session goes on from where it was last looked at.
    if (this.#overflowed && !this.#isFull) void this.#socket?.close();
  }

  get #isFull(): boolean {
    return (this.#live?.water.size ?? 0) > MOST_WAITING / 2;
  }

  #alive(): void {
    this.#deps.connection.alive();
    if (this.#live?.water.size === 0) this.#keep(this.#live);
  }

  #keep(live: Live): void {
    if (live.water.size === 0) this.#completeAt = this.#runtime.now();
    const { resumption, self } = live;
    const session = { resumption, self, position: this.#position };
    this.#deps.kept.moveTo({ session, completeAt: this.#completeAt });
  }
}

/** The token goes there: nobody but Discord may name the place, or the host that stands for it. */
export function isGatewayAddress(address: string, apiRoot: string | null): boolean {
  if (!URL.canParse(address)) return false;
  const { protocol, hostname } = new URL(address);
  if (apiRoot !== null) return protocol === 'ws:' || protocol === 'wss:';
  return protocol === 'wss:' && hostname.endsWith('.discord.gg');
}

function selfIn(ready: Fields, members: boolean): Self | null {
  const user = fieldsOf(ready.user);
  const id = snowflakeOf(user?.id);
  if (id === null) return null;
  const name = nameOf(user?.global_name) ?? nameOf(user?.username) ?? 'bot';
  return { id, name, application: snowflakeOf(fieldsOf(ready.application)?.id) ?? id, members };
}

import { WebSocketShard, WebSocketShardEvents } from '@discordjs/ws';
import { type Fields, fieldsOf, integerOf, textOf } from '../fields.ts';
import { SocketClosed } from './failures.ts';

/** What a session is gone on with. */
export interface Resumption {
  readonly sessionId: string;
  readonly url: string;
}

export interface SocketOptions {
  readonly token: string;
  readonly intents: number;
  /** Where a new session begins. */
  readonly url: string;
  /** The session that goes on; null for a new one. */
  readonly resumption: Resumption | null;
  /** The position below which everything is durable: where a session goes on, and what heartbeats acknowledge. */
  readonly position: () => number;
  /** Whether a session may go on at an address that the server names. */
  readonly isTrusted: (url: string) => boolean;
  readonly onReady: (resumption: Resumption, position: number, ready: Fields) => void;
  readonly onResumed: () => void;
  /** Whatever the server brings, in its order. */
  readonly onDispatch: (type: string, position: number, data: Fields) => void;
  /** The server answered a heartbeat. */
  readonly onAlive: () => void;
}

/** Discord ends the session at 1000 and 1001; at every other code it can go on. */
const KEEP_SESSION = 4200;
const CLOSE_MS = 1000;
const READY_MS = 60_000;
const HELLO_MS = 30_000;
/** What a timer takes: at anything else it would never rest. */
const [SHORTEST_BEAT_MS, LONGEST_BEAT_MS] = [1, 2_147_483_647];
/** After these the session is over; after all others it can go on. */
const OVER: ReadonlySet<number> = new Set([4007, 4009]);

/** The socket under the library's shard, and the methods by which its frames are looked at first. */
interface ShardInside {
  connection: RawSocket | null;
  unpackMessage(data: unknown, isBinary: boolean): Promise<unknown>;
  onMessage(data: unknown, isBinary: boolean): Promise<void>;
}

interface RawSocket {
  on(event: 'error' | 'close', listener: (value: unknown) => void): void;
  terminate(): void;
}

/**
 * One connection to the gateway. The library would connect again by itself, at once and for ever, and give the session up
 * when the network is away; here a connection that is over is over, and its owner decides.
 */
export class GatewaySocket {
  /** Resolves when the connection is over. */
  readonly closed: Promise<SocketClosed>;
  readonly #options: SocketOptions;
  readonly #shard: WebSocketShard;
  readonly #settle: (closed: SocketClosed) => void;
  readonly #tooLate: NodeJS.Timeout;
  #raw: RawSocket | null = null;
  #resumption: Resumption | null;
  #connected = false;
  /** The server has said that the session is over. */
  #invalid = false;
  #wished = false;
  #isOver = false;
  #reason = 'the connection was cut';

  constructor(options: SocketOptions) {
    this.#options = options;
    this.#resumption = options.resumption;
    const { promise, resolve } = Promise.withResolvers<SocketClosed>();
    this.closed = promise;
    this.#settle = resolve;
    this.#shard = new WebSocketShard(
      {
        options: this.#shardOptions(),
        retrieveSessionInfo: () => this.#sessionInfo(),
        updateSessionInfo: () => undefined,
        waitForIdentify: async () => undefined,
      },
      0,
    );
    this.#watchSocket();
    this.#guardFrames();
    this.#listen();
    this.#tooLate = setTimeout(() => void this.close(), READY_MS);
    this.#tooLate.unref();
    this.#shard.connect().catch(() => undefined);
  }

  /** The server has said that there is no such session. */
  get isInvalid(): boolean {
    return this.#invalid;
  }

  /** Discord has asked to connect again, or we have left by ourselves: there is no trouble. */
  get isWished(): boolean {
    return this.#wished;
  }

  /** The session cannot go on: a new one has to begin. */
  isOver({ code }: SocketClosed): boolean {
    return this.#invalid || OVER.has(code);
  }

  /** Closes it so that the session can go on. */
  async close(): Promise<void> {
    this.#wished = true;
    const closing = this.#shard.destroy({ code: KEEP_SESSION }).catch(() => undefined);
    const { promise, resolve } = Promise.withResolvers<void>();
    const enough = setTimeout(resolve, CLOSE_MS);
    await Promise.race([closing, promise]);
    clearTimeout(enough);
    this.#raw?.terminate();
    this.#over(KEEP_SESSION);
  }

  #shardOptions() {
    const { token, intents, url } = this.#options;
    const limit = { total: 1, remaining: 1, reset_after: 0, max_concurrency: 1 };
    return {
      ...{ token, intents, shardCount: 1, version: '10', encoding: 'json' as never, compression: null },
      ...{ handshakeTimeout: HELLO_MS, helloTimeout: HELLO_MS, readyTimeout: READY_MS, largeThreshold: null },
      ...{ initialPresence: null, useIdentifyCompression: false },
      identifyProperties: { browser: 'moirai', device: 'moirai', os: process.platform },
      gatewayInformation: { url, shards: 1, session_start_limit: limit },
    };
  }

  /** Called before it connects, with each heartbeat and with each frame. */
  #sessionInfo() {
    // The library wants to connect once more. That promise is for nobody: it is forgotten together with the shard.
    if (this.#raw !== null && this.#shard.status === 0) return new Promise<never>(() => undefined);
    if (this.#resumption === null) return null;
    const { sessionId, url: resumeURL } = this.#resumption;
    return { sessionId, resumeURL, sequence: this.#options.position(), shardId: 0, shardCount: 1 };
  }

  /** The library takes its own listeners away before it closes, and an error behind that would end the process. */
  #watchSocket(): void {
    const inside = this.#shard as unknown as ShardInside;
    let current: RawSocket | null = null;
    Object.defineProperty(inside, 'connection', {
      get: () => current,
      set: (socket: RawSocket | null) => {
        current = socket;
        if (socket === null) return;
        this.#raw = socket;
        socket.on('error', (error) => {
          const { code } = error as { code?: unknown };
          if (typeof code === 'string') this.#reason = `the connection failed: ${code}`;
        });
        socket.on('close', (code) => this.#over(Number(code)));
        if (this.#isOver) socket.terminate();
      },
    });
  }

  /** Frames are checked before the library sees them: what it does not expect would end the process. */
  #guardFrames(): void {
    const inside = this.#shard as unknown as ShardInside;
    const handle = inside.onMessage.bind(this.#shard);
    inside.unpackMessage = async (data, isBinary) => (isBinary ? null : this.#checked(data));
    inside.onMessage = (data, isBinary) => handle(data, isBinary).catch(() => undefined);
  }

  #checked(data: unknown): Fields | null {
    const frame = readFrame(data);
    if (frame === null) return null;
    switch (frame.op) {
      case 0:
        return this.#checkedDispatch(frame);
      case 9:
        // Of a session that is still being begun or gone on with nobody can say more than this.
        this.#invalid ||= frame.d !== true;
        return { op: 9, d: frame.d === true };
      case 10: {
        const beat = integerOf(fieldsOf(frame.d)?.heartbeat_interval);
        if (beat === null || beat < SHORTEST_BEAT_MS || beat > LONGEST_BEAT_MS) return null;
        return frame;
      }
      case 7:
        this.#wished = true;
        return frame;
      case 1:
      case 11:
        return frame;
      default:
        return null;
    }
  }

  #checkedDispatch(frame: Fields): Fields | null {
    const position = integerOf(frame.s);
    const type = textOf(frame.t, 64);
    if (position === null || position < 0 || type === null) return null;
    if (type !== 'READY') return { op: 0, s: position, t: type, d: fieldsOf(frame.d) ?? {} };
    const ready = fieldsOf(frame.d);
    const sessionId = textOf(ready?.session_id, 256);
    const url = textOf(ready?.resume_gateway_url, 512) ?? this.#options.url;
    if (ready === null || !sessionId || this.#connected || this.#resumption !== null) return null;
    const resumption = { sessionId, url: this.#options.isTrusted(url) ? url : this.#options.url };
    this.#resumption = resumption;
    this.#isConnected();
    // Before the library tells of any frame behind this one.
    this.#options.onReady(resumption, position, ready);
    return { op: 0, s: position, t: type, d: ready };
  }

  #listen(): void {
    this.#shard.on(WebSocketShardEvents.Error, () => undefined);
    this.#shard.on(WebSocketShardEvents.SocketError, () => undefined);
    this.#shard.on(WebSocketShardEvents.HeartbeatComplete, () => this.#options.onAlive());
    this.#shard.on(WebSocketShardEvents.Dispatch, (payload) => {
      const { t: type, s: position, d } = payload as unknown as { t: string; s: number; d: Fields };
      if (type === 'READY') return;
      if (type === 'RESUMED') {
        this.#isConnected();
        this.#options.onResumed();
      }
      this.#options.onDispatch(type, position, d);
    });
  }

  #isConnected(): void {
    this.#connected = true;
    clearTimeout(this.#tooLate);
  }

  #over(code: number): void {
    this.#isOver = true;
    clearTimeout(this.#tooLate);
    this.#settle(new SocketClosed(code, `${this.#reason} (${code})`));
  }
}

function readFrame(data: unknown): Fields | null {
  if (typeof data !== 'string') return null;
  try {
    return fieldsOf(JSON.parse(data));
  } catch {
    return null;
  }
}

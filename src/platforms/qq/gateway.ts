import type { Connection } from '../connection.ts';
import { type Fields, fieldsOf, integerOf, nameOf, textOf } from '../fields.ts';
import type { PlatformRuntime } from '../platform.ts';
import type { QqApi } from './api.ts';
import { OP, talkToGateway } from './gateway-socket.ts';
import type { Self } from './parse.ts';
import { GatewayClosed } from './qq-error.ts';
import type { ResumeState } from './resume-state.ts';

export interface GatewayDeps {
  readonly api: QqApi;
  readonly connection: Connection;
  readonly state: ResumeState;
  readonly runtime: PlatformRuntime;
  /** Takes what came; calls back once the inbox has it. */
  readonly take: (payload: Fields, self: Self, taken: () => void) => void;
}

/** Kinds of events, as bits. */
const GROUPS_AND_PEOPLE = 1 << 25;
const PRESSES = 1 << 26;
const AUDITS = 1 << 27;
const CHANNELS = 1 << 0;
const GUILD_REACTIONS = 1 << 10;
const GUILD_DIRECT = 1 << 12;
const GUILD_MENTIONS = 1 << 30;

/** What is asked for; a bot that may not have all of it is refused as a whole, and asks for the next. */
const WISHES: readonly { readonly intents: number; readonly without: string }[] = [
  {
    intents: GROUPS_AND_PEOPLE | PRESSES | AUDITS | CHANNELS | GUILD_REACTIONS | GUILD_DIRECT | GUILD_MENTIONS,
    without: 'nothing',
  },
  { intents: GROUPS_AND_PEOPLE | PRESSES, without: 'guilds' },
  { intents: GROUPS_AND_PEOPLE, without: 'guilds and presses of buttons' },
  { intents: CHANNELS | GUILD_REACTIONS | GUILD_MENTIONS, without: 'people and groups' },
];

const NO_SUCH_INTENT: ReadonlySet<number> = new Set([4013, 4014]);
const BAD_TOKEN = 4004;
/** A connection that is over sooner is made again with more patience each time: QQ counts the sessions of a day. */
const SHORT_MS = 10_000;
/** The session is over; what else the server closes with, it can be gone on with. */
function endsSession(code: number): boolean {
  return code === 4006 || code === 4007 || (code >= 4900 && code <= 4913);
}

/** Receives over the socket until the signal ends it or there is no use in trying. */
export async function receiveFromGateway(deps: GatewayDeps, signal: AbortSignal): Promise<void> {
  const gateway = new Gateway(deps);
  await deps.state.read();
  const { connection, runtime } = deps;
  while (!signal.aborted) {
    const begun = runtime.now();
    try {
      await gateway.connect(signal);
    } catch (thrown) {
      if (signal.aborted) break;
      if (gateway.learnFrom(thrown)) continue;
      const wasConnected = connection.state.phase === 'connected';
      const isShort = runtime.now() - begun < SHORT_MS;
      if (!isShort) connection.taken();
      if ((await connection.failed(thrown, signal)).phase === 'failed') break;
      if (wasConnected && isShort) await connection.untaken(signal);
    }
  }
}

class Gateway {
  readonly #deps: GatewayDeps;
  /** Which of the wishes is asked for. */
  #wish = 0;
  #isIdentifying = false;

  constructor(deps: GatewayDeps) {
    this.#deps = deps;
  }

  async connect(signal: AbortSignal): Promise<void> {
    const { api, state, runtime } = this.#deps;
    const token = `QQBot ${await api.token(signal)}`;
    const url = await this.#address(signal);
    const acknowledged = () => state.position?.seq ?? null;
    const onFrame = (frame: Fields, send: (frame: object) => void) => this.#hear(frame, send, token);
    await talkToGateway({ url, runtime, acknowledged, onFrame }, signal);
  }

  /** What to do otherwise the next time; true when that is worth an attempt at once. */
  learnFrom(thrown: unknown): boolean {
    const { api, state } = this.#deps;
    if (!(thrown instanceof GatewayClosed)) return false;
    if (thrown.code === BAD_TOKEN) api.forgetToken();
    if (endsSession(thrown.code)) state.forget();
    return NO_SUCH_INTENT.has(thrown.code) && this.#wishForLess();
  }

  async #address(signal: AbortSignal): Promise<string> {
    const { api } = this.#deps;
    const { url } = await api.call({ method: 'GET', path: '/gateway' }, signal);
    const address = textOf(url, 2048) ?? '';
    const isSafe = /^wss:/i.test(address) || (/^ws:/i.test(address) && api.options.apiRoot.startsWith('http:'));
    // The access token goes there.
    if (!URL.canParse(address) || !isSafe) throw new GatewayClosed('the server names no address of a gateway');
    return address;
  }

  #hear(frame: Fields, send: (frame: object) => void, token: string): void {
    if (frame.op === OP.hello) this.#greet(send, token);
    else if (frame.op === OP.reconnect) throw new GatewayClosed('the gateway asks to connect again');
    else if (frame.op === OP.invalidSession) this.#invalidated(frame.d === true);
    else if (frame.op === OP.dispatch) this.#dispatch(frame);
  }

  #greet(send: (frame: object) => void, token: string): void {
    const position = this.#deps.state.position;
    this.#isIdentifying = position === null;
    const intents = WISHES[this.#wish]?.intents;
    if (position === null) send({ op: OP.identify, d: { token, intents, shard: [0, 1], properties: {} } });
    else send({ op: OP.resume, d: { token, session_id: position.session, seq: position.seq } });
  }

  #invalidated(mayResume: boolean): never {
    // What was asked for anew and refused will be refused again: it may be too much.
    const isLess = this.#isIdentifying && !mayResume && this.#wishForLess();
    if (!mayResume) this.#deps.state.forget();
    throw new GatewayClosed(isLess ? 'the gateway does not give all that was asked for' : 'the session is over');
  }

  #wishForLess(): boolean {
    const next = WISHES[this.#wish + 1];
    if (next === undefined) return false;
    this.#wish += 1;
    this.#deps.runtime.warn(`QQ does not give this bot all events; it is asked for those without ${next.without}`);
    return true;
  }

  #dispatch(frame: Fields): void {
    const { connection, state } = this.#deps;
    if (frame.t === 'READY') this.#ready(frame);
    const self = state.position?.self;
    if (self === undefined || frame.t === 'READY') return;
    connection.alive();
    const seq = integerOf(frame.s);
    const name = nameOf(fieldsOf(frame.d)?.id) ?? '';
    const taken = seq === null ? () => undefined : state.take(seq, `${String(frame.t)}:${name}`);
    if (taken === null) return;
    if (frame.t !== 'RESUMED') this.#deps.take(frame, self, taken);
    else {
      taken();
      connection.succeeded();
    }
  }

  #ready(frame: Fields): void {
    const { connection, state } = this.#deps;
    const data = fieldsOf(frame.d);
    const [session, seq] = [nameOf(data?.session_id), integerOf(frame.s)];
    if (session === null || seq === null) throw new GatewayClosed('the gateway names no session');
    this.#isIdentifying = false;
    state.begun({ session, seq, self: { id: nameOf(fieldsOf(data?.user)?.id) ?? '' } });
    connection.succeeded();
  }
}

import { MoiraiError } from '../../errors/moirai-error.ts';
import { Connection } from '../connection.ts';
import { KeptCursor } from '../cursor.ts';
import { listOf, nameOf } from '../fields.ts';
import type { Inbox, Outgoing, Place, Platform, PlatformState, ReactionSign, SentMessage } from '../platform.ts';
import { SendFailure } from '../platform.ts';
import { MATRIX_ABILITIES } from './abilities.ts';
import type { ApiOptions } from './api.ts';
import { ApiError, at, MatrixApi } from './api.ts';
import { measureText } from './compose.ts';
import { sendFailureOf, troubleOf, WrongUser } from './failures.ts';
import { roomIdOf, userIdOf } from './ids.ts';
import type { InviteRule } from './invite-rule.ts';
import { KnownEvents } from './known-events.ts';
import { Marks } from './marks.ts';
import { downloadFile } from './media.ts';
import { Membership } from './membership.ts';
import type { Names } from './parse-content.ts';
import { PendingComings } from './pending-comings.ts';
import { Receipts } from './receipts.ts';
import { Reception } from './reception.ts';
import { Rooms } from './rooms.ts';
import { Sending } from './send.ts';
import { Signs } from './signs.ts';
import { followSync } from './sync.ts';

export interface MatrixOptions extends ApiOptions {
  /** Who we are; null: whoever the token belongs to. */
  readonly userId: string | null;
  readonly invites: InviteRule;
}

/** A little longer than the time after which it is shown again. */
const TYPING_MS = 6000;
const MOST_PLACES = 500;

/** What is under way between `start` and `stop`. */
interface Session {
  readonly inbox: Inbox;
  readonly stopped: AbortController;
  readonly cursor: KeptCursor;
  readonly marks: Marks;
  reception: Reception | null;
  run: Promise<void>;
}

/** Matrix, by the client API of a homeserver. */
export class Matrix implements Platform {
  readonly name: string;
  readonly abilities = MATRIX_ABILITIES;
  readonly #options: MatrixOptions;
  readonly #api: MatrixApi;
  readonly #connection: Connection;
  readonly #rooms: Rooms;
  readonly #known: KnownEvents;
  readonly #sending: Sending;
  readonly #signs: Signs;
  /** Who we are, once the server has said it. */
  #self: string | null = null;
  #session: Session | null = null;

  constructor(options: MatrixOptions) {
    checkOptions(options);
    this.#options = options;
    this.#api = new MatrixApi(options);
    const { redact, runtime } = this.#api;
    this.name = runtime.name;
    this.#connection = new Connection({ label: 'Matrix', runtime, troubleOf: (thrown) => troubleOf(thrown, redact) });
    this.#rooms = new Rooms(this.#api);
    this.#known = new KnownEvents(this.#api);
    this.#sending = new Sending({ api: this.#api, rooms: this.#rooms, known: this.#known });
    this.#signs = new Signs(this.#api, this.#sending);
  }

  get state(): PlatformState {
    return this.#connection.state;
  }

  async start(inbox: Inbox): Promise<void> {
    if (this.#session !== null) return;
    const { runtime, redact } = this.#api;
    const cursor = new KeptCursor(runtime, 'since');
    const session: Session = {
      ...{ inbox, cursor, marks: new Marks(runtime) },
      ...{ stopped: new AbortController(), reception: null, run: Promise.resolve() },
    };
    this.#session = session;
    this.#connection.open(inbox);
    session.run = this.#run(session).catch((thrown: unknown) => {
      if (!session.stopped.signal.aborted) runtime.warn('Matrix stopped by itself', { error: redact(String(thrown)) });
    });
  }

  async stop(): Promise<void> {
    const session = this.#session;
    if (session === null) return;
    this.#session = null;
    session.stopped.abort();
    await session.run;
    await session.reception?.settle();
    await Promise.all([session.cursor.flush(), session.marks.flush()]);
    this.#connection.close();
  }

  async send(place: Place, message: Outgoing, signal: AbortSignal): Promise<SentMessage> {
    return { messageId: await this.#sending.send(place, message, signal) };
  }

  measure(text: string): number {
    return measureText(text);
  }

  edit(place: Place, messageId: string, message: Outgoing, signal: AbortSignal): Promise<void> {
    return this.#sending.edit(place, messageId, message, signal);
  }

  remove(place: Place, messageId: string, signal: AbortSignal): Promise<void> {
    return this.#sending.redact(place, messageId, signal);
  }

  openFile(ref: string, maxBytes: number, signal: AbortSignal): Promise<Uint8Array> {
    return downloadFile(this.#api, ref, Math.min(maxBytes, this.abilities.files.maxBytes), signal);
  }

  async showTyping(place: Place, signal: AbortSignal): Promise<void> {
    // A sign of life is no reason to annoy a server that asked for patience.
    if (!this.#sending.isAllowed) return;
    const self = await this.#whoWeAre(signal);
    const room = await this.#sending.roomOf(place);
    const json = { typing: true, timeout: TYPING_MS };
    await this.#sending.call(at`/_matrix/client/v3/rooms/${room}/typing/${self}`, signal, { method: 'PUT', json });
  }

  async react(place: Place, messageId: string, sign: ReactionSign | null, signal: AbortSignal): Promise<void> {
    await this.#signs.put(place, messageId, sign, await this.#whoWeAre(signal), signal);
  }

  async identify(signal: AbortSignal): Promise<string> {
    try {
      return await this.#askWho(signal);
    } catch (thrown) {
      if (thrown instanceof WrongUser) throw new SendFailure(thrown.message, null, 'forbidden');
      throw sendFailureOf(thrown, this.#api.redact);
    }
  }

  async listPlaces(signal: AbortSignal): Promise<readonly Place[]> {
    const { joined_rooms: joined } = await this.#sending.call('/_matrix/client/v3/joined_rooms', signal, {});
    const rooms = listOf(joined).flatMap((room) => roomIdOf(room) ?? []);
    const places: Place[] = [];
    for (const chat of rooms.slice(0, MOST_PLACES)) {
      const { direct, name } = await this.#rooms.factsOf(chat, signal);
      places.push({ type: direct ? 'dm' : 'group', chat, ...(name === null ? {} : { name }) });
    }
    return places;
  }

  async #whoWeAre(signal: AbortSignal): Promise<string> {
    return this.#self ?? (await this.identify(signal));
  }

  /** Throws `WrongUser` where the token belongs to another account than the one that is configured. */
  async #askWho(signal: AbortSignal): Promise<string> {
    const { userId: configured } = this.#options;
    const actual = userIdOf((await this.#api.call('/_matrix/client/v3/account/whoami', signal)).user_id);
    if (actual === null) throw new ApiError(200, '', 'the homeserver does not say whose the access token is');
    if (configured !== null && configured !== actual) throw new WrongUser(configured, actual);
    this.#self = actual;
    return actual;
  }

  async #run(session: Session): Promise<void> {
    const { inbox, cursor, marks, stopped } = session;
    const { signal } = stopped;
    const [api, rooms, known, connection] = [this.#api, this.#rooms, this.#known, this.#connection];
    const userId = await connection.keepTrying(() => this.#askWho(signal), signal);
    if (userId === null) return;
    const profile = await api.find(at`/_matrix/client/v3/profile/${userId}/displayname`, signal);
    const self: Names = { userId, displayName: nameOf(profile?.displayname) };
    await rooms.askDirect(userId, signal);
    const membership = new Membership({ api, rooms, self: userId, invites: this.#options.invites, signal });
    const receipts = new Receipts(api, signal, () => this.#sending.isAllowed);
    const pending = new PendingComings(api.runtime);
    const deps = { self, inbox, api, rooms, known, marks, receipts, membership, pending, cursor, signal };
    const reception = new Reception(deps);
    session.reception = reception;
    await reception.resume();
    await followSync({ api, self: userId, connection, reception, cursor, signal });
  }
}

/** Both go into every request: what does not belong there is refused before anything is sent. */
function checkOptions({ token, homeserver }: MatrixOptions): void {
  if (!/^[\x21-\x7e]+$/.test(token)) throw new MoiraiError('bad_input', 'the Matrix access token has odd characters');
  if (!URL.canParse(homeserver) || !/^https?:$/.test(new URL(homeserver).protocol)) {
    throw new MoiraiError('bad_input', 'the address of the Matrix homeserver is not an http address');
  }
}

import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type MatrixCall, readCall } from './matrix-calls.ts';
import { readMatrixHtml } from './matrix-html.ts';
import { displayName, FakeRooms, type RoomEvent } from './matrix-rooms.ts';

/** Makes calls go wrong: an error of the protocol, something that is no JSON, a cut, silence. */
export type Fault =
  | {
      readonly status: number;
      readonly errcode: string;
      readonly more?: Readonly<Record<string, unknown>>;
      readonly headers?: Readonly<Record<string, string>>;
    }
  | { readonly html: number }
  | 'cut'
  /** It is done, and the answer is lost. */
  | 'lost'
  | 'silence';

/** The specification's limit of an event; the server adds some hundred bytes. */
const MOST_EVENT_BYTES = 65_536 - 1024;
const MOST_CALLS = 5000;

/**
 * A homeserver on loopback: one stream of events read by `since`, timelines that leave out what is too much, history page by
 * page, transactions that count once, media behind the token.
 */
export class MatrixFake {
  readonly self = '@agent:example.org';
  readonly token: string;
  readonly rooms = new FakeRooms(this.self);
  readonly calls: MatrixCall[] = [];
  /** By `server/id`. */
  readonly media = new Map<string, { bytes: Uint8Array; name: string | null; redirect?: string }>();
  /** The newest event that the agent has shown to have read, by room. */
  readonly receipts = new Map<string, string>();
  typed = 0;
  revoked = false;
  /** It answers at once that there is nothing, however long it is asked to wait. */
  isImpatient = false;
  /** A server of before 2024. */
  isOld = false;
  /** Called when a message of the agent was taken, before it is answered. */
  onTaken: (() => void) | null = null;
  /** Called when the agent has come into a room, before it is answered. */
  onJoin: (() => void) | null = null;
  readonly #server: Server;
  readonly #faults = new Map<string, Fault[]>();
  readonly #transactions = new Map<string, string>();
  readonly #waiting = new Map<ServerResponse, { answer: () => void; timer: NodeJS.Timeout }>();

  private constructor(token: string) {
    this.token = token;
    this.#server = createServer((request, response) => {
      this.#serve(request, response).catch(() => response.destroy());
    });
  }

  static async start({ token = 'syt_secret_of_the_agent', port = 0 } = {}): Promise<MatrixFake> {
    const fake = new MatrixFake(token);
    await new Promise<void>((resolve, reject) => {
      fake.#server.once('error', reject).listen(port, '127.0.0.1', resolve);
    });
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Tells whoever waits that there is something new. */
  wake(): void {
    for (const { answer } of [...this.#waiting.values()]) answer();
  }

  /** The next calls go wrong, one fault each. */
  failNext(name: string, ...faults: Fault[]): void {
    this.#faults.set(name, [...(this.#faults.get(name) ?? []), ...faults]);
  }

  callsOf(name: string): MatrixCall[] {
    return this.calls.filter((call) => call.name === name);
  }

  cut(): void {
    for (const { timer } of this.#waiting.values()) clearTimeout(timer);
    this.#waiting.clear();
    this.#server.closeAllConnections();
  }

  async close(): Promise<void> {
    this.cut();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close();
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const call = await readCall(request);
    this.calls.push(call);
    if (this.calls.length > MOST_CALLS) this.calls.shift();
    const fault = this.#faults.get(call.name)?.shift();
    if (fault !== undefined && fault !== 'lost') return this.#fail(response, fault);
    if (call.authorization === '') return refuse(response, 401, 'M_MISSING_TOKEN');
    if (this.revoked || call.authorization !== `Bearer ${this.token}`) {
      return refuse(response, 401, 'M_UNKNOWN_TOKEN', { soft_logout: false });
    }
    if (call.name === 'sync') return this.#sync(call, response);
    if (call.name.endsWith('download')) return this.#download(call, response);
    const answer = this.#perform(call);
    if (fault === 'lost') return void response.destroy();
    if ('errcode' in answer) return refuse(response, Number(answer.status), String(answer.errcode));
    send(response, 200, answer);
  }

  #fail(response: ServerResponse, fault: Exclude<Fault, 'lost'>): void {
    if (fault === 'cut') response.destroy();
    else if (fault === 'silence') response.on('close', () => response.destroy());
    else if ('html' in fault) response.writeHead(fault.html, { 'content-type': 'text/html' }).end('<h1>Oops</h1>');
    else refuse(response, fault.status, fault.errcode, fault.more, fault.headers);
  }

  #sync({ query }: MatrixCall, response: ServerResponse): void {
    const token = query.get('since');
    const since = token === null ? null : this.rooms.positionOf(token);
    if (token !== null && since === null) {
      refuse(response, 400, 'M_UNKNOWN_POS');
      return;
    }
    const { limit = 10, types = null } = JSON.parse(query.get('filter') ?? '{}').room?.timeline ?? {};
    const answer = (): void => {
      const news = this.rooms.sync({ since, limit, types });
      if (news !== null) finish(news);
    };
    const finish = (body: Record<string, unknown>): void => {
      clearTimeout(timer);
      this.#waiting.delete(response);
      send(response, 200, body);
    };
    const nothing = () => finish({ next_batch: token, rooms: {} });
    const timer = setTimeout(nothing, this.isImpatient ? 0 : Number(query.get('timeout') ?? 0));
    this.#waiting.set(response, { answer, timer });
    response.on('close', () => {
      clearTimeout(timer);
      this.#waiting.delete(response);
    });
    answer();
  }

  #download({ name, parts }: MatrixCall, response: ServerResponse): void {
    const file = this.media.get(parts.join('/'));
    if (this.isOld && name === 'download') refuse(response, 404, 'M_UNRECOGNIZED');
    else if (file === undefined) refuse(response, 404, 'M_NOT_FOUND');
    else if (file.redirect !== undefined) response.writeHead(307, { location: file.redirect }).end();
    // Without a length: the receiver has to count.
    else response.writeHead(200, { 'content-type': 'application/octet-stream' }).end(file.bytes);
  }

  #perform(call: MatrixCall): Record<string, unknown> {
    const { rooms, self } = this;
    const [room = '', second = ''] = call.parts;
    switch (call.name) {
      case 'whoami':
        return { user_id: self, device_id: 'AGENT' };
      case 'profile':
        return { displayname: displayName(room) };
      case 'account_data':
        return Object.keys(rooms.direct).length === 0 ? error(404, 'M_NOT_FOUND') : rooms.direct;
      case 'joined_rooms':
        return { joined_rooms: [...rooms.rooms.keys()].filter((id) => rooms.isJoined(id)) };
      case 'join':
        return this.#join(room);
      case 'leave':
        rooms.member(room, self, 'leave');
        this.wake();
        return {};
      case 'upload':
        return this.#upload(call);
      case '':
        return error(404, 'M_UNRECOGNIZED');
    }
    if (!rooms.isJoined(room)) return error(403, 'M_FORBIDDEN');
    return this.#inRoom(call, room, second);
  }

  #inRoom(call: MatrixCall, room: string, second: string): Record<string, unknown> {
    const { rooms } = this;
    switch (call.name) {
      case 'joined_members':
        return { joined: rooms.joined(room) };
      case 'state':
        return { ...(rooms.room(room).state.get(`${second}|`)?.content ?? error(404, 'M_NOT_FOUND')) };
      case 'event':
        return { ...(rooms.room(room).events.find((event) => event.event_id === second) ?? error(404, 'M_NOT_FOUND')) };
      case 'messages':
        return this.#messages(call, room);
      case 'typing':
        this.typed += 1;
        return {};
      case 'receipt':
        this.receipts.set(room, second);
        return {};
      case 'relations':
        return { chunk: this.reactionsAt(room, second) };
      case 'redact':
        return this.#redact(call, room, second);
      case 'send':
        return this.#send(call, room, second);
      default:
        return error(404, 'M_UNRECOGNIZED');
    }
  }

  /** Reactions at a message that were not taken back. */
  reactionsAt(room: string, messageId: string): RoomEvent[] {
    return this.rooms.room(room).events.filter(({ type, content }) => {
      const relation = content['m.relates_to'] as { event_id?: string } | undefined;
      return type === 'm.reaction' && relation?.event_id === messageId;
    });
  }

  #join(room: string): Record<string, unknown> {
    const { rooms, self } = this;
    if (rooms.isJoined(room)) return { room_id: room };
    if (!rooms.rooms.has(room)) return error(404, 'M_NOT_FOUND');
    if (!rooms.mayJoin(room, self)) return error(403, 'M_FORBIDDEN');
    rooms.member(room, self, 'join', self);
    this.onJoin?.();
    this.wake();
    return { room_id: room };
  }

  #upload({ body, query, method }: MatrixCall): Record<string, unknown> {
    if (method !== 'POST') return error(405, 'M_UNRECOGNIZED');
    const id = `upload${this.media.size + 1}`;
    this.media.set(`example.org/${id}`, { bytes: body, name: query.get('filename') });
    return { content_uri: `mxc://example.org/${id}` };
  }

  #messages({ query }: MatrixCall, room: string): Record<string, unknown> {
    const { types = null } = JSON.parse(query.get('filter') ?? '{}');
    if (query.get('dir') !== 'b') return error(400, 'M_INVALID_PARAM');
    const limit = Number(query.get('limit') ?? 10);
    return this.rooms.history(room, query.get('from') ?? '', query.get('to'), limit, types) ?? error(400, 'M_UNKNOWN');
  }

  #redact({ parts, method }: MatrixCall, room: string, target: string): Record<string, unknown> {
    if (method !== 'PUT') return error(405, 'M_UNRECOGNIZED');
    return this.#once(`redact ${parts.join(' ')}`, () => {
      const because = this.rooms.append(room, {
        ...{ type: 'm.room.redaction', sender: this.self, redacts: target, content: { redacts: target } },
      });
      this.rooms.prune(room, target, because);
      return because.event_id;
    });
  }

  #send({ parts, method, body }: MatrixCall, room: string, type: string): Record<string, unknown> {
    if (method !== 'PUT') return error(405, 'M_UNRECOGNIZED');
    if (body.length > MOST_EVENT_BYTES) return error(413, 'M_TOO_LARGE');
    const content = JSON.parse(body.toString('utf8')) as Record<string, unknown>;
    const words = (content['m.new_content'] ?? content) as { formatted_body?: string };
    const read = readMatrixHtml(words.formatted_body ?? '');
    if (typeof read !== 'string') return error(400, `M_BAD_JSON ${read.problem}`);
    const sent = this.#once(`send ${parts.join(' ')}`, () => {
      return this.rooms.append(room, { type, sender: this.self, content }).event_id;
    });
    if (type === 'm.room.message') this.onTaken?.();
    return sent;
  }

  #once(transaction: string, make: () => string): Record<string, unknown> {
    const known = this.#transactions.get(transaction) ?? make();
    this.#transactions.set(transaction, known);
    this.wake();
    return { event_id: known };
  }
}

function error(status: number, errcode: string): Record<string, unknown> {
  return { status, errcode };
}

function refuse(
  response: ServerResponse,
  status: number,
  errcode: string,
  more: Readonly<Record<string, unknown>> = {},
  headers: Readonly<Record<string, string>> = {},
): void {
  send(response, status, { errcode, error: `refused: ${errcode}`, ...more }, headers);
}

function send(response: ServerResponse, status: number, body: unknown, headers: Readonly<Record<string, string>> = {}) {
  if (response.destroyed || response.writableEnded) return;
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

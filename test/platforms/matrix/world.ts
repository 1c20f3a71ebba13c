import type { Place } from '../../../src/platforms/platform.ts';
import { readMatrixHtml } from '../../fakes/matrix-html.ts';
import type { RoomEvent } from '../../fakes/matrix-rooms.ts';
import { MatrixFake } from '../../fakes/matrix-server.ts';
import { type Happening, type Shown, type UserMessage, until, type Where, type World } from '../contract/scene.ts';

const PEOPLE = 128;
const GROUP = '!group:example.org';
const FORUM = '!forum:example.org';
const ROOT = '$root';
const PATIENCE_MS = 20_000;

export function personOf(person: number): string {
  return `@person${person}:example.org`;
}

export function dmOf(person: number): string {
  return `!dm${person}:example.org`;
}

interface Relation {
  readonly rel_type?: string;
  readonly event_id?: string;
  readonly is_falling_back?: boolean;
  readonly 'm.in_reply_to'?: { readonly event_id: string };
}

/** A homeserver with a direct room for everybody, a group, and a room with a thread. */
export class MatrixWorld implements World {
  readonly fake: MatrixFake;
  readonly settings: World['settings'];
  readonly secrets: readonly string[];
  #last = { room: '', event: '' };

  private constructor(fake: MatrixFake) {
    this.fake = fake;
    this.settings = { homeserver: fake.url, token: fake.token };
    this.secrets = [fake.token];
  }

  static async open(): Promise<MatrixWorld> {
    const fake = await MatrixFake.start();
    const { rooms, self } = fake;
    for (let person = 0; person < PEOPLE; person += 1) rooms.create(dmOf(person), [personOf(person), self]);
    const everybody = Array.from({ length: 4 }, (_, person) => personOf(person));
    rooms.create(GROUP, [...everybody, self], 'Group');
    rooms.create(FORUM, [...everybody, self], 'Forum');
    const content = { msgtype: 'm.text', body: 'Let us talk about this' };
    rooms.append(FORUM, { event_id: ROOT, type: 'm.room.message', sender: personOf(1), content });
    return new MatrixWorld(fake);
  }

  place(where: Where, person = 0): Place {
    if (where === 'dm') return { type: 'dm', chat: dmOf(person) };
    if (where === 'group') return { type: 'group', chat: GROUP };
    return { type: 'thread', chat: FORUM, thread: ROOT };
  }

  /** Waits until the agent has a position to go on from: what was said before is history. */
  async say({ text, where = 'dm', person = 0, file, repliesTo }: UserMessage): Promise<string> {
    await until(() => this.fake.callsOf('sync').length > 0, 'a first sync', PATIENCE_MS);
    const room = this.place(where, person).chat;
    const words = file === undefined ? { msgtype: 'm.text', body: text } : this.#fileOf(file, text);
    const relation = this.#relation(where, repliesTo);
    return this.add(room, person, { ...words, ...(relation === null ? {} : { 'm.relates_to': relation }) });
  }

  /** A message of a person, with this content. */
  add(room: string, person: number, content: Record<string, unknown>, type = 'm.room.message'): string {
    const { event_id: event } = this.fake.rooms.append(room, { type, sender: personOf(person), content });
    this.#last = { room, event };
    this.fake.wake();
    return event;
  }

  push(payload: Record<string, unknown>): void {
    this.fake.rooms.pushRaw(payload);
    this.fake.wake();
  }

  /** What the agent has said and is still there, with its changes. */
  shown(): readonly Shown[] {
    return [...this.fake.rooms.rooms.values()].flatMap(({ id, events }) => {
      const own = events.filter(({ type, sender }) => type === 'm.room.message' && sender === this.fake.self);
      const said = own.filter(({ content }) => content.body !== undefined);
      const changes = new Map(said.flatMap((event) => changeOf(event)));
      return said
        .filter(({ content }) => relationIn(content).rel_type !== 'm.replace')
        .map((event) => this.#shownOf(id, event, changes.get(event.event_id)));
    });
  }

  unacknowledged(): number {
    return [...this.fake.rooms.rooms.values()].reduce((sum, { id, events }) => {
      const read = events.findLastIndex(({ event_id }) => event_id === this.fake.receipts.get(id));
      const unread = events.filter(({ type, sender, event_id }, index) => {
        return index > read && type === 'm.room.message' && sender !== this.fake.self && event_id !== ROOT;
      });
      return sum + unread.length;
    }, 0);
  }

  async change(messageId: string, text: string): Promise<void> {
    const words = { msgtype: 'm.text', body: text };
    const relation = { rel_type: 'm.replace', event_id: messageId };
    this.add(dmOf(0), 0, { msgtype: 'm.text', body: `* ${text}`, 'm.new_content': words, 'm.relates_to': relation });
  }

  async echo(text: string): Promise<void> {
    const content = { msgtype: 'm.text', body: text };
    this.fake.rooms.append(dmOf(0), { type: 'm.room.message', sender: this.fake.self, content });
    this.fake.wake();
  }

  async bringAgain(): Promise<void> {
    this.fake.rooms.repeat(this.#last.room, this.#last.event);
    this.fake.wake();
  }

  typed(): number {
    return this.fake.typed;
  }

  reactions(messageId: string): readonly string[] {
    return this.fake.reactionsAt(dmOf(0), messageId).map(({ event_id }) => event_id);
  }

  limitRate(ms: number): void {
    const headers = { 'retry-after': String(Math.ceil(ms / 1000)) };
    const more = { retry_after_ms: ms };
    this.fake.failNext('send', { status: 429, errcode: 'M_LIMIT_EXCEEDED', more, headers });
  }

  stumble(): void {
    this.fake.failNext('send', { html: 502 });
  }

  cut(): void {
    this.fake.cut();
  }

  invalidate(): void {
    this.fake.rooms.generation += 1;
  }

  revoke(): void {
    this.fake.revoked = true;
  }

  loseAnswer(): void {
    this.fake.failNext('send', 'lost');
  }

  onTaken(callback: (() => void) | null): void {
    this.fake.onTaken = callback;
  }

  async happen(what: Happening, messageId: string): Promise<void> {
    const { rooms, self } = this.fake;
    if (what === 'added') rooms.member(GROUP, self, 'join', self, 'leave');
    if (what === 'removed') rooms.member(GROUP, self, 'leave', personOf(1));
    if (what === 'joined') rooms.member(GROUP, personOf(9), 'join');
    if (what === 'reaction') {
      const relation = { rel_type: 'm.annotation', event_id: messageId, key: '👍' };
      this.add(GROUP, 1, { 'm.relates_to': relation }, 'm.reaction');
    }
    if (what === 'deleted') this.takeBack(GROUP, messageId);
    this.fake.wake();
  }

  /** The first person takes an event back. */
  takeBack(room: string, eventId: string): void {
    const { rooms } = this.fake;
    const because = rooms.append(room, {
      ...{ type: 'm.room.redaction', sender: personOf(0), redacts: eventId, content: { redacts: eventId } },
    });
    rooms.prune(room, eventId, because);
    this.fake.wake();
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.fake.close();
  }

  #fileOf({ bytes, name, mime }: NonNullable<UserMessage['file']>, text: string): Record<string, unknown> {
    const id = `person${this.fake.media.size + 1}`;
    this.fake.media.set(`example.org/${id}`, { bytes, name });
    const info = { size: bytes.length, mimetype: mime };
    return { msgtype: 'm.file', body: text, filename: name, url: `mxc://example.org/${id}`, info };
  }

  #relation(where: Where, repliesTo: string | undefined): Relation | null {
    const answer = repliesTo === undefined ? {} : { 'm.in_reply_to': { event_id: repliesTo } };
    if (where === 'thread') return { rel_type: 'm.thread', event_id: ROOT, is_falling_back: true, ...answer };
    return repliesTo === undefined ? null : answer;
  }

  #shownOf(chat: string, { event_id, content }: RoomEvent, change: RoomEvent['content'] | undefined): Shown {
    const relation = relationIn(content);
    const isReply = relation.is_falling_back !== true;
    const file = this.fake.media.get(String(content.url ?? '').replace('mxc://', ''));
    return {
      messageId: event_id,
      chat,
      text: file === undefined ? visibleText(change ?? content) : '',
      thread: relation.rel_type === 'm.thread' ? (relation.event_id ?? null) : null,
      repliesTo: isReply ? (relation['m.in_reply_to']?.event_id ?? null) : null,
      files: file === undefined ? [] : [{ name: String(content.filename), bytes: file.bytes }],
      buttons: [],
    };
  }
}

function relationIn(content: RoomEvent['content']): Relation {
  return (content['m.relates_to'] as Relation | undefined) ?? {};
}

function changeOf({ content }: RoomEvent): [string, RoomEvent['content']][] {
  const { rel_type, event_id } = relationIn(content);
  return rel_type === 'm.replace' && event_id !== undefined
    ? [[event_id, content['m.new_content'] as RoomEvent['content']]]
    : [];
}

function visibleText({ body, formatted_body }: RoomEvent['content']): string {
  if (typeof formatted_body !== 'string') return String(body);
  const read = readMatrixHtml(formatted_body);
  if (typeof read !== 'string') throw new TypeError(read.problem);
  return read;
}

/** An event as the server keeps it. */
export interface RoomEvent {
  readonly event_id: string;
  readonly type: string;
  readonly sender: string;
  readonly origin_server_ts: number;
  readonly content: Readonly<Record<string, unknown>>;
  readonly state_key?: string;
  readonly redacts?: string;
  readonly unsigned?: Readonly<Record<string, unknown>>;
}

export interface FakeRoom {
  readonly id: string;
  readonly events: RoomEvent[];
  /** By type and key. */
  readonly state: Map<string, RoomEvent>;
}

/** What the server has to tell us, in order: an event of a room, or an answer as it is. */
type StreamItem =
  | { readonly room: FakeRoom; readonly index: number }
  | { readonly invite: string; readonly state: readonly object[] }
  | { raw: Record<string, unknown> | null };

interface Question {
  readonly since: number | null;
  readonly limit: number;
  readonly types: readonly string[] | null;
}

const FIRST_SECOND = 1_700_000_000;

/** The rooms of a homeserver, and the one stream that a client reads. */
export class FakeRooms {
  readonly rooms = new Map<string, FakeRoom>();
  readonly self: string;
  direct: Record<string, string[]> = {};
  /** Positions given before are not known any more. */
  generation = 1;
  readonly #stream: StreamItem[] = [];
  #nextEvent = 1;

  constructor(self: string) {
    this.self = self;
  }

  get position(): number {
    return this.#stream.length;
  }

  room(id: string): FakeRoom {
    const known = this.rooms.get(id);
    if (known !== undefined) return known;
    const room: FakeRoom = { id, events: [], state: new Map() };
    this.rooms.set(id, room);
    return room;
  }

  /** A room with these people in it from the beginning; `replaces` is the room whose place it takes. */
  create(id: string, members: readonly string[], name: string | null = null, replaces: string | null = null): void {
    const [creator = this.self] = members;
    const predecessor = replaces === null ? {} : { predecessor: { room_id: replaces, event_id: '$tombstone' } };
    const content = { room_version: '11', ...predecessor };
    this.append(id, { type: 'm.room.create', sender: creator, state_key: '', content });
    for (const member of members) this.member(id, member, 'join');
    if (name !== null) this.append(id, { type: 'm.room.name', sender: creator, state_key: '', content: { name } });
  }

  member(id: string, userId: string, membership: string, sender = userId, before?: string): RoomEvent {
    const was = before ?? this.room(id).state.get(`m.room.member|${userId}`)?.content.membership;
    const unsigned = was === undefined ? {} : { unsigned: { prev_content: { membership: was } } };
    const content = { membership, displayname: displayName(userId) };
    return this.append(id, { type: 'm.room.member', sender, state_key: userId, content, ...unsigned });
  }

  append(id: string, event: Partial<RoomEvent> & Pick<RoomEvent, 'type' | 'sender' | 'content'>): RoomEvent {
    const room = this.room(id);
    const number = this.#nextEvent++;
    const whole = { event_id: `$event${number}`, origin_server_ts: (FIRST_SECOND + number) * 1000, ...event };
    const index = room.events.push(whole) - 1;
    if (whole.state_key !== undefined) room.state.set(`${whole.type}|${whole.state_key}`, whole);
    this.#stream.push({ room, index });
    return whole;
  }

  /** The same event once more, as after an answer that got lost. */
  repeat(id: string, eventId: string): void {
    const room = this.room(id);
    this.#stream.push({ room, index: room.events.findIndex((event) => event.event_id === eventId) });
  }

  invite(id: string, inviter: string): void {
    const state = [...this.room(id).state.values()].filter(({ type }) => type !== 'm.room.member');
    const own = this.member(id, this.self, 'invite', inviter);
    this.#stream.push({ invite: id, state: [...state, own] });
  }

  /** An answer to a sync as it is, with a position of ours. */
  pushRaw(raw: Record<string, unknown>): void {
    this.#stream.push({ raw });
  }

  /** Takes away what an event said. */
  prune(id: string, eventId: string, because: RoomEvent): boolean {
    const { events } = this.room(id);
    const index = events.findIndex((event) => event.event_id === eventId);
    const event = events[index];
    if (event === undefined) return false;
    events[index] = { ...event, content: {}, unsigned: { redacted_because: because } };
    return true;
  }

  isJoined(id: string, userId = this.self): boolean {
    return this.rooms.get(id)?.state.get(`m.room.member|${userId}`)?.content.membership === 'join';
  }

  /** Everybody may, unless the room says that only those may who are invited. */
  mayJoin(id: string, userId: string): boolean {
    const { state } = this.room(id);
    const isInvited = state.get(`m.room.member|${userId}`)?.content.membership === 'invite';
    return isInvited || state.get('m.room.join_rules|')?.content.join_rule !== 'invite';
  }

  joined(id: string): Record<string, { display_name: string }> {
    const events = [...this.room(id).state.values()].filter(({ type }) => type === 'm.room.member');
    const there = events.filter(({ content }) => content.membership === 'join');
    return Object.fromEntries(there.map(({ state_key = '' }) => [state_key, { display_name: displayName(state_key) }]));
  }

  /** The answer to a sync; null while there is nothing new. */
  sync(question: Question): Record<string, unknown> | null {
    const { since } = question;
    if (since === null) return this.#answer(this.#whole(question), this.position, true);
    this.#forgetRaw(since);
    const items = this.#stream.slice(since);
    const [first] = items;
    if (first === undefined) return null;
    if ('raw' in first) return { ...first.raw, next_batch: this.tokenAt(since + 1) };
    const end = items.findIndex((item) => 'raw' in item);
    const news = end < 0 ? items : items.slice(0, end);
    return this.#answer(this.#news(news, question), since + news.length, false);
  }

  tokenAt(position: number): string {
    return `s${this.generation}_${position}`;
  }

  /** Null for a position that is not known. */
  positionOf(token: string): number | null {
    const [, generation, position] = /^[st](\d+)_(\d+)$/.exec(token) ?? [];
    return position !== undefined && Number(generation) === this.generation ? Number(position) : null;
  }

  /** Backwards from a token of a room's history, as `/messages` does. */
  history(id: string, from: string, to: string | null, limit: number, types: readonly string[] | null) {
    const { events } = this.room(id);
    const start = this.#indexOf(id, from);
    const stop = to === null ? 0 : (this.#indexOf(id, to) ?? null);
    if (start === null || stop === null) return null;
    const first = Math.max(stop, start - limit);
    const chunk = events
      .slice(first, start)
      .filter(({ type }) => types === null || types.includes(type))
      .toReversed();
    const more = first > stop ? { end: `t${this.generation}_${first}` } : {};
    return { start: from, chunk, ...more };
  }

  /** How many events of the room lie before a position of the room or of the stream. */
  #indexOf(id: string, token: string): number | null {
    const position = this.positionOf(token);
    if (position === null || token.startsWith('t')) return position;
    const before = this.#stream.slice(0, position);
    return before.reduce((index, item) => ('room' in item && item.room.id === id ? item.index + 1 : index), 0);
  }

  #forgetRaw(since: number): void {
    for (let at = since - 1; at >= 0; at -= 1) {
      const item = this.#stream[at];
      if (item === undefined || !('raw' in item) || item.raw === null) return;
      item.raw = null;
    }
  }

  #whole({ limit, types }: Question): Record<string, unknown> {
    const joined = [...this.rooms.values()].filter(({ id }) => this.isJoined(id));
    const join = Object.fromEntries(joined.map((room) => [room.id, this.#piece(room, 0, limit, types, true)]));
    const invited = this.#stream.flatMap((item) => ('invite' in item && !this.isJoined(item.invite) ? item : []));
    return { join, invite: invitesOf(invited) };
  }

  #news(items: readonly StreamItem[], { limit, types }: Question): Record<string, unknown> {
    const events = items.flatMap((item) => ('room' in item ? item : []));
    const join: Record<string, unknown> = {};
    const leave: Record<string, unknown> = {};
    for (const [room, own] of Map.groupBy(events, (item) => item.room)) {
      const indexes = own.map(({ index }) => index);
      const came = own.some(({ index }) => this.#isOwnMembership(room.events[index], 'join'));
      if (this.isJoined(room.id)) {
        const first = came ? 0 : Math.min(...indexes);
        const isAgain = !came && indexes.some((index, i) => i > 0 && index <= (indexes[i - 1] ?? 0));
        join[room.id] =
          isAgain || !isRun(indexes)
            ? { timeline: { events: indexes.map((index) => room.events[index]), limited: false } }
            : this.#piece(room, first, limit, types, came);
      } else if (own.some(({ index }) => this.#isOwnMembership(room.events[index], 'leave', 'ban'))) {
        leave[room.id] = { timeline: { events: indexes.map((index) => room.events[index]) } };
      }
    }
    return { join, leave, invite: invitesOf(items.flatMap((item) => ('invite' in item ? item : []))) };
  }

  #isOwnMembership(event: RoomEvent | undefined, ...memberships: readonly string[]): boolean {
    const { type, state_key, content } = event ?? { content: {} as RoomEvent['content'] };
    return type === 'm.room.member' && state_key === this.self && memberships.includes(String(content.membership));
  }

  #piece(room: FakeRoom, first: number, limit: number, types: Question['types'], isNew: boolean) {
    const given = room.events.map((event, index) => ({ event, index })).slice(first);
    const wanted = given.filter(({ event }) => types === null || types.includes(event.type));
    const shown = wanted.slice(-limit);
    const senders = new Set(shown.map(({ event }) => event.sender));
    const state = [...room.state.values()].filter(({ type, state_key = '' }) =>
      type === 'm.room.member' ? senders.has(state_key) : isNew && type !== 'm.room.create',
    );
    const isLimited = shown.length < wanted.length;
    const [oldest] = shown;
    return {
      timeline: {
        events: shown.map(({ event }) => event),
        limited: isLimited,
        prev_batch: `t${this.generation}_${oldest?.index ?? room.events.length}`,
      },
      state: { events: state },
      ...(isNew ? { summary: { 'm.joined_member_count': Object.keys(this.joined(room.id)).length } } : {}),
    };
  }

  #answer(rooms: Record<string, unknown>, position: number, isFirst: boolean): Record<string, unknown> {
    const direct = isFirst ? { account_data: { events: [{ type: 'm.direct', content: this.direct }] } } : {};
    return { next_batch: this.tokenAt(position), rooms, ...direct };
  }
}

function isRun(indexes: readonly number[]): boolean {
  return indexes.every((index, i) => i === 0 || index === (indexes[i - 1] ?? 0) + 1);
}

function invitesOf(items: readonly { readonly invite: string; readonly state: readonly object[] }[]) {
  return Object.fromEntries(items.map(({ invite, state }) => [invite, { invite_state: { events: state } }]));
}

/** `@ada:example.org` is called Ada. */
export function displayName(userId: string): string {
  const name = userId.slice(1, userId.indexOf(':'));
  return name.charAt(0).toUpperCase() + name.slice(1);
}

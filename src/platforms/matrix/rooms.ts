import { ChatQueues } from '../chat-queues.ts';
import { type Fields, fieldsOf, nameOf, textOf } from '../fields.ts';
import type { PlatformRuntime } from '../platform.ts';
import { Recent } from '../recent.ts';
import { at, type MatrixApi } from './api.ts';
import { isComing } from './comings.ts';
import { localpartOf, userIdOf } from './ids.ts';
import { directRooms, type RoomPiece } from './parse-sync.ts';

/** What a room is to us. */
export interface RoomFacts {
  /** A talk between two. */
  readonly direct: boolean;
  readonly name: string | null;
}

/**
 * What is kept of a room: which conversation it is must not depend on who asks the server when. What is left out is not
 * known yet.
 */
interface Kept extends Partial<RoomFacts> {
  /** For good: encryption cannot be turned off again. */
  readonly encrypted?: true;
  /** People there have been told that we cannot read it. */
  readonly noticed?: true;
  /** The room that took its place, and in which we are. */
  readonly successor?: string;
}

/** What the server said in passing of a room that nobody has talked to us in. */
interface Hints {
  readonly name?: string | null;
  readonly members?: number;
}

const MOST_ROOMS = 10_000;
const MOST_PEOPLE = 10_000;
/** More upgrades of one room are a circle. */
const MOST_HOPS = 50;

/** The rooms we are in, and what people there are called. */
export class Rooms {
  readonly #api: MatrixApi;
  readonly #runtime: PlatformRuntime;
  readonly #kept = new Recent<Kept>(MOST_ROOMS);
  readonly #hints = new Recent<Hints>(MOST_ROOMS);
  readonly #people = new Recent<string>(MOST_PEOPLE);
  readonly #changes = new ChatQueues();
  /** Those that our account lists as talks between two. */
  #listed: ReadonlySet<string> = new Set();

  constructor(api: MatrixApi) {
    this.#api = api;
    this.#runtime = api.runtime;
  }

  listDirect(rooms: ReadonlySet<string>): void {
    this.#listed = rooms;
  }

  /** Asks which rooms our account lists as talks between two: a sync says it only when it changes. */
  async askDirect(self: string, signal: AbortSignal): Promise<void> {
    const list = await this.#api.find(at`/_matrix/client/v3/user/${self}/account_data/m.direct`, signal);
    this.#listed = directRooms(list) ?? this.#listed;
  }

  /** What people see; where no name is known, that of their account. */
  nameOf(userId: string): string {
    return this.#people.get(userId) ?? localpartOf(userId);
  }

  /** Learns what a sync says of a room. Rejects where that could not be kept. */
  async learn({ room, state, members }: RoomPiece): Promise<void> {
    if (members !== null) this.#hint(room, { members });
    for (const event of state) await this.#learnState(room, event);
  }

  /** Learns what a room is from an event on. Rejects where that could not be kept. */
  async learnEvent(room: string, event: Fields): Promise<void> {
    await this.#learnState(room, event);
    if (typeof event.state_key !== 'string' || !isComing(event, event.state_key) || this.#listed.has(room)) return;
    if ((await this.#recall(room)).direct !== true) return;
    // Somebody comes into a talk between two: whether it still is one is asked again.
    const { members: _, ...hints } = this.#hints.get(room) ?? {};
    this.#hints.set(room, hints);
    await this.#update(room, ({ direct: _d, ...kept }) => kept);
  }

  /** Asks the server where nothing is kept yet. */
  async factsOf(room: string, signal: AbortSignal): Promise<RoomFacts> {
    const { direct, name = null } = await this.#recall(room);
    if (direct !== undefined) return { direct: direct || this.#listed.has(room), name };
    const asked = name ?? (await this.#askName(room, signal));
    if (this.#listed.has(room)) return this.#decide(room, { direct: true, name: asked });
    if (asked !== null) return this.#decide(room, { direct: false, name: asked });
    const members = await this.#askMembers(room, signal);
    // Nobody is taken for alone with us because the server does not say.
    if (members === null) return { direct: false, name: null };
    return this.#decide(room, { direct: members <= 2, name: null });
  }

  /** Where this room goes on now: other rooms may have taken its place, one after the other. */
  async newestOf(room: string): Promise<string> {
    let newest = room;
    for (let hops = 0; hops < MOST_HOPS; hops += 1) {
      const { successor } = await this.#recall(newest);
      if (successor === undefined) return newest;
      newest = successor;
    }
    return newest;
  }

  /** A room goes on as another one: a talk between two stays one. */
  async succeed(from: string, to: string): Promise<void> {
    const { direct } = await this.#recall(from);
    await this.change(from, { successor: to });
    if (direct !== undefined) await this.#update(to, (kept) => ({ direct, ...kept }));
  }

  /** We left: who is there when we come back is another question. */
  async leave(room: string): Promise<void> {
    await this.#update(room, ({ direct: _, name: _n, ...kept }) => kept);
    this.#hints.set(room, {});
  }

  /** Whether it is known that the room is encrypted. */
  async isEncrypted(room: string): Promise<boolean> {
    return (await this.#recall(room)).encrypted === true;
  }

  /** Whether people there have been told that we cannot read it. */
  async isNoticed(room: string): Promise<boolean> {
    return (await this.#recall(room)).noticed === true;
  }

  /** Whether the room is encrypted, and not only one message in it. */
  async askEncrypted(room: string, signal: AbortSignal): Promise<boolean> {
    if (await this.isEncrypted(room)) return true;
    const state = await this.#api.find(at`/_matrix/client/v3/rooms/${room}/state/m.room.encryption/`, signal);
    if (state !== null) await this.change(room, { encrypted: true });
    return state !== null;
  }

  /** Rejects where it could not be kept. */
  async change(room: string, change: Kept): Promise<void> {
    await this.#update(room, (kept) => ({ ...kept, ...change }));
  }

  async #decide(room: string, facts: RoomFacts): Promise<RoomFacts> {
    await this.change(room, facts);
    return facts;
  }

  /** One at a time for each room: nothing that was learned may get lost to another change. */
  async #update(room: string, change: (kept: Kept) => Kept): Promise<void> {
    await this.#changes.run(room, async () => {
      const known = await this.#recall(room);
      const kept = change(known);
      if (JSON.stringify(known) === JSON.stringify(kept)) return;
      const isEmpty = Object.keys(kept).length === 0;
      await this.#runtime.keep(`room:${room}`, isEmpty ? null : JSON.stringify(kept));
      this.#kept.set(room, kept);
    });
  }

  async #recall(room: string): Promise<Kept> {
    const known = this.#kept.get(room);
    if (known !== undefined) return known;
    const kept = readKept(await this.#runtime.recall(`room:${room}`));
    this.#kept.set(room, kept);
    return kept;
  }

  #hint(room: string, hint: Hints): void {
    this.#hints.set(room, { ...this.#hints.get(room), ...hint });
  }

  async #learnState(room: string, { type, state_key: key, content: said }: Fields): Promise<void> {
    const content = fieldsOf(said);
    if (typeof key !== 'string' || content === null) return;
    if (type === 'm.room.member' && content.membership === 'join') this.#learnPerson(key, content.displayname);
    else if (type === 'm.room.name' && key === '') await this.#learnName(room, nameOf(content.name));
    else if (type === 'm.room.encryption' && key === '') await this.change(room, { encrypted: true });
  }

  async #learnName(room: string, name: string | null): Promise<void> {
    this.#hint(room, { name });
    if ((await this.#recall(room)).direct !== undefined) await this.change(room, { name });
  }

  #learnPerson(id: string, displayName: unknown): void {
    const name = nameOf(displayName);
    if (userIdOf(id) !== null && name !== null) this.#people.set(id, name);
  }

  async #askName(room: string, signal: AbortSignal): Promise<string | null> {
    const { name } = this.#hints.get(room) ?? {};
    if (name !== undefined) return name;
    return nameOf((await this.#api.find(at`/_matrix/client/v3/rooms/${room}/state/m.room.name/`, signal))?.name);
  }

  /** How many are there; null where the server does not say. */
  async #askMembers(room: string, signal: AbortSignal): Promise<number | null> {
    const { members } = this.#hints.get(room) ?? {};
    if (members !== undefined) return members;
    const answer = await this.#api.find(at`/_matrix/client/v3/rooms/${room}/joined_members`, signal);
    const joined = fieldsOf(answer?.joined);
    if (joined === null) return null;
    const ids = Object.keys(joined);
    if (ids.length <= MOST_NAMED) for (const id of ids) this.#learnPerson(id, fieldsOf(joined[id])?.display_name);
    return ids.length;
  }
}

const MOST_NAMED = 100;

function readKept(text: string | null): Kept {
  const fields = parsed(text);
  const { direct, name, encrypted, noticed, successor } = fields ?? {};
  return {
    ...(typeof direct === 'boolean' ? { direct } : {}),
    ...(name === null || typeof name === 'string' ? { name: textOf(name) } : {}),
    ...(encrypted === true ? { encrypted } : {}),
    ...(noticed === true ? { noticed } : {}),
    ...(typeof successor === 'string' ? { successor } : {}),
  };
}

function parsed(text: string | null): Fields | null {
  try {
    return text === null ? null : fieldsOf(JSON.parse(text));
  } catch {
    return null;
  }
}

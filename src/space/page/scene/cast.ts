import { FAREWELL, rowOf, VANISHING } from './motion.ts';
import { hash, variantOf } from './platforms.ts';
import type { SceneFarewell, SceneRoom, SceneSession, SceneWorld } from './port.ts';
import { Seats } from './seats.ts';

/** A session in the picture. */
export type Actor = ReturnType<typeof makeActor>;

function makeActor(session: SceneSession, area: Area, born: number, seen: number) {
  return {
    session,
    area,
    seat: -1,
    /** The row of the sheet. */
    row: rowOf(session.phase),
    offset: hash(session.id) % 8192,
    born,
    /** When it began to leave. */
    parted: 0,
    /** When it will be gone; null while it stays. */
    gone: null as number | null,
    reason: null as string | null,
    /** The picture of it that stands on the canvas; -1 when that is none, or not right any more. */
    drawn: -1,
    /** Which `show` has seen it last. */
    seen,
  };
}

/** The people of one platform in one room. */
export interface Area {
  readonly room: Room;
  readonly platform: string;
  readonly variant: number;
  readonly seats: Seats<Actor>;
  capacity: number;
  /** Since when it has been empty. */
  emptySince: number;
}

export interface Room {
  info: SceneRoom;
  readonly areas: Map<string, Area>;
}

/** What changes ask of the picture. */
export type Changes = ReturnType<typeof unchanged>;

const unchanged = () => ({
  /** There is not enough space, or far too much: every actor may have to move. */
  layout: false,
  /** All has to be painted again where it is. */
  repaint: false,
  /** Names and notes of rooms are others. */
  headings: false,
  actors: new Set<Actor>(),
  vacated: [] as { readonly area: Area; readonly seat: number }[],
});

export const isInhabited = ({ areas }: Room): boolean => [...areas.values()].some(({ seats }) => seats.count > 0);

const LEAST_CAPACITY = 3;
/** Space for those who come next, so that those who are there need not move. */
const roomFor = (count: number): number => Math.max(LEAST_CAPACITY, count + 1, Math.ceil(count * 1.1));
/** So many arrivals at once are a picture that is opened, not people who come. */
const CROWD = 150;
/** An area stays this long after its last actor has left. */
const KEPT_EMPTY = 15_000;
const ROOM_OF_STRAYS = 'elsewhere';
const ENDING = rowOf('ending');

/** Who stands where. Knows nothing of pixels. */
export class Cast {
  rooms: Room[] = [];
  readonly actors = new Map<string, Actor>();
  readonly leaving = new Set<Actor>();
  #shownRooms: readonly SceneRoom[] = [];
  #generation = 0;
  changes: Changes = unchanged();

  /** What has changed since it was last asked. */
  takeChanges(): Changes {
    const { changes } = this;
    this.changes = unchanged();
    return changes;
  }

  show(world: SceneWorld, now: number): void {
    this.#showRooms(world.rooms);
    const generation = ++this.#generation;
    const arrivals: SceneSession[] = [];
    let seen = 0;
    for (const session of world.sessions.values()) {
      const actor = this.actors.get(session.id);
      if (actor === undefined) {
        arrivals.push(session);
        continue;
      }
      actor.seen = generation;
      seen++;
      if (actor.session !== session) this.#change(actor, session, now);
    }
    if (seen < this.actors.size) this.#partFromUnseen(generation, now);
    const born = arrivals.length > CROWD ? Number.NEGATIVE_INFINITY : now;
    for (const session of arrivals) this.#arrive(session, born);
    this.#reconsiderSpace();
  }

  farewell({ id, reason }: SceneFarewell, now: number): void {
    const actor = this.actors.get(id);
    if (actor !== undefined) this.#part(actor, now, FAREWELL, reason);
  }

  /** Those whose time has come go, and their places are free. */
  dismiss(now: number): void {
    for (const actor of this.leaving) {
      if (actor.gone !== null && actor.gone > now) continue;
      this.#remove(actor, now);
    }
  }

  /** Areas that have long been empty make space for the others. */
  closeEmptyAreas(now: number): void {
    for (const { areas } of this.rooms)
      for (const { seats, emptySince } of areas.values())
        if (seats.count === 0 && now - emptySince > KEPT_EMPTY) this.changes.layout = true;
  }

  /** All actors get new seats, close together, with as much space as is needed now. */
  reseat(): void {
    for (const room of this.rooms)
      for (const area of room.areas.values()) {
        const present = area.seats.taken.filter((actor) => actor !== undefined);
        if (present.length === 0) {
          room.areas.delete(area.platform);
          continue;
        }
        if (present.length < area.seats.taken.length / 2) {
          for (const actor of present) area.seats.release(actor.seat);
          for (const actor of present) actor.seat = area.seats.take(actor);
        }
        area.capacity = Math.max(roomFor(present.length), area.seats.taken.length);
      }
  }

  #showRooms(shown: readonly SceneRoom[]): void {
    if (shown === this.#shownRooms) return;
    this.#shownRooms = shown;
    const before = new Map(this.rooms.map((room) => [room.info.id, room]));
    const rooms = shown.map((info): Room => before.get(info.id) ?? { info, areas: new Map() });
    rooms.forEach((room, index) => {
      const info = shown[index] as SceneRoom;
      if (room.info.live !== info.live) this.changes.repaint = true;
      else if (room.info.name !== info.name || room.info.note !== info.note) this.changes.headings = true;
      room.info = info;
    });
    // A gateway that is not shown any more keeps its room while a session is in it.
    for (const room of this.rooms) if (!rooms.includes(room) && isInhabited(room)) rooms.push(room);
    if (rooms.length !== this.rooms.length || rooms.some((room, index) => room !== this.rooms[index]))
      this.changes.layout = true;
    this.rooms = rooms;
  }

  #change(actor: Actor, session: SceneSession, now: number): void {
    if (session.room !== actor.area.room.info.id || session.platform !== actor.area.platform) {
      this.#remove(actor, now);
      this.#arrive(session, now);
      return;
    }
    actor.session = session;
    actor.row = rowOf(session.phase);
    actor.gone = null;
    actor.reason = null;
    actor.drawn = -1;
    this.leaving.delete(actor);
    this.changes.actors.add(actor);
  }

  #arrive(session: SceneSession, born: number): void {
    const area = this.#areaOf(session);
    const actor = makeActor(session, area, born, this.#generation);
    actor.seat = area.seats.take(actor);
    this.actors.set(session.id, actor);
    this.changes.actors.add(actor);
    // The first to come into an empty room takes the friendly word off its wall.
    if (area.seats.count === 1) this.changes.repaint = true;
  }

  #areaOf({ room: id, platform }: SceneSession): Area {
    let room = this.rooms.find((candidate) => candidate.info.id === id);
    if (room === undefined) {
      room = { info: { id, name: ROOM_OF_STRAYS, live: true, note: '' }, areas: new Map() };
      this.rooms.push(room);
      this.changes.layout = true;
    }
    let area = room.areas.get(platform);
    if (area === undefined) {
      area = { room, platform, variant: variantOf(platform), seats: new Seats(), capacity: 0, emptySince: 0 };
      room.areas.set(platform, area);
      this.changes.layout = true;
    }
    return area;
  }

  #partFromUnseen(generation: number, now: number): void {
    for (const actor of this.actors.values())
      if (actor.seen !== generation && actor.gone === null) this.#part(actor, now, VANISHING, null);
  }

  #part(actor: Actor, now: number, stay: number, reason: string | null): void {
    actor.parted = now;
    actor.gone = now + stay;
    actor.reason = reason;
    actor.row = ENDING;
    actor.drawn = -1;
    this.leaving.add(actor);
    this.changes.actors.add(actor);
  }

  #remove(actor: Actor, now: number): void {
    actor.area.seats.release(actor.seat);
    this.actors.delete(actor.session.id);
    this.leaving.delete(actor);
    this.changes.actors.delete(actor);
    this.changes.vacated.push({ area: actor.area, seat: actor.seat });
    if (actor.area.seats.count > 0) return;
    actor.area.emptySince = now;
    this.changes.repaint = true;
  }

  #reconsiderSpace(): void {
    let wasteful = 0;
    let needed = 0;
    for (const room of this.rooms)
      for (const area of room.areas.values()) {
        if (area.seats.taken.length > area.capacity) this.changes.layout = true;
        wasteful += area.capacity;
        needed += roomFor(area.seats.count);
      }
    if (wasteful > 3 * needed) this.changes.layout = true;
  }
}

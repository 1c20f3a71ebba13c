import { type GatewayView, PHASES, type SessionView } from '../protocol.ts';
import type { SceneRoom, SceneSession } from '../scene/port.ts';
import { plainLine } from './plain-text.ts';
import type { SourceView, WorldSession } from './world.ts';

/** A gateway as people see it, whichever source told of it. */
export interface Room {
  readonly id: string;
  readonly name: string;
  readonly state: string;
  readonly live: boolean;
  readonly note: string;
  readonly gateway: GatewayView | null;
  /** The source that is this gateway; null when it is known by hearsay only. */
  readonly source: SourceView | null;
}

const ALIVE: ReadonlySet<string> = new Set(['starting', 'ready', 'draining', 'up', 'unknown']);
/** A gateway lost longer ago than this is shown only when sessions are still in its room. */
const LOST_SHOWN_MS = 120_000;

/** All gateways of all sources, each once, and sources that never said who they are. */
export function roomsOf(sources: readonly SourceView[], inhabited: ReadonlySet<string>, now: number): Room[] {
  const rooms = new Map<string, Room>();
  // Those that speak for themselves first, then hearsay from those that live.
  for (const source of sources) {
    const self = source.gateways.find((one) => one.self);
    if (self !== undefined) rooms.set(self.id, roomOfSource(source, self));
    else rooms.set(source.source.id, roomOfSource(source, null));
  }
  for (const source of [...sources].sort((a, b) => Number(b.state === 'live') - Number(a.state === 'live'))) {
    for (const gateway of source.gateways) {
      const known = rooms.get(gateway.id);
      if (known === undefined) rooms.set(gateway.id, roomByHearsay(source, gateway));
      else if (!known.live && source.state === 'live' && ALIVE.has(gateway.state) && !gateway.self) {
        const note = `${gateway.state} says ${nameOf(source)}; not reached from here: ${known.note}`;
        rooms.set(gateway.id, { ...known, live: true, state: gateway.state, note });
      }
    }
  }
  const all = [...rooms.values()];
  return all.filter((room) => room.live || room.source !== null || inhabited.has(room.id) || isFresh(room, all, now));
}

/** Lost a moment ago, and no successor of the same name has come. */
function isFresh({ gateway, id }: Room, all: readonly Room[], now: number): boolean {
  if (gateway === null || gateway.state === 'stopped') return false;
  const heard = Date.parse(gateway.last_heartbeat_at ?? '');
  const succeeded = all.some(
    (one) => one.id !== id && one.live && one.gateway?.name === gateway.name && one.gateway?.host === gateway.host,
  );
  return !succeeded && now - heard < LOST_SHOWN_MS;
}

function roomOfSource(source: SourceView, self: GatewayView | null): Room {
  const { state, why } = source;
  const live = state === 'live';
  return {
    id: self?.id ?? source.source.id,
    name: nameOf(source),
    state: live ? (self?.state ?? 'live') : state,
    live,
    note: live ? (self?.state ?? 'live') : state === 'connecting' ? 'connecting' : why,
    gateway: self,
    source,
  };
}

/** What a source is called: an address says less than the name that the gateway at it has. */
export function nameOf({ source, gateways }: Pick<SourceView, 'source' | 'gateways'>): string {
  const self = gateways.find((one) => one.self);
  const isAddress = /^\S+:\d+$/.test(source.name);
  return (isAddress ? self?.name : null) || source.name || self?.name || self?.host || 'gateway';
}

function roomByHearsay(source: SourceView, gateway: GatewayView): Room {
  const live = source.state === 'live' && ALIVE.has(gateway.state);
  const note = source.state === 'live' ? gateway.state : `${gateway.state}, when last heard`;
  const name = gateway.name ?? (gateway.host === '' ? gateway.id : `${gateway.host} ${gateway.pid || ''}`.trim());
  return { id: gateway.id, name, state: gateway.state, live, note, gateway, source: null };
}

export function sceneRoom({ id, name, live, note }: Room): SceneRoom {
  return { id, name: plainLine(name), live, note: plainLine(note) };
}

export function sceneSession({ view, room }: WorldSession): SceneSession {
  const { id, platform, tool } = view;
  // A phase of another version is drawn like one that rests; its word stands in the table.
  const phase = PHASES.find((known) => known === view.phase) ?? 'idle';
  return { id, room, platform, phase, tool, label: labelOf(view) };
}

const labels = new WeakMap<object, string>();

/** What a session is called in one line. Remembered: a table of ten thousand is sorted by it many times. */
export function labelOf(session: Named): string {
  const known = labels.get(session);
  if (known !== undefined) return known;
  const { title, key, user, id } = session;
  // All keys begin alike.
  const shortKey = key.replace(/^agent:main:/, '');
  const label = plainLine(title || shortKey || user || id) || id;
  labels.set(session, label);
  return label;
}

type Named = Pick<SessionView, 'id' | 'key' | 'title'> & Partial<Pick<SessionView, 'user'>>;

import type { Connection } from '../connection.ts';
import type { KeptCursor } from '../cursor.ts';
import { SendFailure } from '../platform.ts';
import { ApiError, type MatrixApi } from './api.ts';
import { EVENT_TYPES } from './parse.ts';
import { parseSync, type SyncBatch } from './parse-sync.ts';
import type { Reception } from './reception.ts';

const WAIT_MS = 30_000;
const MARGIN_MS = 30_000;
/** Of one room in one answer; what is more is asked for room by room. */
const MOST_EVENTS = 50;
const BEGUN = 'begun';

export interface SyncDeps {
  readonly api: MatrixApi;
  readonly self: string;
  readonly connection: Connection;
  readonly reception: Reception;
  readonly cursor: KeptCursor;
  readonly signal: AbortSignal;
}

interface Position {
  /** Null: the server is asked for what is newest. */
  readonly since: string | null;
  /** When the account was connected for the first time; null if it was not yet. */
  readonly begun: number | null;
}

/** Asks what is new until the signal ends it or there is no use in asking. */
export async function followSync(deps: SyncDeps): Promise<void> {
  const { connection, reception, signal } = deps;
  let position = await connection.keepTrying(() => recallPosition(deps), signal);
  let isHealthy = false;
  let most = MOST_EVENTS;
  while (position !== null && !signal.aborted) {
    await reception.hasRoom();
    if (signal.aborted) return;
    try {
      // After trouble the first question is a short one: it shows at once whether all is well.
      const batch = await ask(deps, position.since, isHealthy ? WAIT_MS : 0, most);
      position = await take(deps, batch, position);
      connection.succeeded();
      isHealthy = true;
      most = MOST_EVENTS;
    } catch (thrown) {
      if (signal.aborted) return;
      isHealthy = false;
      if (isForgotten(thrown) && position.since !== null) {
        deps.api.runtime.warn(
          'the server does not know the position any more; what was missed is asked for by room',
          {},
        );
        position = { ...position, since: null };
        continue;
      }
      if (thrown instanceof SendFailure && thrown.kind === 'too_large' && most > 1) {
        most = Math.ceil(most / 10);
        continue;
      }
      if ((await connection.failed(thrown, signal)).phase === 'failed') return;
    }
  }
}

async function recallPosition({ api, cursor }: SyncDeps): Promise<Position> {
  const begun = Number((await api.runtime.recall(BEGUN)) ?? Number.NaN);
  const since = await cursor.read();
  if (Number.isSafeInteger(begun)) return { since, begun };
  return { since, begun: since === null ? null : api.runtime.now() };
}

/** Hands on what was brought, once it is certain that it is not history. Returns where to go on. */
async function take(deps: SyncDeps, batch: SyncBatch, { since, begun }: Position): Promise<Position> {
  const { reception, cursor, api } = deps;
  if (begun !== null) {
    reception.take(batch, { since, begun });
    return { since: batch.next, begun };
  }
  // The very first time. From here on nothing is lost, so this is kept before anything else is done.
  const now = api.runtime.now();
  cursor.moveTo(batch.next);
  await cursor.flush();
  await api.runtime.keep(BEGUN, String(now));
  // What the rooms are is learned; what was said in them is history.
  const rooms = batch.rooms.map((piece) => ({
    ...piece,
    state: [...piece.state, ...piece.events],
    events: [],
    behind: null,
  }));
  reception.take({ ...batch, rooms }, FIRST);
  return { since: batch.next, begun: now };
}

const FIRST = { since: null, begun: 0 };

async function ask(deps: SyncDeps, since: string | null, waitMs: number, most: number): Promise<SyncBatch> {
  const { api, self, signal } = deps;
  const filter = JSON.stringify(filterOf(most));
  const query = { since, filter, timeout: String(waitMs), set_presence: 'offline' };
  const answer = await api.call('/_matrix/client/v3/sync', signal, { query, ms: waitMs + MARGIN_MS });
  const batch = parseSync(answer, self);
  if (batch !== null) return batch;
  throw new ApiError(200, '', 'the answer to a sync has no position to go on from');
}

/** The server sends nothing that we do not know. */
function filterOf(most: number) {
  const none = { types: [] };
  return {
    presence: none,
    account_data: { types: ['m.direct'] },
    room: {
      ephemeral: none,
      account_data: none,
      state: {
        types: ['m.room.member', 'm.room.name', 'm.room.encryption'],
        lazy_load_members: true,
        include_redundant_members: true,
      },
      timeline: { types: EVENT_TYPES, limit: most, lazy_load_members: true },
    },
  };
}

/** A position that is refused once is refused for good. */
function isForgotten(thrown: unknown): boolean {
  return thrown instanceof ApiError && (thrown.code === 'M_UNKNOWN_POS' || thrown.status === 400);
}

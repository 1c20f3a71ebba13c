import type { Connection } from '../connection.ts';
import type { KeptCursor } from '../cursor.ts';
import { pause } from '../deadline.ts';
import { SendFailure } from '../platform.ts';
import { ApiError, type MatrixApi } from './api.ts';
import { EVENT_TYPES } from './parse.ts';
import { parseSync, type RoomPiece, type SyncBatch } from './parse-sync.ts';
import type { Reception } from './reception.ts';
import { waitToRetry } from './retry.ts';

const WAIT_MS = 30_000;
const MARGIN_MS = 30_000;
const IMPATIENT_MS = 2000;
/** Of one room in one answer; what is more is asked for room by room. */
const MOST_EVENTS = 50;

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
  /** The account was never connected before: what is there is history. */
  readonly isFirst: boolean;
}

/** Asks what is new until the signal ends it or there is no use in asking. */
export async function followSync(deps: SyncDeps): Promise<void> {
  const { connection, reception, signal } = deps;
  const { runtime } = deps.api;
  let position = await recallPosition(deps);
  let isHealthy = false;
  let most = MOST_EVENTS;
  while (position !== null && !signal.aborted) {
    await reception.hasRoom();
    if (signal.aborted) return;
    try {
      // After trouble the first question is a short one: it shows at once whether all is well.
      const waitMs = isHealthy ? WAIT_MS : 0;
      const askedAt = runtime.now();
      const batch = await ask(deps, position.since, waitMs, position.isFirst ? 1 : most);
      const isNothing = batch.next === position.since;
      position = await take(deps, batch, position);
      connection.succeeded();
      isHealthy = true;
      most = MOST_EVENTS;
      // A server that does not wait although it is asked to would be asked without a pause.
      if (isNothing && waitMs > runtime.now() - askedAt) await pause(runtime, IMPATIENT_MS, signal);
    } catch (thrown) {
      if (signal.aborted) return;
      isHealthy = false;
      if (isForgotten(thrown) && position.since !== null) {
        deps.api.runtime.warn(
          'the server does not know the position any more; what was missed is asked for by room',
          {},
        );
        position = { since: null, isFirst: false };
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

/** Null when all is over. */
async function recallPosition({ cursor, api, signal }: SyncDeps): Promise<Position | null> {
  for (let tries = 1; !signal.aborted; tries += 1) {
    try {
      const since = await cursor.read();
      return { since, isFirst: since === null };
    } catch (thrown) {
      api.runtime.warn('the position was not read and will be read again', { error: String(thrown) });
      await waitToRetry(api.runtime, tries, signal);
    }
  }
  return null;
}

/** Hands on what was brought. Returns where to go on. */
async function take(
  { reception, cursor }: SyncDeps,
  batch: SyncBatch,
  { since, isFirst }: Position,
): Promise<Position> {
  if (!isFirst) reception.take(batch, since);
  else {
    // From here on nothing is lost, so this is kept before anything else is done.
    await reception.begin(batch);
    cursor.moveTo(batch.next);
    await cursor.flush();
    reception.take({ ...batch, rooms: batch.rooms.map(withoutHistory) }, since);
  }
  return { since: batch.next, isFirst: false };
}

/** What a room is, without what was said there. */
function withoutHistory(piece: RoomPiece): RoomPiece {
  return { ...piece, state: [...piece.state, ...piece.events], events: [], behind: null };
}

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

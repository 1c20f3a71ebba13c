import type { Engine } from '../engine/engine.ts';
import { isParked, type SessionWithTurns, type Turn } from '../lifecycle/session.ts';
import type { Pieces } from './pieces.ts';
import { giveUpStale, noteForResumed } from './resumed-turn.ts';
import type { TurnsOptions } from './turn-deps.ts';

/** Of the turns behind the next one, those that may be pieces of the same message. */
const LOOK_AHEAD = 50;

export interface NextTurnDeps extends Pick<TurnsOptions, 'admits' | 'notice'> {
  readonly engine: Engine;
  readonly pieces: Pieces;
  /** A turn was settled without being run: those who wait for it look again. */
  readonly settled: (turnId: string) => void;
}

export type NextTurn =
  /** It runs, here; `note` is what the agent is told about a turn that was interrupted before. */
  | { readonly type: 'begun'; readonly loaded: SessionWithTurns; readonly turn: Turn; readonly note: string | null }
  /** Another turn may be next now, in this session. */
  | { readonly type: 'again'; readonly sessionId: string };

/** Begins the oldest turn of a session; null if there is none, or it is not this instance's to begin. */
export async function beginNext(sessionId: string, deps: NextTurnDeps): Promise<NextTurn | null> {
  const { engine, notice, settled } = deps;
  const again: NextTurn = { type: 'again', sessionId };
  const session = await engine.store.read('getSession', { sessionId });
  if (session === null || session.state === 'ended' || isParked(session)) return null;
  if (session.owner !== null && session.owner !== engine.instance) return null;
  const [next, ...behind] = await engine.store.read('openTurns', { sessionId, limit: LOOK_AHEAD });
  if (next === undefined) return null;
  const rolled = session.state === 'open' ? null : await engine.rollOver(sessionId);
  if (rolled !== null) return { type: 'again', sessionId: rolled.session.id };
  if (!(await deps.admits(session, next))) {
    // Whoever wrote it was shut out meanwhile: it is over, and nobody is told.
    await engine.dropTurn(sessionId, next.id, 'failed', 'access_revoked');
    settled(next.id);
    return again;
  }
  if (next.state === 'queued') await joinPieces(sessionId, next, behind, deps);
  if (next.state === 'cut' && (await giveUpStale(engine, notice, sessionId)) > 0) {
    settled(next.id);
    return again;
  }
  const note = next.state === 'cut' ? await noteForResumed(engine.store, session, next, behind.length > 0) : null;
  const loaded = await engine.begin(sessionId, next.id);
  const turn = loaded.turns.find(({ id }) => id === next.id);
  return turn?.state === 'running' ? { type: 'begun', loaded, turn, note } : null;
}

/** What came in pieces right behind a message becomes part of it. */
async function joinPieces(sessionId: string, first: Turn, behind: readonly Turn[], deps: NextTurnDeps): Promise<void> {
  const pieces = deps.pieces.takeBehind(sessionId, first, behind);
  if (pieces.length === 0) return;
  await deps.engine.join(sessionId, first.id, pieces);
  for (const id of pieces) deps.settled(id);
}

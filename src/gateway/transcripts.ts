import type { Engine } from '../engine/engine.ts';
import type { Session } from '../lifecycle/session.ts';
import type { Message } from '../store/transactions/messages.ts';

/** The last choice somebody made with /model. */
export function chosenModel(transcript: readonly Message[]): string | null {
  const model = transcript.findLast((row) => row.role === 'setting' && row.data?.model !== undefined)?.data?.model;
  return typeof model === 'string' ? model : null;
}

/** What a session was told of memory at its first turn: null for nothing, undefined as long as it had none. */
export function toldOfMemory(transcript: readonly Message[], sessionId: string): string | null | undefined {
  const own = transcript.filter((row) => row.sessionId === sessionId);
  const block = own.find((row) => row.role === 'setting' && row.data?.memory !== undefined)?.data?.memory;
  if (typeof block === 'string') return block;
  // What a client says was said before has no turn.
  return own.some(({ role, turnId }) => role === 'user' && turnId !== null) ? null : undefined;
}

/** What was said in a session, behind what was said in those it continues. */
export class Transcripts {
  readonly #engine: Engine;

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async of(session: Session): Promise<readonly Message[]> {
    const continues = session.lineage === 'resume' || session.lineage === 'branch';
    // A fresh session has nothing behind it, and most are asked for the first time then.
    if (!continues && session.messageCount === 0) return [];
    return Array.fromAsync(this.#engine.transcript(session.id, continues ? 'all' : 'own'));
  }

  /** The model somebody chose for this conversation. */
  async chosenModel(session: Session): Promise<string | null> {
    return chosenModel(await this.of(session));
  }

  /** What stands of a session's own transcript: without what was taken back. */
  async withoutUndone(sessionId: string): Promise<readonly Message[]> {
    const rows = await Array.fromAsync(this.#engine.transcript(sessionId));
    let kept: Message[] = [];
    for (const row of rows) {
      const from = row.role === 'undo' ? Number(row.data?.from) : null;
      if (from === null) kept.push(row);
      else kept = kept.filter((other) => other.sessionId !== row.sessionId || other.position < from);
    }
    return kept;
  }
}

import { AgentCache } from '../agent/agent-cache.ts';
import { isUndoneBy } from '../agent/transcript.ts';
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

/** Rows never change, so that of a transcript which was read a moment ago only the newest have to be. */
interface Remembered {
  readonly rows: readonly Message[];
  readonly bytes: number;
}

const MEMORY = { maxSize: 1000, idleTtlMs: 600_000, maxBytes: 16 * 1024 * 1024 } as const;
/** To read a long one again is nothing beside sending it, and a few of them would be all there is room for. */
const LONGEST_REMEMBERED = 256 * 1024;
/** What a turn adds is a few rows; where more are missing, all are read. */
const NEWEST = 50;

/** What was said in a session, behind what was said in those it continues. */
export class Transcripts {
  readonly #engine: Engine;
  readonly #remembered = new AgentCache<Remembered>(MEMORY);

  constructor(engine: Engine) {
    this.#engine = engine;
  }

  async of(session: Session): Promise<readonly Message[]> {
    const continues = session.lineage === 'resume' || session.lineage === 'branch';
    if (continues) return Array.fromAsync(this.#engine.transcript(session.id, 'all'));
    // A fresh session has nothing behind it, and most are asked for the first time then.
    const known = this.#remembered.get(session.id, '') ?? (session.messageCount === 0 ? NOTHING : null);
    const newest = known === null ? null : await this.#newest(session, known);
    if (known !== null && newest !== null) return this.#remember(session.id, known, newest);
    const all = await Array.fromAsync(this.#engine.transcript(session.id, 'own'));
    return this.#remember(session.id, NOTHING, all);
  }

  /** The rows that are not known yet; null when they are too many. */
  async #newest({ id, messageCount }: Session, { rows }: Remembered): Promise<readonly Message[] | null> {
    if (messageCount === 0) return [];
    const after = rows.at(-1)?.position ?? 0;
    const newest = await this.#engine.store.read('listMessages', { sessionId: id, after, limit: NEWEST });
    return (newest.at(-1)?.position ?? after) < messageCount || newest.length === NEWEST ? null : newest;
  }

  #remember(sessionId: string, known: Remembered, added: readonly Message[]): readonly Message[] {
    const rows = known.rows.length === 0 ? added : [...known.rows, ...added];
    const bytes = known.bytes + added.reduce((sum, row) => sum + bytesOf(row), 0);
    this.#remembered.sweep(Date.now());
    if (bytes > LONGEST_REMEMBERED) this.#remembered.delete(sessionId);
    else this.#remembered.set(sessionId, '', { rows, bytes }, bytes);
    return rows;
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
      if (row.role === 'undo') kept = kept.filter((other) => !isUndoneBy(other, row));
      else kept.push(row);
    }
    return kept;
  }
}

const NOTHING: Remembered = { rows: [], bytes: 0 };

/** Two bytes a character and some for each object: an upper bound rather than a guess. */
function bytesOf({ text, data }: Message): number {
  return 400 + 2 * text.length + (data === null ? 0 : 2 * JSON.stringify(data).length);
}

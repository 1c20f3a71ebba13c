import type { Engine } from '../engine/engine.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { isStoreTrouble } from '../queue/retry-until-known.ts';
import type { Notice } from './resumed-turn.ts';
import { failureText } from './texts.ts';

/** What fails so often for a reason that does not pass is given up. */
const MOST_FAILURES = 3;

/** Counts how often the next turn of a session could not be begun, and passes over one that never can be. */
export class FailedStarts {
  readonly #engine: Engine;
  readonly #notice: Notice;
  readonly #failures = new Map<string, number>();

  constructor(engine: Engine, notice: Notice) {
    this.#engine = engine;
    this.#notice = notice;
  }

  /** A turn of the session was begun. */
  forget(sessionId: string): void {
    this.#failures.delete(sessionId);
  }

  /** The id of the turn that was given up, and told to its person; null when it is to be tried again. */
  async note(sessionId: string, thrown: unknown): Promise<string | null> {
    const error = MoiraiError.wrap(thrown);
    if (isPassing(error)) return null;
    const failures = (this.#failures.get(sessionId) ?? 0) + 1;
    this.#failures.set(sessionId, failures);
    if (failures < MOST_FAILURES) return null;
    // A try of the same turn may still be under way: its failure must not count against the turn behind it.
    this.#failures.delete(sessionId);
    return this.#giveUp(sessionId, failures, error).catch(() => {
      // What the store does not take now is given up after the next failure.
      this.#failures.set(sessionId, failures);
      return null;
    });
  }

  async #giveUp(sessionId: string, attempts: number, { code, message }: MoiraiError): Promise<string | null> {
    const { store } = this.#engine;
    const session = await store.read('getSession', { sessionId });
    const [turn] = await store.read('openTurns', { sessionId, limit: 1 });
    if (session === null || turn === undefined) return null;
    const { id: turnId } = turn;
    const said = (await store.read('turnText', { turnId })) ?? '';
    const response = failureText(code, message);
    const result = { outcome: 'failed', response, model: null, usage: null } as const;
    const messages = [{ role: 'user', text: said, turnId }];
    const deliveries = this.#notice(session, response, `${turnId}:set_aside`);
    await this.#engine.settle((context) =>
      store.write('finishTurn', {
        ...{ context, sessionId, turnId, epoch: null, result, error: code, messages, deliveries },
      }),
    );
    const fields = { work: 'turn', id: turnId, attempts, error: message } as const;
    await this.#engine.announce({ type: 'work:set_aside', fields });
    return turnId;
  }
}

function isPassing(error: MoiraiError): boolean {
  if (error.code === 'lease_lost' || error.code === 'draining') return true;
  return isStoreTrouble(error) && error.code !== 'internal' && error.code !== 'store_corrupt';
}

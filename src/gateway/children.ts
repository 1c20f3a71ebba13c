import { randomUUID } from 'node:crypto';
import type { Engine } from '../engine/engine.ts';
import type { Session } from '../lifecycle/session.ts';
import { keyFor, parseKey } from '../lifecycle/session-key.ts';
import type { Logger } from '../log/logger.ts';
import type { Party } from '../store/transactions/conversations.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';
import type { Turns } from './turns.ts';

export interface ChildrenDesk {
  readonly engine: Engine;
  readonly turns: Turns;
  readonly log: Logger;
  /** Tells the conversation of a session something. */
  readonly tell: (session: Session, text: string, id: string) => Promise<void>;
}

/** Sessions that work for another one: they see nothing of it, answer it, and live no longer than it. */
export class Children {
  readonly #desk: ChildrenDesk;

  constructor(desk: ChildrenDesk) {
    this.#desk = desk;
  }

  /** Has something done and waits for it. */
  async delegate(parent: Session, text: string, signal: AbortSignal): Promise<string> {
    const { session, over } = await this.#begin(parent, text);
    const stop = (): void => void this.#desk.turns.stop(session.id, { type: 'told', by: 'stop' });
    signal.addEventListener('abort', stop, { once: true });
    try {
      return await this.#finish(session, await over);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /** Has something done beside the conversation, which is told when it is done. Returns the child's id. */
  async spawn(parent: Session, text: string): Promise<string> {
    const { session, over } = await this.#begin(parent, text);
    over
      .then(async (turn) => {
        const answer = await this.#finish(session, turn);
        await this.#desk.tell(parent, `Done beside this conversation: ${text}\n\n${answer}`, `${session.id}:answer`);
      })
      .catch((error: unknown) => this.#desk.log.warn('background work was not told', { session: session.id, error }));
    return session.id;
  }

  async #begin(parent: Session, text: string): Promise<{ session: Session; over: Promise<TurnResultRow | null> }> {
    const party = childParty(parent);
    const { engine, turns } = this.#desk;
    await engine.start(party, { parentId: parent.id, lineage: 'spawn', title: text.slice(0, 80) });
    const { session, turn } = await turns.receive(
      { party, text, originRef: null, by: 'system' },
      { mode: 'queue', uncapped: true },
    );
    return { session, over: turns.ends.wait(turn.id) };
  }

  async #finish(session: Session, turn: TurnResultRow | null): Promise<string> {
    if (turn === null) return 'It was interrupted before it was done.';
    const done = turn.outcome === 'done';
    await this.#desk.engine.end(session.id, { reason: done ? 'batch_complete' : 'batch_failed', trigger: 'process' });
    return turn.response ?? 'There was no answer.';
  }
}

function childParty(parent: Session): Party {
  const { profile, platform } = parseKey(parent.key);
  const key = keyFor(
    { profile, platform, type: 'dm', chat: `child-${randomUUID()}` },
    { groupPerUser: true, threadPerUser: false },
  );
  return { key, kind: 'child', platform: parent.platform, userId: parent.userId, origin: null, attached: true };
}

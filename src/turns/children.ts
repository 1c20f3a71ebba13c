import { randomUUID } from 'node:crypto';
import type { Engine } from '../engine/engine.ts';
import type { Origin, Session } from '../lifecycle/session.ts';
import { keyFor, parseKey } from '../lifecycle/session-key.ts';
import type { Logger } from '../log/logger.ts';
import type { Store } from '../store/port.ts';
import type { ConversationRef } from '../store/transactions/conversations.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';
import { BACKGROUND_CUT_TEXT, besideNote, besideText } from './texts.ts';
import type { Turns } from './turns.ts';

export interface ChildrenDeps {
  readonly engine: Engine;
  readonly turns: Turns;
  readonly log: Logger;
  /** Tells the conversation of a session something. */
  readonly tell: (session: Session, text: string, id: string) => Promise<void>;
  /** What that would be in the outbox. */
  readonly notice: (session: Session, text: string, id: string) => readonly DeliveryToMake[];
}

/**
 * Sessions that work for another one: they see nothing of it and answer it. What a turn waits for lives no longer than
 * the session of that turn; what is done beside a conversation does, since the conversation is told.
 */
export class Children {
  readonly #deps: ChildrenDeps;

  constructor(deps: ChildrenDeps) {
    this.#deps = deps;
  }

  /** Has something done and waits for it. */
  async delegate(parent: Session, userId: string | null, text: string, signal: AbortSignal): Promise<string> {
    const { session, over } = await this.#begin(parent, userId, text);
    const stop = (): void => void this.#deps.turns.stop(session.id, { type: 'told', by: 'stop' });
    signal.addEventListener('abort', stop, { once: true });
    try {
      return await this.#finish(session, await over);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  }

  /**
   * Has something done beside the conversation, which is told when it is done, also when the session that asked has ended
   * by then. Returns the child's id. The end of the child is what tells them, whoever ends it; a terminal, which dies with
   * its child, hears it from its own process.
   */
  async spawn(parent: Session, userId: string | null, text: string): Promise<string> {
    const { session, over } = await this.#begin(parent, userId, text, { background: text });
    over
      .then(async (turn) => {
        await this.#finish(session, turn);
        if (parent.kind === 'cli') await this.#tellHere(parent, resultText(text, turn), `${session.id}:answer`);
      })
      .catch((error: unknown) =>
        this.#deps.log.warn('background work was not settled', { session: session.id, error }),
      );
    return session.id;
  }

  /** A child has ended, here or elsewhere: whoever wanted it done beside the conversation is told. */
  async ended(child: Session, eventId: string): Promise<void> {
    const task = child.origin?.background;
    if (typeof task !== 'string' || child.parentId === null || child.endReason === 'parent_ended') return;
    const { engine, notice } = this.#deps;
    const parent = await engine.store.read('getSession', { sessionId: child.parentId });
    if (parent === null || parent.kind === 'cli') return;
    const turn = await engine.store.read('turnByRef', { originRef: refOf(child) });
    const text = resultText(task, turn);
    const id = `${eventId}:answer`;
    await engine.store.write('addExternalNote', {
      ...{ context: engine.commandContext(), sessionId: child.id, id, deliveries: notice(parent, text, id) },
      ...{ key: parent.key, note: besideNote(child.userId, task, answerOf(turn), turn?.outcome === 'done') },
    });
  }

  /** The session that asked may have been replaced by another one of its terminal. */
  async #tellHere(parent: Session, text: string, id: string): Promise<void> {
    const { engine, tell } = this.#deps;
    const open = await engine.store.read('openSession', { key: parent.key });
    await tell(open ?? parent, text, id);
  }

  async #begin(
    parent: Session,
    userId: string | null,
    text: string,
    origin: Origin = null,
  ): Promise<{ session: Session; over: Promise<TurnResultRow | null> }> {
    const conversation = { ...childConversation(parent), userId, origin };
    const { engine, turns } = this.#deps;
    const started = await engine.start(conversation, {
      parentId: parent.id,
      lineage: 'spawn',
      title: text.slice(0, 80),
    });
    const message = { conversation, text, originRef: refOf(started), by: 'system' } as const;
    const { session, turn } = await turns.receive(message, { mode: 'queue', uncapped: true });
    return { session, over: turns.channels.open(turn.id).ended };
  }

  async #finish(session: Session, turn: TurnResultRow | null): Promise<string> {
    if (turn === null) return answerOf(turn);
    const done = turn.outcome === 'done';
    const reason = done ? 'batch_complete' : 'batch_failed';
    const { engine } = this.#deps;
    await engine.settle((context) => engine.end(session.id, { reason, trigger: 'process' }, context));
    return answerOf(turn);
  }
}

/** Names the one turn of a child. */
function refOf({ id }: Session): string {
  return `child:${id}`;
}

function resultText(task: string, turn: TurnResultRow | null): string {
  return besideText(task, answerOf(turn), turn?.outcome === 'done');
}

function answerOf(turn: TurnResultRow | null): string {
  if (turn === null || turn.outcome === null || turn.outcome === 'interrupted') return BACKGROUND_CUT_TEXT;
  return turn.response ?? 'There was no answer.';
}

function childConversation(parent: Session): ConversationRef {
  const { profile, platform, scope } = parseKey(parent.key);
  const key = keyFor(
    { profile, platform, type: 'dm', scope, chat: `child-${randomUUID()}` },
    { groupPerUser: true, threadPerUser: false },
  );
  return { key, kind: 'child', platform: parent.platform, userId: null, origin: null, attached: true };
}

/** The session that a child works for, which may be a child itself: a child has no more rights than its parent. */
export async function sessionServed(store: Store, sessionId: string): Promise<Session> {
  let session = await store.read('findSession', { idOrPrefix: sessionId });
  while (session.kind === 'child' && session.parentId !== null) {
    session = await store.read('findSession', { idOrPrefix: session.parentId });
  }
  return session;
}

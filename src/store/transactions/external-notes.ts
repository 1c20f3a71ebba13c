import { integer, selectValues, Table, text } from '../table.ts';
import { batch, query, type Tx, type TxContext } from '../transaction.ts';
import { apply } from './apply.ts';
import { type DeliveryToMake, deliveryRows } from './deliveries.ts';
import { appendCommand, type MessageToAppend, messageRows } from './messages.ts';
import { type CommandContext, enterSession, lockKey, openSessionQuery } from './sessions.ts';

/*
 * What is said in a conversation from outside it. Who answers it means it, so the agent must know of it: the open session
 * has it in its transcript at once, and as long as nobody has written since, the next session begins with it as well. A
 * session may end between the telling and the answer.
 */

export interface ExternalNoteArgs {
  readonly context: CommandContext;
  /** The session that has something to say: the delivery is its own. */
  readonly sessionId: string;
  /** Names it: told twice it is told once. */
  readonly id: string;
  /** What is sent, in its parts, the first under the id above; none where people look for themselves. */
  readonly deliveries: readonly DeliveryToMake[];
  /** The conversation that is to know of it. */
  readonly key: string | null;
  /** As the agent of that conversation is told. */
  readonly note: string;
}

/** Says something to a conversation: on its way out and known to the agent there, or neither. False if it was before. */
export function* addExternalNote(ctx: TxContext, args: ExternalNoteArgs): Tx<boolean> {
  const { context, sessionId, id, deliveries, key, note } = args;
  const { scope, loaded: teller } = yield* enterSession(ctx, context, sessionId);
  const before = yield* selectValues(
    text,
    'SELECT id FROM deliveries WHERE id = ? UNION ALL SELECT delivery_id FROM told WHERE delivery_id = ?',
    id,
    id,
  );
  if (before.length > 0) return false;
  if (deliveries.length > 0) yield deliveryRows(ctx, teller.session, null, deliveries);
  if (key === null) return true;
  // Whoever starts a session there holds the same lock: it sees the row below, or this sees the session.
  yield* lockKey(ctx, key);
  yield* keep(ctx, id, key, note);
  const [loaded] = yield* batch(openSessionQuery(ctx, key));
  if (loaded === undefined) return true;
  const messages = [noteOf(note)];
  yield* apply(ctx, scope, loaded, appendCommand(messages, null), {
    rows: () => messageRows(ctx, loaded.session, loaded.session.messageCount, messages),
  });
  return true;
}

const TOLD = new Table('told', { deliveryId: text, sessionKey: text, text, at: integer });

/** Nobody reads more than the newest of what piled up unanswered. */
const KEPT = 20;

function* keep(ctx: TxContext, id: string, key: string, note: string): Tx<void> {
  yield [TOLD.insert({ deliveryId: id, sessionKey: key, text: note, at: ctx.now })];
  yield* query(
    `DELETE FROM told WHERE session_key = ? AND no NOT IN (
       SELECT no FROM told WHERE session_key = ? ORDER BY no DESC LIMIT ${KEPT}
     )`,
    ...[key, key],
  );
}

/** What a session that starts now has to know of: told since somebody wrote there last. It is kept no longer. */
export function* takeUnanswered(_ctx: TxContext, key: string): Tx<MessageToAppend[]> {
  const notes = yield* TOLD.select('WHERE session_key = ? ORDER BY no', key);
  if (notes.length === 0) return [];
  yield* query('DELETE FROM told WHERE session_key = ?', key);
  const [answeredAt = Number.NEGATIVE_INFINITY] = yield* selectValues(
    integer,
    'SELECT last_activity_at FROM sessions WHERE key = ? ORDER BY started_at DESC, id DESC LIMIT 1',
    key,
  );
  return notes.filter(({ at }) => at > answeredAt).map((told) => noteOf(told.text));
}

function noteOf(body: string): MessageToAppend {
  return { role: 'note', text: body, turnId: null };
}

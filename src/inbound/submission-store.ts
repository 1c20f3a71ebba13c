import type { Command } from '../lifecycle/commands.ts';
import { selectValues, text } from '../store/table.ts';
import type { Tx, TxContext } from '../store/transaction.ts';
import { applyStart, type ConversationRef, startCommand } from '../store/transactions/conversations.ts';
import { type DeliveryToMake, deliveryRows } from '../store/transactions/deliveries.ts';
import { appendCommand, type MessageToAppend, messageRows } from '../store/transactions/messages.ts';
import { type CommandContext, enterKey } from '../store/transactions/sessions.ts';

export interface ForwardArgs {
  readonly context: CommandContext;
  /** Its own: no other submission has the key. */
  readonly conversation: ConversationRef;
  readonly newSessionId: string;
  readonly text: string;
  readonly deliveries: readonly DeliveryToMake[];
  /** For so long the same key is the same submission. */
  readonly ttlMs: number;
}

/**
 * Sends on what a program submitted, without an agent: a session that starts, has its words and ends, and what is on its
 * way, in one transaction.
 */
export function* forwardSubmission(
  ctx: TxContext,
  args: ForwardArgs,
): Tx<{ readonly sessionId: string; readonly duplicate: boolean }> {
  const { conversation, newSessionId, deliveries } = args;
  const { scope } = yield* enterKey(ctx, args.context, conversation.key);
  const [known] = yield* selectValues(
    text,
    'SELECT id FROM sessions WHERE key = ? AND started_at > ? ORDER BY started_at DESC, id DESC LIMIT 1',
    conversation.key,
    ctx.now - args.ttlMs,
  );
  if (known !== undefined) return { sessionId: known, duplicate: true };
  const messages: MessageToAppend[] = [{ role: 'user', text: args.text, turnId: null }];
  const end: Command = {
    ...{ name: 'end', reason: 'webhook_complete', trigger: 'api' },
    ...{ cause: null, successorId: null, epoch: null },
  };
  const commands = [...appendCommand(messages, null), end];
  yield* applyStart(ctx, scope, startCommand(newSessionId, conversation), commands, {
    rows: ({ session }) => [
      ...messageRows(ctx, session, session.messageCount - messages.length, messages),
      ...deliveryRows(ctx, session, null, deliveries),
    ],
  });
  return { sessionId: newSessionId, duplicate: false };
}

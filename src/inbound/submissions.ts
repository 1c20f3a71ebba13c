import { createHash } from 'node:crypto';
import type { Engine } from '../engine/engine.ts';
import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { buildKey } from '../lifecycle/session-key.ts';
import type { Submission, SubmissionReceipt } from '../platforms/platform.ts';
import type { ConversationRef } from '../store/transactions/conversations.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';
import type { Conversations } from '../turns/conversations.ts';
import { withoutGatewayLines } from '../turns/spoken-text.ts';
import { webhookNote } from '../turns/texts.ts';

export interface SubmissionsDeps {
  readonly engine: Engine;
  readonly conversations: Conversations;
  /** What a text becomes in the outbox, for a target as operators name it. Throws `target_unknown`. */
  readonly outgoingFor: (target: string, text: string, id: string) => Promise<readonly DeliveryToMake[]>;
  readonly newDeliveryId: () => string;
}

/** For so long the same id of a route is the same submission again. */
const REPEATED_MS = 24 * 3_600_000;

/** Takes what programs send: each becomes a session of its own, which ends when it is done. */
export class Submissions {
  readonly #deps: SubmissionsDeps;

  constructor(deps: SubmissionsDeps) {
    this.#deps = deps;
  }

  async submit(submission: Submission): Promise<SubmissionReceipt> {
    return submission.agent ? this.#ask(submission) : this.#forward(submission);
  }

  async #ask(submission: Submission): Promise<SubmissionReceipt> {
    const conversation = conversationOf(submission);
    const result = await this.#deps.conversations.receive({
      conversation,
      // The first line is the gateway's, and no other one may look like it.
      text: `${webhookNote(submission.route)}\n\n${withoutGatewayLines(submission.text)}`,
      originRef: `${conversation.key}`,
      refTtlMs: REPEATED_MS,
      verbatim: true,
    });
    // A plugin kept it from the agent.
    if (result.type === 'answer') return { sessionId: result.session?.id ?? null, turnId: null, duplicate: false };
    const { session, turn, duplicate } = result.received;
    return { sessionId: session.id, turnId: turn.id, duplicate };
  }

  async #forward(submission: Submission): Promise<SubmissionReceipt> {
    const { engine, conversations, outgoingFor, newDeliveryId } = this.#deps;
    const { deliver, text } = submission;
    if (conversations.draining) throw new MoiraiError('draining', 'the gateway takes nothing new');
    const deliveries = deliver === null ? [] : await outgoingFor(deliver, text, newDeliveryId());
    const conversation = conversationOf(submission);
    const forwarded = await engine.forward({ conversation, text, deliveries, ttlMs: REPEATED_MS });
    return { ...forwarded, turnId: null };
  }
}

function conversationOf({ route, id, deliver }: Submission): ConversationRef {
  const origin = { route, delivery_id: id, deliver };
  return { key: keyOf(route, id), kind: 'webhook', platform: 'webhook', userId: null, origin, attached: false };
}

/** A name that cannot be part of a key is known by its hash. */
function keyOf(route: string, id: string): string {
  const place = { profile: 'main', platform: 'webhook', type: 'dm', chat: route } as const;
  try {
    return buildKey({ ...place, thread: id });
  } catch (thrown) {
    if (!hasCode(thrown, 'bad_key')) throw thrown;
    return buildKey({ ...place, thread: createHash('sha256').update(id).digest('hex') });
  }
}

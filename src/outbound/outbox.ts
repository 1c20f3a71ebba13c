import type { Engine } from '../engine/engine.ts';
import type { Logger } from '../log/logger.ts';
import { type Sender, SendFailure, type SendRequest, type SentMessage } from '../platforms/platform.ts';
import { type LaneWork, QueueWorker } from '../queue/queue-worker.ts';
import { backoff } from '../queue/retry-until-known.ts';
import { isUnreadable } from '../store/table.ts';
import { type Delivery, type DeliveryOutcome, type ReplyLane, replyQueue } from '../store/transactions/deliveries.ts';
import { type Observer, stopwatch } from '../turns/observer.ts';
import { REPLY_SET_ASIDE_TEXT } from '../turns/texts.ts';
import type { ArrivedReplies } from './arrived-replies.ts';
import { isLive } from './reply-shape.ts';

export interface OutboxOptions {
  readonly engine: Engine;
  readonly log: Logger;
  readonly random: () => number;
  readonly arrived: ArrivedReplies;
  /** Read each time: platforms come and go. */
  readonly senders: () => readonly Sender[];
  readonly observer: Pick<Observer, 'tried' | 'sent'>;
}

/** Conversations of one platform that are sent to at the same time. */
const CONCURRENCY = 32;
const REPLIES_PER_CLAIM = 8;
const SEND_TIMEOUT_MS = 60_000;
const MAX_ATTEMPTS = 12;
/** What fails in our own code fails again. */
const DEFECT_ATTEMPTS = 3;
const RETRY_MS = 1000;
const RETRY_CAP_MS = 300_000;
const WAIT_CAP_MS = 60_000;
const STOP_GRACE_MS = 5000;
const DUPLICATE_MARK = '(This may be a repetition: I was interrupted while sending it.)';

/**
 * Sends what the store says is to be sent: in order per conversation, again until the platform has taken it or refuses it
 * for good. A platform that cannot be reached is waited for, however long that takes.
 *
 * What became of a reply is unknown when a process died while it sent it, and when the server did not answer. Where the
 * platform takes the same key once, or the reply changes what is there, it is sent again as it is. Where the platform can be
 * searched, it is looked for, and sent again if it is not there. Everywhere else it is sent again with a line that says that
 * it may be a repetition: a reply twice is better than none.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #unlisten: () => void;
  readonly #workers = new Map<string, QueueWorker<ReplyLane>>();
  #stopped = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#unlisten = options.engine.store.onCommit(({ queues }) => {
      for (const queue of queues) this.#workers.get(queue)?.wake();
    });
  }

  /** Serves the platforms that are there now. */
  refresh(): void {
    if (this.#stopped) return;
    const queues = new Set(this.#options.senders().map(({ name }) => replyQueue(name)));
    for (const [queue, worker] of this.#workers) {
      if (queues.has(queue)) continue;
      this.#workers.delete(queue);
      void worker.stop();
    }
    for (const { name } of this.#options.senders()) {
      const queue = replyQueue(name);
      const worker = this.#workers.get(queue) ?? this.#makeWorker(name);
      this.#workers.set(queue, worker);
      worker.wake();
    }
  }

  /** Sends what is due now, and stops. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#unlisten();
    for (const worker of this.#workers.values()) worker.wake();
    await Promise.all([...this.#workers.values()].map((worker) => worker.stop(STOP_GRACE_MS)));
  }

  #makeWorker(platform: string): QueueWorker<ReplyLane> {
    const { engine, log } = this.#options;
    return new QueueWorker(
      {
        queue: replyQueue(platform),
        concurrency: CONCURRENCY,
        claim: (request) =>
          engine.store.write('claimReplies', { ...request, platform, repliesPerLane: REPLIES_PER_CLAIM }),
        process: (lane, work) => this.#sendAll(platform, lane, work),
      },
      engine.queueDeps((error) => log.warn('the store did not take the outcome of a reply', { platform, error })),
    );
  }

  async #sendAll(platform: string, lane: ReplyLane, work: LaneWork): Promise<void> {
    for (const [i, delivery] of lane.deliveries.entries()) {
      // What the lane counted belongs to its first reply.
      const before = i === 0 ? lane : { attempts: 0, waits: 0, interrupted: false };
      if (work.stopping.aborted) return this.#giveBack(platform, lane, before, work);
      const outcome = poisonIn(lane, i) ?? (await this.#try(delivery, lane.key, before, work.stopping));
      // It may have arrived: stopping this instance marks it so.
      if (outcome === null) return;
      const more = i < lane.deliveries.length - 1;
      await this.#settle({ platform, lane, delivery, outcome, before, more }, work);
      // What comes behind a reply that waits has to wait as well.
      if (outcome.state === 'retry') return;
    }
    // A lane whose replies were removed meanwhile.
    if (lane.deliveries.length === 0) await this.#giveBack(platform, lane, lane, work);
  }

  async #giveBack(platform: string, { key, token }: ReplyLane, before: Tries, work: LaneWork): Promise<void> {
    const { store } = this.#options.engine;
    const { attempts, waits } = before;
    await work.settle((context) => store.write('releaseReplies', { context, platform, key, token, attempts, waits }));
  }

  /** Sends one reply; null when the process stopped in the middle of it. */
  async #try(
    delivery: Delivery,
    sessionKey: string,
    before: Tries,
    stopping: AbortSignal,
  ): Promise<DeliveryOutcome | null> {
    const elapsed = stopwatch();
    const outcome = await this.#send(delivery, sessionKey, before, stopping);
    if (outcome !== null) this.#options.observer.tried(delivery, triesOf(before) + 1, outcome, elapsed());
    return outcome;
  }

  async #send(
    delivery: Delivery,
    sessionKey: string,
    before: Tries,
    stopping: AbortSignal,
  ): Promise<DeliveryOutcome | null> {
    const platform = this.#options.senders().find(({ name }) => name === delivery.platform);
    if (platform === undefined) {
      return { state: 'retry', afterMs: 1000, error: `there is no platform ${delivery.platform} now`, counts: false };
    }
    const known = this.#options.arrived.find(delivery.id);
    if (known !== undefined) return sentAs(known.messageId);
    const { id: key, target, text, shape, sessionId } = delivery;
    const request = { key, target, text, shape, sessionId, sessionKey };
    try {
      const signal = AbortSignal.any([stopping, AbortSignal.timeout(SEND_TIMEOUT_MS)]);
      const sent = await (before.interrupted ? sendAgain(platform, request, signal) : platform.send(request, signal));
      const messageId = sent?.messageId ?? null;
      this.#options.arrived.note(delivery.id, messageId);
      return sentAs(messageId);
    } catch (thrown) {
      return stopping.aborted ? null : this.#afterFailure(before, thrown);
    }
  }

  #afterFailure({ attempts, waits }: Tries, thrown: unknown): DeliveryOutcome {
    const { random } = this.#options;
    const error = thrown instanceof Error ? thrown.message : String(thrown);
    const asked = thrown instanceof SendFailure ? thrown.retryAfterMs : undefined;
    const counts = !isUnreachable(thrown);
    const uncertain = isUncertain(thrown);
    if (thrown instanceof SendFailure && thrown.kind === 'expired') return { state: 'held', error };
    if (isDefect(thrown) && attempts + 1 >= DEFECT_ATTEMPTS) return { state: 'set_aside', error, notice: null };
    if (asked === null || (counts && attempts + 1 >= MAX_ATTEMPTS)) return { state: 'failed', error };
    const wait = counts
      ? backoff(attempts + 1, RETRY_MS, RETRY_CAP_MS, random)
      : // A server that says how long it wants to hear nothing is not waited for longer each time it says so.
        backoff(isRateLimit(thrown) ? 1 : waits + 1, RETRY_MS, WAIT_CAP_MS, random);
    return { state: 'retry', afterMs: Math.max(asked ?? 0, wait), error, counts, ...(uncertain ? { uncertain } : {}) };
  }

  async #settle({ platform, lane, delivery, before, more, ...settlement }: Settlement, work: LaneWork): Promise<void> {
    const outcome = withNotice(settlement.outcome, delivery);
    const { engine, log, observer } = this.#options;
    const { id: deliveryId, sessionId: session, turnId: turn } = delivery;
    if (outcome.state !== 'sent') log.warn('reply not sent', { delivery: deliveryId, session, turn, ...outcome });
    const waited = outcome.state === 'retry' && !outcome.counts;
    const settled = await work.settle((context) =>
      engine.store.write('settleReply', {
        context,
        platform,
        key: lane.key,
        token: lane.token,
        deliveryId,
        outcome,
        attempts: Math.max(before.attempts + (waited ? 0 : 1), outcome.state === 'set_aside' ? lane.deaths : 0),
        waits: before.waits + (waited ? 1 : 0),
        more,
        ...(turn !== null && isLive(delivery.shape) ? { live: turn } : {}),
      }),
    );
    if (settled !== null) this.#options.arrived.forget(deliveryId);
    if (settled !== null && outcome.state === 'sent') observer.sent(delivery, settled.ms);
  }
}

/** What was tried of a reply before. */
interface Tries {
  readonly attempts: number;
  readonly waits: number;
  /** It may have arrived. */
  readonly interrupted: boolean;
}

interface Settlement {
  readonly platform: string;
  readonly lane: ReplyLane;
  readonly delivery: Delivery;
  readonly outcome: DeliveryOutcome;
  readonly before: Tries;
  readonly more: boolean;
}

/** Why the reply at this place is passed over without being tried; null for what can be tried. */
function poisonIn({ deliveries, poisoned, deaths }: ReplyLane, index: number): DeliveryOutcome | null {
  const delivery = deliveries[index];
  if (delivery !== undefined && isUnreadable(delivery.target)) {
    return { state: 'set_aside', error: 'its row cannot be read', notice: null };
  }
  if (!poisoned || index > 0) return null;
  return { state: 'set_aside', error: `${deaths} processes ended while they were sending it`, notice: null };
}

/** Whoever waits for a reply that is passed over is told so; nobody is told about a notice. */
function withNotice(outcome: DeliveryOutcome, { id, platform, target, shape }: Delivery): DeliveryOutcome {
  if (outcome.state !== 'set_aside' || isUnreadable(target) || shape?.notice === true) return outcome;
  const notice = { id: `${id}:notice`, platform, target, text: REPLY_SET_ASIDE_TEXT, shape: { notice: true } };
  return { ...outcome, notice };
}

/** An error of our own code, not of the world around it. */
function isDefect(thrown: unknown): boolean {
  if (thrown instanceof TypeError) return thrown.cause === undefined;
  return thrown instanceof RangeError || thrown instanceof ReferenceError || thrown instanceof SyntaxError;
}

function sentAs(messageId: string | null): DeliveryOutcome {
  return messageId === null ? { state: 'sent' } : { state: 'sent', messageId };
}

function triesOf({ attempts, waits }: Tries): number {
  return attempts + waits;
}

/** The platform could not be reached, or asks for patience: waiting helps, and counts as no attempt. */
function isUnreachable(thrown: unknown): boolean {
  return thrown instanceof SendFailure && thrown.unreachable;
}

function isRateLimit(thrown: unknown): boolean {
  return thrown instanceof SendFailure && thrown.kind === 'rate_limited';
}

/** It left and nobody answered: the platform may have it. */
function isUncertain(thrown: unknown): boolean {
  if (thrown instanceof SendFailure) return thrown.kind === 'uncertain';
  return thrown instanceof DOMException && thrown.name === 'TimeoutError';
}

/** Sends what may have arrived: not at all if it has, and marked as a possible repetition if nobody can say. */
async function sendAgain(sender: Sender, request: SendRequest, signal: AbortSignal): Promise<SentMessage | null> {
  const outcome = (await sender.beforeRepetition?.(request, signal)) ?? 'unknown';
  if (typeof outcome !== 'string') return outcome;
  const text = outcome === 'again' ? request.text : `${request.text}\n\n${DUPLICATE_MARK}`;
  return sender.send({ ...request, text }, signal);
}

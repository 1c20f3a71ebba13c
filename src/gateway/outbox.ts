import type { Engine } from '../engine/engine.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { Timers } from '../queue/timers.ts';
import type { Logger } from '../log/logger.ts';
import { type Sender, SendFailure } from '../platforms/platform.ts';
import type { Delivery, DeliveryOutcome } from '../store/transactions/deliveries.ts';
import { type Observer, stopwatch } from './observer.ts';

export interface OutboxOptions {
  readonly engine: Engine;
  readonly timers: Timers;
  readonly log: Logger;
  readonly random: () => number;
  /** Read each time: platforms come and go. */
  readonly senders: () => readonly Sender[];
  readonly observer: Pick<Observer, 'tried' | 'sent'>;
}

const CLAIM = 32;
const POLL_MS = 1000;
const SEND_TIMEOUT_MS = 60_000;
const MAX_ATTEMPTS = 12;
const RETRY_BASE_MS = 1000;
const RETRY_CAP_MS = 300_000;
const STOP_GRACE_MS = 5000;
const DUPLICATE_MARK = '(This may be a repetition: I was interrupted while sending it.)';

/**
 * Sends what the store says is to be sent: in order per conversation, again until it is taken or there is no use in
 * trying. A reply that was being sent when a process died may have arrived, and says so.
 */
export class Outbox {
  readonly #options: OutboxOptions;
  readonly #unlisten: () => void;
  readonly #sending = new Set<Promise<void>>();
  readonly #abort = new AbortController();
  #cancelTimer: () => void = () => undefined;
  #pass: Promise<void> | null = null;
  #again = false;

  constructor(options: OutboxOptions) {
    this.#options = options;
    this.#unlisten = options.engine.store.onCommit(({ deliveries }) => {
      if (deliveries) this.wake();
    });
  }

  wake(): void {
    if (this.#abort.signal.aborted || this.#options.senders().length === 0) return;
    if (this.#pass !== null) {
      this.#again = true;
      return;
    }
    this.#cancelTimer();
    this.#pass = this.#serve()
      .catch((error: unknown) => this.#options.log.warn('the outbox could not be read', { error }))
      .finally(() => {
        this.#pass = null;
        if (this.#again) {
          this.#again = false;
          this.wake();
        } else this.#cancelTimer = this.#options.timers.after(POLL_MS, () => this.wake());
      });
  }

  /** Sends what is due now, and stops. */
  async stop(): Promise<void> {
    this.#unlisten();
    await this.#pass;
    const grace = new Promise<void>((resume) => this.#options.timers.after(STOP_GRACE_MS, resume));
    await Promise.race([Promise.allSettled(this.#sending), grace]);
    this.#abort.abort();
    this.#cancelTimer();
  }

  async #serve(): Promise<void> {
    const { engine } = this.#options;
    const platforms = this.#options.senders().map(({ name }) => name);
    const due = await engine.store.write('claimDeliveries', {
      context: engine.commandContext(),
      platforms,
      limit: CLAIM,
    });
    for (const delivery of Map.groupBy(due, ({ sessionId }) => sessionId).values()) {
      const sent = this.#sendInOrder(delivery).finally(() => this.#sending.delete(sent));
      this.#sending.add(sent);
    }
    if (due.length === CLAIM) this.#again = true;
  }

  async #sendInOrder(deliveries: readonly Delivery[]): Promise<void> {
    let held: DeliveryOutcome | null = null;
    for (const delivery of deliveries) {
      // What comes behind a part that waits has to wait as well.
      const outcome: DeliveryOutcome = held ?? (await this.#try(delivery));
      if (outcome.state === 'retry') held = outcome;
      await this.#settle(delivery, outcome);
    }
  }

  async #try(delivery: Delivery): Promise<DeliveryOutcome> {
    const elapsed = stopwatch();
    const outcome = await this.#send(delivery);
    this.#options.observer.tried(delivery, outcome, elapsed());
    return outcome;
  }

  async #send(delivery: Delivery): Promise<DeliveryOutcome> {
    const platform = this.#options.senders().find(({ name }) => name === delivery.platform);
    if (platform === undefined) return { state: 'failed', error: `there is no platform ${delivery.platform}` };
    const text = delivery.possibleDuplicate ? `${delivery.text}\n\n${DUPLICATE_MARK}` : delivery.text;
    try {
      const signal = AbortSignal.any([this.#abort.signal, AbortSignal.timeout(SEND_TIMEOUT_MS)]);
      const sent = await platform.send(delivery.target, text, signal, delivery.shape);
      return sent === null ? { state: 'sent' } : { state: 'sent', messageId: sent.messageId };
    } catch (thrown) {
      return this.#afterFailure(delivery, thrown);
    }
  }

  #afterFailure({ attempts }: Delivery, thrown: unknown): DeliveryOutcome {
    const error = thrown instanceof Error ? thrown.message : String(thrown);
    const asked = thrown instanceof SendFailure ? thrown.retryAfterMs : undefined;
    if (asked === null || attempts >= MAX_ATTEMPTS) return { state: 'failed', error };
    const backoff = Math.min(RETRY_BASE_MS * 2 ** (attempts - 1), RETRY_CAP_MS) * (0.75 + this.#options.random() / 2);
    return { state: 'retry', afterMs: Math.round(Math.max(asked ?? 0, backoff)), error };
  }

  async #settle(delivery: Delivery, outcome: DeliveryOutcome): Promise<void> {
    const { engine, log, observer } = this.#options;
    const { id: deliveryId, sessionId: session, turnId: turn } = delivery;
    const names = { delivery: deliveryId, session, turn };
    if (outcome.state !== 'sent') log.warn('a reply was not sent', { ...names, ...outcome });
    try {
      const settled = await engine.store.write('settleDelivery', {
        context: engine.commandContext(),
        deliveryId,
        outcome,
      });
      if (settled !== null && outcome.state === 'sent') observer.sent(delivery, settled.ms);
    } catch (thrown) {
      log.error('how a reply fared could not be written', { ...names, error: MoiraiError.wrap(thrown) });
    }
  }
}

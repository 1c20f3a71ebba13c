import { Counter, Histogram, Registry } from 'prom-client';

/** In seconds: from what a command answers to what an agent with tools takes. */
const TURN_BUCKETS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800];
/** From a reply that leaves at once to one that waits until a platform is back. */
const DELIVERY_BUCKETS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 3600];

/** Figures that are measured as things happen, in this process since it began. What can be counted in the store is not here. */
export class Figures {
  readonly #registry = new Registry();
  readonly #turns = new Histogram({
    ...{ name: 'moirai_turn_seconds', help: 'How long turns ran, by what came of them', labelNames: ['outcome'] },
    ...{ buckets: TURN_BUCKETS, registers: [this.#registry] },
  });
  readonly #waits = new Histogram({
    ...{ name: 'moirai_turn_wait_seconds', help: 'How long turns waited before they began' },
    ...{ buckets: TURN_BUCKETS, registers: [this.#registry] },
  });
  readonly #deliveries = new Histogram({
    ...{ name: 'moirai_delivery_seconds', help: 'From a reply in the outbox to its arrival', labelNames: ['platform'] },
    ...{ buckets: DELIVERY_BUCKETS, registers: [this.#registry] },
  });
  readonly #attempts = new Counter({
    ...{ name: 'moirai_delivery_attempts_total', help: 'Tries to send a reply, by what came of them' },
    ...{ labelNames: ['platform', 'outcome'], registers: [this.#registry] },
  });
  readonly #retries = new Counter({
    ...{ name: 'moirai_subscriber_retries_total', help: 'Events that were not taken and are handed over again' },
    ...{ labelNames: ['subscriber'], registers: [this.#registry] },
  });

  turnWaited(ms: number): void {
    this.#waits.observe(seconds(ms));
  }

  turnTook(outcome: string, ms: number): void {
    this.#turns.observe({ outcome }, seconds(ms));
  }

  deliveryTook(platform: string, ms: number): void {
    this.#deliveries.observe({ platform }, seconds(ms));
  }

  deliveryTried(platform: string, outcome: 'sent' | 'retry' | 'failed'): void {
    this.#attempts.inc({ platform, outcome });
  }

  subscriberRetried(subscriber: string): void {
    this.#retries.inc({ subscriber });
  }

  /** As Prometheus reads it. */
  render(): Promise<string> {
    return this.#registry.metrics();
  }
}

/** Two clocks may disagree by a little; nothing takes less than no time. */
function seconds(ms: number): number {
  return Math.max(0, ms) / 1000;
}

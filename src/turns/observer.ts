import type { Session, Turn } from '../lifecycle/session.ts';
import type { Logger } from '../log/logger.ts';
import type { Delivery, DeliveryOutcome } from '../store/transactions/deliveries.ts';
import type { TurnRun } from './turn-run.ts';

/** When something began, by the wall clock, and how long it took, by one that never jumps. */
export interface Elapsed {
  readonly began: number;
  readonly ms: number;
}

/** Says how long it is since it was made. */
export function stopwatch(): () => Elapsed {
  const began = Date.now();
  const start = performance.now();
  return () => ({ began, ms: performance.now() - start });
}

/** Sees what passes through the gateway, each fact where all of its kind pass. Called in the middle of it: it must be quick. */
export interface Observer {
  /** A message is durable; one that came again is not told again. */
  received(session: Session, turn: Turn, elapsed: Elapsed): void;
  /** A turn begins to run here: its channel tells the rest. */
  started(run: TurnRun): void;
  /** One attempt to send a reply, the first being 1. */
  tried(delivery: Delivery, attempt: number, outcome: DeliveryOutcome, elapsed: Elapsed): void;
  /** It arrived, this long after it was put into the outbox. */
  sent(delivery: Delivery, ms: number): void;
}

/** All of them as one. Whoever fails spoils nothing for anybody: to be looked at must not change what happens. */
export function observeWith(observers: readonly Partial<Observer>[], log: Logger): Observer {
  const tell = (look: (observer: Partial<Observer>) => void): void => {
    for (const observer of observers) {
      try {
        look(observer);
      } catch (error) {
        log.warn('an observer failed', { error });
      }
    }
  };
  return {
    received: (...facts) => tell((observer) => observer.received?.(...facts)),
    started: (run) => tell((observer) => observer.started?.(run)),
    tried: (...facts) => tell((observer) => observer.tried?.(...facts)),
    sent: (delivery, ms) => tell((observer) => observer.sent?.(delivery, ms)),
  };
}

import type { DeliveryOutcome } from '../store/transactions/deliveries.ts';
import type { Observer } from '../turns/observer.ts';
import type { Figures } from './figures.ts';

function isFailure(state: DeliveryOutcome['state']): state is 'failed' | 'set_aside' | 'held' {
  return state === 'failed' || state === 'set_aside' || state === 'held';
}

/** Turns what passes through the gateway into figures. */
export function measuring(figures: Figures): Partial<Observer> {
  return {
    started(run) {
      const { createdAt, startedAt, cuts } = run.turn;
      // One that goes on after a restart has waited for something else.
      if (cuts === 0 && startedAt !== null) figures.turnWaited(startedAt - createdAt);
      run.channel.onEnd(() => figures.turnTook(run.ending, run.elapsed.ms));
    },
    tried: ({ platform }, _, { state }) => figures.deliveryTried(platform, isFailure(state) ? 'failed' : state),
    sent: ({ platform }, ms) => figures.deliveryTook(platform, ms),
  };
}

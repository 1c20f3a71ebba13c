import type { Figures } from '../api/figures.ts';
import type { Observer } from './observer.ts';

/** Turns what passes through the gateway into figures. */
export function measuring(figures: Figures): Partial<Observer> {
  return {
    begun({ turn: { createdAt, startedAt, cuts } }) {
      // One that goes on after a restart has waited for something else.
      if (cuts === 0 && startedAt !== null) figures.turnWaited(startedAt - createdAt);
    },
    over: ({ ending, elapsed }) => figures.turnTook(ending, elapsed.ms),
    tried: ({ platform }, _, { state }) => figures.deliveryTried(platform, state),
    sent: ({ platform }, ms) => figures.deliveryTook(platform, ms),
  };
}

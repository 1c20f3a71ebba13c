import { MoiraiError } from '../../src/errors/moirai-error.ts';
import type { WriteName } from '../../src/store/catalogue.ts';
import type { Store } from '../../src/store/port.ts';

/** A real store of which a test says which writes go wrong, and how. */
export interface TroubledStore extends Store {
  /** Refuses a write before it is done; null lets it pass. */
  refuse: (name: WriteName) => MoiraiError | null;
  /** Does a write and loses its answer. */
  losesAnswer: (name: WriteName) => boolean;
  /** How often each write was asked for. */
  readonly asked: Map<WriteName, number>;
}

/** `time` stands still while the store works. */
export function troubled(store: Store, time: { busy: number }): TroubledStore {
  const asked = new Map<WriteName, number>();
  const waitFor = async <T>(work: Promise<T>): Promise<T> => {
    time.busy++;
    try {
      return await work;
    } finally {
      time.busy--;
    }
  };
  const wrapped: TroubledStore = {
    engine: store.engine,
    location: store.location,
    asked,
    refuse: () => null,
    losesAnswer: () => false,
    async write(name, args) {
      asked.set(name, (asked.get(name) ?? 0) + 1);
      const refusal = wrapped.refuse(name);
      if (refusal !== null) throw refusal;
      const value = await waitFor(store.write(name, args));
      if (wrapped.losesAnswer(name)) throw new MoiraiError('store_outcome_unknown', 'the answer was lost');
      return value;
    },
    read: (name, args) => waitFor(store.read(name, args)),
    onCommit: (listener) => store.onCommit(listener),
    useRules: (rules) => store.useRules(rules),
    close: () => store.close(),
  };
  return wrapped;
}

import { existsSync } from 'node:fs';
import { join } from 'node:path';
import type { Config } from '../config/config.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { createProviders } from '../memory/create-provider.ts';
import { REVIEW_SUBSCRIBER } from '../memory/memory-review.ts';
import { eventsFor, subscriberName } from '../memory/memory-subscriber.ts';
import type { MemoryProvider } from '../memory/provider.ts';
import type { Store } from '../store/port.ts';
import type { SubscriberStatus } from '../store/transactions/subscribers.ts';
import { figuresOf } from './hook-list.ts';

/** Somebody who remembers as it is listed: what the configuration says, and how it stands in the store. */
export type MemoryRow = ReturnType<typeof figuresOf> & {
  readonly name: string;
  /** `new`: no gateway has seen it yet; `bad`: none will start with it; `removed`: it is not configured any more. */
  readonly state: 'ready' | 'new' | 'bad' | 'removed';
  readonly problem: string | null;
  readonly events: readonly string[];
  /** Null for one that hears of nothing. */
  readonly subscriber: string | null;
};

/** All that remember, the looking over included, and what is left of old ones. */
export async function memoryRows(config: Config, store: Store): Promise<MemoryRow[]> {
  const subscribers = await store.read('listSubscribers', {});
  const configured = configuredRow(config, store, subscribers);
  const listed = configured === null ? [] : [configured];
  const left = subscribers.filter(({ name }) => name.startsWith('memory:') && name !== configured?.subscriber);
  const review = subscribers.find(({ name }) => name === REVIEW_SUBSCRIBER);
  const isReviewed = configured !== null && config.memory.reviewEvery > 0;
  return [
    ...listed,
    ...(review === undefined ? [] : [rowOf(review, isReviewed ? 'ready' : 'removed')]),
    ...left.map((status) => rowOf(status, 'removed')),
  ];
}

function configuredRow(
  { memory, home }: Config,
  store: Store,
  subscribers: readonly SubscriberStatus[],
): MemoryRow | null {
  const name = memory.provider;
  if (name === 'none') return null;
  const { provider, problem } = providerOf(memory, store);
  const subscriber = subscriberName({ name });
  const status = subscribers.find((each) => each.name === subscriber);
  if (status !== undefined) return rowOf(status, 'ready');
  const events = provider === null ? [] : eventsFor(provider);
  // What a plugin brings is known to a gateway only.
  const isBad = provider === null && !existsSync(join(home, 'plugins'));
  const isKnown = provider !== null && events.length === 0;
  return {
    ...{ name, events, problem: isBad ? problem : null },
    state: isBad ? 'bad' : isKnown ? 'ready' : 'new',
    subscriber: isKnown || isBad ? null : subscriber,
    ...figuresOf(undefined),
  };
}

function providerOf(
  memory: Config['memory'],
  store: Store,
): { provider: MemoryProvider | null; problem: string | null } {
  try {
    const [provider = null] = createProviders(memory, store);
    return { provider, problem: null };
  } catch (thrown) {
    return { provider: null, problem: MoiraiError.wrap(thrown).message };
  }
}

function rowOf(status: SubscriberStatus, state: 'ready' | 'removed'): MemoryRow {
  const { name: subscriber, patterns: events } = status;
  const name = subscriber === REVIEW_SUBSCRIBER ? 'review' : subscriber.slice('memory:'.length);
  return { name, state, problem: null, events, subscriber, ...figuresOf(status) };
}

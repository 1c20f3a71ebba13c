import type { Store } from '../src/store/port.ts';
import { context, message } from './load.ts';

const SUBSCRIBER = 'bench-queue';
const ROUNDS = 200;
/** Out of the way of the conversations that other parts use. */
const FIRST_CHAT = 10_000_000;

/** Median milliseconds of a claim beside so many lanes that wait and are not due, by their number. */
export async function measureClaims(store: Store, waiting: readonly number[]): Promise<Map<number, number>> {
  await store.write('subscribe', { name: SUBSCRIBER, patterns: ['agent:end'], from: 'now' });
  const medians = new Map<number, number>();
  let lanes = 0;
  for (const wanted of waiting) {
    for (; lanes < wanted; lanes += 50) {
      await Promise.all(Array.from({ length: 50 }, (_, i) => message(store, FIRST_CHAT + lanes + i)));
      await failAll(store);
    }
    const times: number[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      const began = performance.now();
      await claim(store);
      times.push(performance.now() - began);
    }
    medians.set(wanted, median(times));
  }
  await store.write('unsubscribe', { name: SUBSCRIBER });
  return medians;
}

async function claim(store: Store) {
  const given = context();
  const limits = { again: false, limit: 64, retries: 64, eventsPerLane: 16 };
  const names = { queue: `events/${SUBSCRIBER}`, subscriber: SUBSCRIBER, token: given.commandId };
  return store.write('claimEvents', { context: given, ...names, ...limits });
}

/** Every lane that is due fails, and waits for an hour. */
async function failAll(store: Store): Promise<void> {
  for (let { lanes } = await claim(store); lanes.length > 0; { lanes } = await claim(store)) {
    await Promise.all(
      lanes.map(({ key, token, events }) => {
        const [first] = events;
        if (first === undefined) throw new TypeError('a lane without events');
        const failed = { no: first.no, eventId: first.event.id, eventType: first.event.type, replay: false };
        const delivered = { upTo: first.no - 1, replayed: [] };
        // Counted as the second attempt: the first one would be logged.
        const retry = { error: 'not now', attempts: 2, waits: 0, retryInMs: 590_000, dead: false };
        return store.write('failEvents', {
          context: context(),
          ...{ subscriber: SUBSCRIBER, key, token, delivered, failed, ...retry },
        });
      }),
    );
  }
}

/** Median milliseconds to take a message behind so many that wait in its session, by their number. */
export async function measureBacklog(store: Store, waiting: readonly number[]): Promise<Map<number, number>> {
  const medians = new Map<number, number>();
  for (const wanted of waiting) {
    const chat = FIRST_CHAT * 2 + wanted;
    await Promise.all(Array.from({ length: wanted }, (_, i) => wait(store, chat, `${wanted}-before-${i}`)));
    const times: number[] = [];
    for (let i = 0; i < ROUNDS; i++) {
      const began = performance.now();
      await wait(store, chat, `${wanted}-${i}`);
      times.push(performance.now() - began);
    }
    medians.set(wanted, median(times));
  }
  return medians;
}

/** A message that waits behind the others of its conversation. */
function wait(store: Store, chat: number, ref: string) {
  const { commandId } = context();
  return store.write('receive', {
    context: context(),
    conversation: {
      key: `agent:main:telegram:dm:${chat}`,
      kind: 'chat',
      platform: 'telegram',
      userId: 'bench',
      origin: { platform: 'telegram', chat: String(chat) },
      attached: false,
    },
    text: 'and one more thing',
    originRef: `bench:${ref}:${commandId}`,
    by: 'user',
    turnId: `trn_${commandId}`,
    newSessionId: `ses_${commandId}`,
    begin: false,
  });
}

function median(samples: readonly number[]): number {
  return samples.toSorted((a, b) => a - b)[Math.floor(samples.length / 2)] ?? Number.NaN;
}

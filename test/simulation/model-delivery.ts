import type { MoiraiEvent } from '../../src/lifecycle/events.ts';
import { Boot, Reap } from './model-liveness.ts';
import { sendReplies } from './model-queue.ts';
import { MODEL_LEASE_MS, type Model } from './model-state.ts';
import { ByInstance, context, type Prediction, type Real, SUBSCRIBERS } from './model-step.ts';

/** A dispatcher at work: it takes lanes and hands over, fails, or dies with them. */
export class Deliver extends ByInstance {
  readonly sub: keyof typeof SUBSCRIBERS;
  readonly fate: 'ack' | 'fail' | 'die' | 'partial';
  constructor(i: number, sub: keyof typeof SUBSCRIBERS, fate: Deliver['fate']) {
    super(i);
    this.sub = sub;
    this.fate = fate;
  }
  predict(_model: Model, real: Real, instance: string): Prediction {
    return { answer: 'ok', needsLease: true, action: () => deliver(real, instance, this.sub, this.fate) };
  }
}

export async function deliver(
  real: Real,
  instance: string,
  subscriber: keyof typeof SUBSCRIBERS,
  fate: Deliver['fate'],
): Promise<void> {
  const { store } = real;
  const token = `token${real.next++}`;
  const limits = { again: false, limit: 3, retries: 3, eventsPerLane: 4 };
  const claim = { context: context(real, instance), queue: `events/${subscriber}`, subscriber, token };
  const claimed = await store.write('claimEvents', { ...claim, ...limits });
  const seen = real.deliveries.get(subscriber) ?? [];
  real.deliveries.set(subscriber, seen);
  for (const lane of claimed.lanes) {
    if (fate === 'die') continue;
    const count = fate === 'ack' ? lane.events.length : Math.min(1, lane.events.length - 1);
    for (const { event } of lane.events.slice(0, Math.max(0, count))) {
      if (!seen.includes(event.id)) seen.push(event.id);
    }
    const failed = lane.events[Math.max(0, count)];
    const common = { context: context(real, instance), subscriber, key: lane.key, token };
    if (fate === 'ack' || failed === undefined) {
      await store.write('ackEvents', { ...common, delivered: { upTo: lane.upTo, replayed: [] } });
    } else {
      await store.write('failEvents', {
        ...{ ...common, delivered: { upTo: failed.no - 1, replayed: [] }, error: 'no', attempts: 1, waits: 0 },
        failed: { no: failed.no, eventId: failed.event.id, eventType: failed.event.type, replay: false },
        ...{ retryInMs: 1000, dead: false },
      });
    }
  }
}

/** The faults are over: a fresh instance takes over what the others claimed, and delivers and sends what is left. */
export async function drain(model: Model, real: Real): Promise<void> {
  if (real.instances.length === 0) return;
  model.lease += 10 * MODEL_LEASE_MS;
  await new Boot().act(model, real);
  const instance = real.instances.at(-1) ?? '';
  await new Reap(real.instances.length - 1, 0).act(model, real);
  for (let rounds = 0; Object.keys(await real.store.read('countDeliveries', {})).length > 0; rounds++) {
    model.now += 60_000;
    await sendReplies(model, real, instance, 'done');
    if (rounds > 500) throw new TypeError('replies are never all sent');
  }
  if ([...model.replies.values()].some((waiting) => waiting.length > 0)) throw new TypeError('a reply was lost');
  for (const subscriber of Object.keys(SUBSCRIBERS) as (keyof typeof SUBSCRIBERS)[]) {
    for (let rounds = 0; ; rounds++) {
      model.now += 60_000;
      model.lease += 40_000;
      await real.store.write('beat', { instance, ttlMs: MODEL_LEASE_MS });
      await deliver(real, instance, subscriber, 'ack');
      const status = (await real.store.read('listSubscribers', {})).find(({ name }) => name === subscriber);
      if (status === undefined || status.lanes === 0) break;
      if (rounds > 500) throw new TypeError(`${subscriber} is never drained`);
    }
  }
}

/** The log says what the model's sessions did, event by event, and each subscriber heard it in that order. */
export async function compareLogs(model: Model, real: Real): Promise<void> {
  const dump = await real.dump();
  const events = dump.events.map((row) => JSON.parse(String(row.body)) as MoiraiEvent);
  for (const session of model.sessions.values()) {
    const log = events.filter((event) => event.session_id === session.id && event.session_seq !== null);
    const types = log.map((event) => event.type).join(' ');
    if (types !== session.log.join(' '))
      throw new TypeError(`${session.id} logged ${types}, not ${session.log.join(' ')}`);
    if (log.some((event, i) => event.session_seq !== i + 1)) throw new TypeError(`${session.id} has a gap in its log`);
  }
  for (const [subscriber, patterns] of Object.entries(SUBSCRIBERS)) {
    const wanted = (event: MoiraiEvent): boolean =>
      !(event.type === 'hook:failed' && event.subscriber === subscriber) &&
      patterns.some((pattern) => pattern === '*' || pattern === event.type);
    const seen = new Map((real.deliveries.get(subscriber) ?? []).map((id, i) => [id, i]));
    const last = new Map<string, number>();
    for (const event of events.filter(wanted)) {
      const at = seen.get(event.id);
      if (at === undefined) throw new TypeError(`${subscriber} never got ${event.id}`);
      const key = event.session_key ?? '';
      if (at < (last.get(key) ?? -1)) throw new TypeError(`${subscriber} got ${event.id} out of order`);
      last.set(key, at);
    }
  }
  if (dump.lanes.some(({ queue }) => queue !== 'ticks'))
    throw new TypeError('lanes are left although all was delivered');
}

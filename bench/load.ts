import { timeSortedIds } from '../src/engine/ids.ts';
import type { Store } from '../src/store/port.ts';

/** The instance all load is given under. */
export const INSTANCE = 'ins_bench';
const LEASE_MS = 3_600_000;
export const USER_TEXT = 'Could you look at the build of last night and tell me why the second job failed?';
export const REPLY_TEXT =
  'The second job failed in its cache step: the runner had no space left. I freed 12 GB and started it again.';

const ids = timeSortedIds(Date.now, Math.random);

export function keyOf(n: number): string {
  return `agent:main:telegram:dm:${n}`;
}

export function context(): { instanceId: string; commandId: string } {
  return { instanceId: INSTANCE, commandId: ids.command() };
}

export async function boot(store: Store): Promise<void> {
  const host = { host: 'bench', bootId: null, pidSpace: null, pid: process.pid, pidStarted: null };
  await store.write('bootInstance', {
    facts: { id: INSTANCE, name: null, version: '0', ...host },
    ttlMs: LEASE_MS,
  });
}

/** Durable commits of a message: one when it arrives, before it is acknowledged, and one when its turn is over. */
export const COMMITS_PER_MESSAGE = 2;

/**
 * One message through the store: found or started session, journalled turn, begin, end, two transcript rows, events.
 */
export async function message(store: Store, n: number): Promise<void> {
  const turnId = ids.turn();
  const received = await store.write('receive', {
    context: context(),
    conversation: {
      key: keyOf(n),
      kind: 'chat',
      platform: 'telegram',
      userId: `user-${n}`,
      origin: { platform: 'telegram', chat: String(n) },
      attached: false,
    },
    text: USER_TEXT,
    originRef: `telegram:${n}:${turnId}`,
    by: 'user',
    turnId,
    newSessionId: ids.session(),
    begin: true,
  });
  await store.write('finishTurn', {
    context: context(),
    sessionId: received.session.id,
    turnId,
    epoch: received.session.epoch,
    result: { outcome: 'done', response: REPLY_TEXT, model: 'bench-model', usage: { input: 900, output: 60 } },
    error: null,
    messages: [
      { role: 'user', text: USER_TEXT, turnId },
      { role: 'assistant', text: REPLY_TEXT, turnId },
    ],
    deliveries: [],
  });
}

export interface Rate {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
}

/** Messages of `clients` people at once, each waiting for its answer, to random conversations out of `sessions`. */
export async function messageRate(store: Store, clients: number, sessions: number, ms: number): Promise<Rate> {
  const latencies: number[] = [];
  const began = performance.now();
  const client = async (c: number): Promise<void> => {
    while (performance.now() - began < ms) {
      const sent = performance.now();
      // No two clients share a conversation: a busy one would queue the message instead of beginning it.
      await message(store, 1 + c + clients * Math.floor((Math.random() * sessions) / clients));
      latencies.push(performance.now() - sent);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, c) => client(c)));
  return rateOf(latencies, performance.now() - began);
}

export function rateOf(latencies: number[], elapsedMs: number): Rate {
  latencies.sort((a, b) => a - b);
  const at = (share: number): number => latencies[Math.floor((latencies.length - 1) * share)] ?? 0;
  return { perSecond: (latencies.length * 1000) / elapsedMs, p50: at(0.5), p99: at(0.99) };
}

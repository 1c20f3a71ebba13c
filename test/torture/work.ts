import { setTimeout as sleep } from 'node:timers/promises';
import { Scheduler } from '../../src/cron/scheduler.ts';
import type { Engine } from '../../src/engine/engine.ts';
import { hasCode } from '../../src/errors/moirai-error.ts';
import { createLogger } from '../../src/log/logger.ts';
import { ArrivedReplies } from '../../src/outbound/arrived-replies.ts';
import { Outbox } from '../../src/outbound/outbox.ts';
import { SendFailure } from '../../src/platforms/platform.ts';
import { processTimers } from '../../src/queue/timers.ts';
import type { Received } from '../../src/store/transactions/conversations.ts';
import { between, type Random } from '../power-cut/random.ts';
import { type LineFile, type SentReply, sharedMicros } from './journal.ts';
import type { Faults } from './subscribers.ts';

const SILENT = createLogger({ level: 'silent', format: 'json' });

/** The real outbox of a process; its platform writes down what it takes before it says that it took it. */
export function makeOutbox(engine: Engine, random: Random, faults: Faults, sent: LineFile<SentReply>): Outbox {
  const send = async (text: string): Promise<null> => {
    await sleep(between(random, 0, 8));
    if (faults.on && random() < 0.05) throw new SendFailure('the platform is down', 20, 'transient');
    if (faults.on && random() < 0.02) throw new TypeError('the platform refuses');
    const [id = '', mark] = text.split('\n');
    sent.write({ id, marked: mark !== undefined, t: sharedMicros() });
    return null;
  };
  return new Outbox({
    ...{ engine, log: SILENT, random, arrived: new ArrivedReplies() },
    observer: { tried: () => undefined, sent: () => undefined },
    senders: () => [{ name: 'telegram', send: ({ text }) => send(text) }],
  });
}

/** The real scheduler of a process: a run is a turn that is begun, finished, and then its session ends. */
export function makeScheduler(engine: Engine, random: Random, wrong: (what: string) => void): Scheduler {
  return new Scheduler({
    ...{ engine, log: SILENT, random, timers: processTimers },
    mayRun: async () => true,
    promptOf: (job) => job.prompt,
    run: (received) => run(engine, random, received).catch((thrown: unknown) => report(thrown, wrong)),
    skipped: async () => undefined,
    passedOver: async () => undefined,
  });
}

async function run(engine: Engine, random: Random, { session, turn }: Received): Promise<void> {
  const begun = await engine.settle(() => engine.begin(session.id, turn.id));
  await sleep(between(random, 1, 60));
  const result = { outcome: 'done', response: 'done', model: null, usage: null } as const;
  await engine.finish({ sessionId: session.id, epoch: begun.session.epoch }, turn.id, result);
  await engine.settle((context) => engine.end(session.id, { reason: 'cron_complete', trigger: 'process' }, context));
}

/** Losing the lease, or the session to somebody who ended it, is no fault of the run. */
function report(thrown: unknown, wrong: (what: string) => void): void {
  const excused = ['lease_lost', 'fenced', 'session_ended', 'turn_not_found', 'illegal_move'] as const;
  if (!hasCode(thrown, ...excused)) wrong(`the run of a job: ${String(thrown)}`);
}

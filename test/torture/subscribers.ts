import { setTimeout as sleep } from 'node:timers/promises';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import type { NewSubscriber } from '../../src/events/dispatcher.ts';
import type { MoiraiEvent } from '../../src/lifecycle/events.ts';
import { between, type Random } from '../power-cut/random.ts';
import { type DeliveredEvent, deliveredFile, type LineFile, sharedMicros } from './journal.ts';
import { SUBSCRIPTIONS, type SubscriberName, type WorkerTask } from './settings.ts';

/** Shared by the subscribers of a process; off once the run drains. */
export interface Faults {
  on: boolean;
}

type Handler = NewSubscriber['handle'];
type Write = (event: MoiraiEvent) => void;

const TURNS_TIMEOUT_MS = 300;

/** The subscribers of one process: each writes down what it hears before it says that it heard it. */
export function makeSubscribers(task: WorkerTask, random: Random, faults: Faults): NewSubscriber[] {
  const make = (name: SubscriberName, handler: (write: Write) => Handler, limits: Partial<NewSubscriber>) => {
    const write = writeTo(deliveredFile(task.directory, name, task.worker, task.incarnation));
    return { name, events: SUBSCRIPTIONS[name], from: 'start' as const, handle: handler(write), ...limits };
  };
  return [
    make('everything', (write) => hasty(write, random, faults), { maxAttempts: 1000 }),
    make('endings', (write) => sour(write, random, faults), { maxAttempts: 2 }),
    make('turns', (write) => dreamy(write, random, faults), { timeoutMs: TURNS_TIMEOUT_MS, maxAttempts: 1000 }),
  ];
}

function writeTo(file: LineFile<DeliveredEvent>): Write {
  return ({ id, session_key, type, session_seq }) =>
    file.write({ id, key: session_key, type, session_seq, t: sharedMicros() });
}

/** Fast, and hardly ever wrong. */
function hasty(write: Write, random: Random, faults: Faults): Handler {
  return (event) => {
    if (faults.on && random() < 0.002) throw new TypeError('everything is in a bad mood');
    write(event);
  };
}

/** Slow; throws before or after it took an event; and cannot bear some events at all: those become dead letters. */
function sour(write: Write, random: Random, faults: Faults): Handler {
  return async (event) => {
    await sleep(between(random, 1, 12));
    if (faults.on && (isPoison(event.id) || random() < 0.005)) throw new TypeError('endings choked');
    write(event);
    if (faults.on && random() < 0.005) throw new TypeError('endings took it and threw');
  };
}

/** Is down for a while; hangs past its deadline, before or after it took an event; answers when nobody listens. */
function dreamy(write: Write, random: Random, faults: Faults): Handler {
  return async (event, signal) => {
    if (faults.on && Math.floor(Date.now() / 500) % 17 === 0) {
      throw new MoiraiError('subscriber_unavailable', 'turns is down');
    }
    const mood = faults.on ? random() : 1;
    if (mood < 0.003) return aborted(signal);
    if (mood < 0.006) await sleep(TURNS_TIMEOUT_MS + 100);
    write(event);
    if (mood > 0.006 && mood < 0.009) return aborted(signal);
  };
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error)));
}

function isPoison(id: string): boolean {
  let hash = 0;
  for (let i = 0; i < id.length; i++) hash = (Math.imul(hash, 31) + id.charCodeAt(i)) >>> 0;
  return hash % 199 === 0;
}

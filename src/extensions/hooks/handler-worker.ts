/**
 * Runs in a process of its own: starts the processes of all hooks, and listens to them. To start a process stops the one
 * that does it, the longer the more memory it has, and a hook that writes without end has to be read; the gateway, in
 * which people wait, does neither.
 */
import { MoiraiError } from '../../errors/moirai-error.ts';
import { processTimers } from '../../queue/timers.ts';
import { boundedLines } from '../host/output-lines.ts';
import { ProcessReaper } from '../host/process-reaper.ts';
import type { Handler } from './handler.ts';
import type { HandlerMessage, Order } from './handler-messages.ts';
import { makeHandler } from './make-handler.ts';

const reaper = new ProcessReaper();
const handlers = new Map<number, Handler>();
const calls = new Map<number, AbortController>();

// The gateway is gone: with us goes the other end of the process reaper's pipe, and with that everything we started.
process.on('disconnect', () => process.exit(0));
process.on('message', (order: Order) => {
  if (order.order === 'make') make(order);
  else if (order.order === 'abort') calls.get(order.call)?.abort();
  else void answer(order);
});

function say(word: HandlerMessage): void {
  process.send?.(word);
}

function make({ handler, file, facts }: Extract<Order, { order: 'make' }>): void {
  const sink = boundedLines(
    () => processTimers.elapsed(),
    (stream, line) => say({ word: 'said', handler, stream, line }),
    (lines) => say({ word: 'left out', handler, lines }),
  );
  handlers.set(handler, makeHandler(file, { ...facts, reaper, timers: processTimers, sink }));
}

async function answer(order: Exclude<Order, { order: 'make' | 'abort' }>): Promise<void> {
  const { call } = order;
  try {
    await obey(order);
    say({ word: 'done', call, error: null });
  } catch (thrown) {
    const { code, message } = MoiraiError.wrap(thrown, 'subscriber_failed');
    say({ word: 'done', call, error: { code, message } });
  }
}

async function obey(order: Exclude<Order, { order: 'make' | 'abort' }>): Promise<void> {
  if (order.order === 'leave') return reaper.close();
  const handler = handlers.get(order.handler);
  if (handler === undefined) throw new MoiraiError('subscriber_unavailable', 'the handler is gone');
  if (order.order === 'run') return run(order, handler);
  await (order.order === 'retire' ? handler.retire() : handler.close());
  handlers.delete(order.handler);
}

async function run({ call, handler, event }: Extract<Order, { order: 'run' }>, at: Handler): Promise<void> {
  const abort = new AbortController();
  calls.set(call, abort);
  const count = (): void => say({ word: 'processes', handler, count: at.processes });
  const running = at.run(event, abort.signal);
  count();
  try {
    await running;
  } finally {
    calls.delete(call);
    count();
  }
}

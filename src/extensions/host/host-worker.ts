/**
 * The host process: starts the processes of all extensions, and listens to them. To start a process stops the one that
 * does it, the longer the more memory it has, and one that writes without end has to be read; the gateway, in which people
 * wait, does neither. No code of an extension runs here.
 */
import { randomBytes } from 'node:crypto';
import { processTimers } from '../../queue/timers.ts';
import { HostedChild, killAll } from './hosted-child.ts';
import { LineBudget } from './output-lines.ts';
import { findMarked } from './process-family.ts';
import { ProcessReaper } from './process-reaper.ts';
import type { FromHost, ProcessSpec, ToHost } from './protocol.ts';

const MEMORY_CHECK_MS = 250;
/** Between two looks for what ended processes left behind: a look reads all of /proc. */
const SWEEP_MS = 200;

const token = randomBytes(8).toString('hex');
const reaper = new ProcessReaper(token);
const children = new Map<number, HostedChild>();
const budgets = new Map<string, LineBudget>();
const ended = new Set<number>();
let isSweeping = false;

// The gateway is gone: with us goes the other end of the reaper's pipe, and with that everything we started.
process.on('disconnect', () => process.exit(0));
process.on('message', (message: ToHost) => {
  if (message.type === 'start') return start(message.process, message.spec);
  const child = children.get(message.process);
  if (message.type === 'write') child?.write(message.line);
  else if (message.type === 'end') child?.end();
  else child?.kill(message.why);
});
setInterval(() => {
  for (const child of children.values()) child.checkMemory();
}, MEMORY_CHECK_MS).unref();

function start(number: number, spec: ProcessSpec): void {
  const child = new HostedChild(number, spec, { token, reaper, send, sweep, budget: budgetOf(spec.extension) });
  children.set(number, child);
  try {
    child.start();
  } catch (thrown) {
    const why = `did not start: ${thrown instanceof Error ? thrown.message : String(thrown)}`;
    send({ type: 'exit', process: number, exit: { code: null, why, lost: true } });
  }
}

function send(message: FromHost): void {
  if (message.type === 'exit') children.delete(message.process);
  // The other end may be gone; then so are we in a moment.
  process.send?.(message, undefined, {}, () => undefined);
}

/** One for all processes of an extension. */
function budgetOf(extension: string): LineBudget {
  const budget =
    budgets.get(extension) ?? new LineBudget(processTimers, (lines) => send({ type: 'left_out', extension, lines }));
  budgets.set(extension, budget);
  return budget;
}

/** Until a look finds nothing: whoever is killed may have started another meanwhile. */
function sweep(number: number): void {
  ended.add(number);
  if (isSweeping) return;
  isSweeping = true;
  setTimeout(() => {
    isSweeping = false;
    const looked = [...ended];
    const found = findMarked(token, ended);
    killAll(found);
    if (found.length === 0) for (const each of looked) ended.delete(each);
    else sweep(number);
  }, SWEEP_MS);
}

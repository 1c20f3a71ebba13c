/** Runs in the process of an extension: speaks the protocol on descriptor 3. */
import { Socket } from 'node:net';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import { inspect } from 'node:util';
import type { Fault, FromExtension, ToExtension } from './protocol.ts';

/** What a runner does. */
export interface Runner {
  /** Loads the extension, and says what it offers. */
  load(task: unknown): Promise<unknown>;
  call(call: unknown, signal: AbortSignal): unknown;
  received?(id: number, fault: Fault | null): void;
}

const LONGEST_ANSWER = 1_000_000;
const LONGEST_MESSAGE = 1000;

const gateway = new Socket({ fd: 3, readable: true, writable: true });
const working = new Map<number, AbortController>();

/** Serves the gateway until it is gone. */
export function serve(runner: Runner): void {
  gateway.on('error', () => process.exit(0));
  gateway.on('close', () => process.exit(0));
  process.on('uncaughtException', (thrown: unknown) => {
    const why = `threw ${thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : inspect(thrown)}`;
    console.error(thrown);
    gateway.write(lineOf({ type: 'dying', why: why.slice(0, LONGEST_MESSAGE) }), () => process.exit(1));
  });
  const lines = createInterface({ input: gateway });
  lines.on('line', (line) => obey(runner, JSON.parse(line) as ToExtension));
  lines.on('close', () => process.exit(0));
}

export function post(message: FromExtension): void {
  gateway.write(lineOf(message));
}

function obey(runner: Runner, message: ToExtension): void {
  if (message.type === 'load') void load(runner, message.task);
  else if (message.type === 'call') void work(runner, message.id, message.call);
  else if (message.type === 'abort') working.get(message.id)?.abort();
  else if (message.type === 'received') runner.received?.(message.id, message.fault);
  else post({ type: 'pong' });
}

async function load(runner: Runner, task: unknown): Promise<void> {
  try {
    post({ type: 'loaded', offer: await runner.load(task) });
  } catch (thrown) {
    post({ type: 'refused', fault: faultOf(thrown) });
  }
}

async function work(runner: Runner, id: number, call: unknown): Promise<void> {
  const abort = new AbortController();
  working.set(id, abort);
  post({ type: 'began', id });
  try {
    // What has no JSON, as a function, is no answer.
    const value = JSON.stringify(await runner.call(call, abort.signal)) ?? 'null';
    if (value.length > LONGEST_ANSWER) throw new RangeError(`answered with more than ${LONGEST_ANSWER} characters`);
    gateway.write(`{"type":"answer","id":${id},"value":${value}}\n`);
  } catch (thrown) {
    if (thrown instanceof Error && !isCoded(thrown)) console.error(thrown.stack);
    post({ type: 'fault', id, fault: faultOf(thrown) });
  } finally {
    working.delete(id);
  }
}

function lineOf(message: FromExtension): string {
  return `${JSON.stringify(message)}\n`;
}

function faultOf(thrown: unknown): Fault {
  return { message: describe(thrown).slice(0, LONGEST_MESSAGE), code: codeIn(thrown) };
}

function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return inspect(thrown);
  if (isCoded(thrown)) return thrown.message;
  // A module that cannot be parsed says where in the first line of its stack only.
  const [place = ''] = (thrown.stack ?? '').split('\n');
  const where = thrown instanceof SyntaxError && place.startsWith('file:') ? ` (${basename(place)})` : '';
  return `${thrown.name === 'Error' ? '' : `${thrown.name}: `}${thrown.message}${where}`;
}

/** An error of the gateway's own, which says in its message all there is to say. */
function isCoded(thrown: Error): boolean {
  return thrown.name === 'MoiraiError';
}

function codeIn(thrown: unknown, depth = 0): string | null {
  if (!(thrown instanceof Error) || depth > 3) return null;
  const { code } = thrown as { code?: unknown };
  return typeof code === 'string' ? code : codeIn(thrown.cause, depth + 1);
}

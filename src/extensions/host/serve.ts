/** Runs in the process of an extension: speaks the protocol on descriptor 3. */
import { Socket } from 'node:net';
import { basename } from 'node:path';
import { createInterface } from 'node:readline';
import { inspect } from 'node:util';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Fault, Message } from './protocol.ts';

/** A function that the gateway can call; an AbortSignal follows the arguments. */
export type Method = (...args: never[]) => unknown;

const LONGEST_ANSWER = 1_000_000;
const LONGEST_MESSAGE = 1000;

const gateway = new Socket({ fd: 3, readable: true, writable: true });
const working = new Map<number, AbortController>();
const asked = new Map<number, PromiseWithResolvers<unknown>>();
let nextId = 1;

/** Serves the gateway until it is gone. Methods may be added meanwhile; `load` is the first one that is called. */
export function serve(methods: ReadonlyMap<string, Method>): void {
  gateway.on('error', () => process.exit(0));
  gateway.on('close', () => process.exit(0));
  process.on('uncaughtException', (thrown: unknown) => {
    const why = `threw ${thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : inspect(thrown)}`;
    console.error(thrown);
    gateway.write(lineOf({ type: 'dying', why: why.slice(0, LONGEST_MESSAGE) }), () => process.exit(1));
  });
  const lines = createInterface({ input: gateway });
  lines.on('line', (line) => obey(methods, JSON.parse(line) as Message));
  lines.on('close', () => process.exit(0));
}

/** Has the gateway do something. Throws `plugin_failed` with the gateway's reason. */
export async function callGateway(method: string, ...args: unknown[]): Promise<unknown> {
  const id = nextId++;
  const answer = Promise.withResolvers<unknown>();
  asked.set(id, answer);
  post({ type: 'call', id, method, args });
  return answer.promise.finally(() => asked.delete(id));
}

function post(message: Message): void {
  gateway.write(lineOf(message));
}

function obey(methods: ReadonlyMap<string, Method>, message: Message): void {
  if (message.type === 'call') void work(methods, message);
  else if (message.type === 'abort') working.get(message.id)?.abort();
  else if (message.type === 'answer') asked.get(message.id)?.resolve(message.value);
  else if (message.type === 'fault') asked.get(message.id)?.reject(refusal(message.fault));
  else if (message.type === 'ping') post({ type: 'pong' });
}

async function work(
  methods: ReadonlyMap<string, Method>,
  { id, method, args }: Extract<Message, { type: 'call' }>,
): Promise<void> {
  const abort = new AbortController();
  working.set(id, abort);
  post({ type: 'began', id });
  try {
    const run = methods.get(method) as ((...args: unknown[]) => unknown) | undefined;
    if (run === undefined) throw notOffered(method);
    // What has no JSON, as a function, is no answer.
    const value = JSON.stringify(await run(...args, abort.signal)) ?? 'null';
    if (value.length > LONGEST_ANSWER) throw new RangeError(`answered with more than ${LONGEST_ANSWER} characters`);
    gateway.write(`{"type":"answer","id":${id},"value":${value}}\n`);
  } catch (thrown) {
    if (thrown instanceof Error && !(thrown instanceof MoiraiError)) console.error(thrown.stack);
    post({ type: 'fault', id, fault: faultOf(thrown) });
  } finally {
    working.delete(id);
  }
}

function lineOf(message: Message): string {
  return `${JSON.stringify(message)}\n`;
}

/** What an older version of the extension offered, this one may lack. */
export function notOffered(method: string): MoiraiError {
  const [, name = method] = method.split('/');
  return new MoiraiError('plugin_unavailable', `the plugin does not offer ${name} any more`);
}

function refusal({ message, code }: Fault): MoiraiError {
  return new MoiraiError('plugin_failed', message, { details: { code } });
}

function faultOf(thrown: unknown): Fault {
  return { message: describe(thrown).slice(0, LONGEST_MESSAGE), code: codeIn(thrown) };
}

function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return inspect(thrown);
  if (thrown instanceof MoiraiError) return thrown.message;
  // A module that cannot be parsed says where in the first line of its stack only.
  const [place = ''] = (thrown.stack ?? '').split('\n');
  const where = thrown instanceof SyntaxError && place.startsWith('file:') ? ` (${basename(place)})` : '';
  return `${thrown.name === 'Error' ? '' : `${thrown.name}: `}${thrown.message}${where}`;
}

function codeIn(thrown: unknown, depth = 0): string | null {
  if (!(thrown instanceof Error) || depth > 3) return null;
  const { code } = thrown as { code?: unknown };
  return typeof code === 'string' ? code : codeIn(thrown.cause, depth + 1);
}

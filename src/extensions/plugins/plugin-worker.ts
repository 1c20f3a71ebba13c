/** Runs in a thread of its own: loads one plugin, and does what the gateway calls for. */
import { registerHooks } from 'node:module';
import { constants, setPriority } from 'node:os';
import { basename, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { parentPort, workerData } from 'node:worker_threads';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { Answering } from './answering.ts';
import type { InboxMessage, PluginDefinition } from './api.ts';
import type { Call, Fault, FromThread, Offer, ThreadTask, ToThread } from './protocol.ts';
import { Registrations } from './registrations.ts';
import { ThreadOutput } from './thread-output.ts';

const LONGEST_ANSWER = 1_000_000;
/** More than these wait here for their turn, and not in the gateway. */
const MOST_RECEIVING = 64;

const task = workerData as ThreadTask;
const gateway = parentPort!;
const post = (message: FromThread): void => gateway.postMessage(message);
const output = new ThreadOutput((level, message, fields) => post({ type: 'line', level, message, fields }));
const registered = new Registrations();
const answering = new Answering(registered, receive);
const working = new Map<number, AbortController>();
const receiving = new Map<number, PromiseWithResolvers<void>>();
const waiting: (() => void)[] = [];
let nextId = 1;

// On Linux this is the priority of this thread alone; elsewhere it would be that of the whole gateway.
if (process.platform === 'linux') setPriority(0, constants.priority.PRIORITY_BELOW_NORMAL);
output.capture(process.stdout, 'stdout');
output.capture(process.stderr, 'stderr');

const api = new URL(import.meta.url.endsWith('.ts') ? './api.ts' : './api.js', import.meta.url).href;
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'moirai' ? { url: api, shortCircuit: true } : next(specifier, context),
});

gateway.on('message', (message: ToThread) => {
  if (message.type === 'call') void work(message.id, message.call);
  else if (message.type === 'abort') working.get(message.id)?.abort();
  else if (message.type === 'received') received(message.id, message.fault);
  else post({ type: 'pong' });
});

try {
  post({ type: 'loaded', offer: await load() });
} catch (thrown) {
  const { message, code } = faultOf(thrown);
  const file = join(basename(task.folder), basename(task.main));
  post({ type: 'refused', fault: { code, message: `${file}: ${message}` } });
}

async function load(): Promise<Offer> {
  const loaded = (await import(pathToFileURL(task.main).href)) as Partial<PluginDefinition> & { default?: unknown };
  const definition =
    typeof loaded.setup === 'function' ? loaded : (loaded.default as Partial<PluginDefinition> | undefined);
  if (typeof definition?.setup !== 'function') {
    const remedy = 'export function setup(ctx), or by default what definePlugin({ setup }) returns';
    throw new MoiraiError('plugin_invalid', `it exports no setup(ctx); ${remedy}`);
  }
  await definition.setup(registered.contextFor(task, output.log));
  return registered.seal();
}

async function work(id: number, call: Call): Promise<void> {
  const abort = new AbortController();
  working.set(id, abort);
  post({ type: 'began', id });
  try {
    // What has no JSON, as a function, is no answer.
    const value = JSON.stringify(await answering.answer(call, abort.signal)) ?? 'null';
    if (value.length > LONGEST_ANSWER) {
      throw new MoiraiError('plugin_failed', `answered with more than ${LONGEST_ANSWER} characters`);
    }
    post({ type: 'answer', id, value });
  } catch (thrown) {
    if (thrown instanceof Error && !(thrown instanceof MoiraiError)) console.error(thrown.stack);
    post({ type: 'fault', id, fault: faultOf(thrown) });
  } finally {
    working.delete(id);
  }
}

async function receive(platform: string, message: InboxMessage): Promise<void> {
  while (receiving.size >= MOST_RECEIVING) await new Promise<void>((next) => waiting.push(next));
  const id = nextId++;
  const durable = Promise.withResolvers<void>();
  receiving.set(id, durable);
  post({ type: 'receive', id, platform, message: JSON.parse(JSON.stringify(message)) as InboxMessage });
  await durable.promise;
}

function received(id: number, fault: Fault | null): void {
  const durable = receiving.get(id);
  receiving.delete(id);
  if (fault === null) durable?.resolve();
  else durable?.reject(new MoiraiError('plugin_failed', fault.message, { details: { code: fault.code } }));
  waiting.shift()?.();
}

function faultOf(thrown: unknown): Fault {
  const message = thrown instanceof MoiraiError ? thrown.message : describe(thrown);
  return { message: message.slice(0, 1000), code: codeIn(thrown) };
}

function describe(thrown: unknown): string {
  if (!(thrown instanceof Error)) return inspect(thrown);
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

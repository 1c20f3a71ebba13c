/** Runs in a process of its own: loads a handler in TypeScript or JavaScript, and hands it one event after another. */
import { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';

type Handle = (eventType: string, context: unknown) => unknown;

const gateway = new Socket({ fd: 3, readable: true, writable: true });
gateway.on('error', () => process.exit(0));
gateway.on('close', () => process.exit(0));

let handle: Handle | null = null;

for await (const line of createInterface({ input: gateway })) {
  const request = JSON.parse(line) as { file: string; type: string; context: unknown };
  try {
    if (handle === null) handle = await load(request.file);
    else await handle(request.type, request.context);
    answer(null);
  } catch (thrown) {
    answer(describe(thrown));
  }
}
process.exit(0);

async function load(file: string): Promise<Handle> {
  const loaded = (await import(pathToFileURL(file).href)) as { handle?: unknown; default?: { handle?: unknown } };
  const found = loaded.handle ?? loaded.default?.handle;
  if (typeof found !== 'function') throw new TypeError('it exports no function handle(eventType, context)');
  return found as Handle;
}

function answer(error: string | null): void {
  gateway.write(`${JSON.stringify({ error })}\n`);
}

function describe(thrown: unknown): string {
  if (thrown instanceof Error) console.error(thrown.stack);
  return (thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : inspect(thrown)).slice(0, 1000);
}

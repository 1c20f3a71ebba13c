/** Runs in a process of its own: loads a handler in TypeScript or JavaScript, and hands it one event after another. */
import { pathToFileURL } from 'node:url';
import { serve } from '../host/serve.ts';
import type { HandlerTask, HookCall } from './handler.ts';

type Handle = (eventType: string, context: unknown) => unknown;

let handle: Handle | null = null;

serve({
  async load(task) {
    const { file } = task as HandlerTask;
    const loaded = (await import(pathToFileURL(file).href)) as { handle?: unknown; default?: { handle?: unknown } };
    const found = loaded.handle ?? loaded.default?.handle;
    if (typeof found !== 'function') throw new TypeError('it exports no function handle(eventType, context)');
    handle = found as Handle;
  },
  async call(call) {
    const { type, context } = call as HookCall;
    await handle?.(type, context);
  },
});

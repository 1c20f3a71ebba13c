/** Runs in a process of its own: loads a handler in TypeScript or JavaScript, and hands it one event after another. */
import { pathToFileURL } from 'node:url';
import type { MoiraiEvent } from '../../lifecycle/events.ts';
import { type Method, serve } from '../host/serve.ts';
import type { HandlerTask } from './handler.ts';

const methods = new Map<string, Method>();
methods.set('load', async ({ file }: HandlerTask) => {
  const loaded = (await import(pathToFileURL(file).href)) as { handle?: unknown; default?: { handle?: unknown } };
  const handle = loaded.handle ?? loaded.default?.handle;
  if (typeof handle !== 'function') throw new TypeError('it exports no function handle(eventType, context)');
  methods.set('event', async (event: MoiraiEvent) => {
    await handle(event.type, event);
  });
});
serve(methods);

import { MoiraiError } from '../../errors/moirai-error.ts';
import { asSubscriber, type ExtensionProcess } from '../host/extension-process.ts';
import type { PluginMemoryProvider, PluginMemoryTool } from './api.ts';
import type { LivePlugin } from './live-plugin.ts';
import { MEMORY_METHODS, methodOf } from './names.ts';
import type { MemoryOffer } from './offer.ts';

/** A memory provider, as the gateway sees it. */
export type PluginMemory = PluginMemoryProvider & { readonly plugin: string };

const INITIALIZE_MS = 15_000;

/** What remembers in a plugin's process. It has the methods that the plugin's has, so that no others are called. */
export function pluginMemory(live: LivePlugin, offer: MemoryOffer): PluginMemory {
  const { name, kinds, methods } = offer;
  const called = methods
    .filter((method) => method !== 'initialize')
    .map((method) => [method, caller(live, name, method)]);
  return {
    ...{ plugin: live.name, name, ...(kinds === undefined ? {} : { kinds }) },
    ...Object.fromEntries(called),
    tools: offer.tools.map((tool) => memoryTool(live, name, tool)),
    initialize: async (context: { readonly folder: string }, signal: AbortSignal) => {
      live.memoryContexts.set(name, context);
      await ready(live, name, signal);
    },
  };
}

type Method = (...args: unknown[]) => Promise<unknown>;

/** The signal comes last, and crosses to its process in its own way. */
function caller(live: LivePlugin, provider: string, method: string): Method {
  return async (...given) => {
    const last = given.at(-1);
    const signal = last instanceof AbortSignal ? last : undefined;
    const args = signal === undefined ? given : given.slice(0, -1);
    try {
      await ready(live, provider, signal);
      const options = signal === undefined ? {} : { signal };
      return await live.call(methodOf('memoryProviders', provider, method), args, options);
    } catch (thrown) {
      throw asSubscriber(thrown);
    }
  };
}

function memoryTool(live: LivePlugin, provider: string, offer: MemoryOffer['tools'][number]): PluginMemoryTool {
  return {
    ...offer,
    run: async (args, { signal, scope, sessionId }) => {
      await ready(live, provider, signal);
      const given = [offer.name, args, { scope, sessionId }];
      return String(await live.call(methodOf('memoryProviders', provider, 'tool'), given, { signal }));
    },
  };
}

/** By process: the providers that were initialized in it, or are being. */
const initialized = new WeakMap<ExtensionProcess, Map<string, Promise<unknown>>>();

/** A process that was started since has to be initialized too, before anything else. */
async function ready(live: LivePlugin, provider: string, signal?: AbortSignal): Promise<void> {
  const { process } = live;
  const context = live.memoryContexts.get(provider);
  if (process === null) throw new MoiraiError('subscriber_unavailable', `${live.name} is being started again`);
  if (context === undefined || signal?.aborted) return;
  const known = initialized.get(process) ?? new Map<string, Promise<unknown>>();
  initialized.set(process, known);
  const method = methodOf('memoryProviders', provider, 'initialize');
  // Not with the caller's signal: others wait for the same.
  const done = known.get(provider) ?? process.call(method, [context], { timeoutMs: INITIALIZE_MS });
  known.set(provider, done);
  try {
    await done;
  } catch (cause) {
    known.delete(provider);
    const { message } = MoiraiError.wrap(cause);
    throw new MoiraiError('subscriber_unavailable', `the memory ${provider} is not ready: ${message}`, { cause });
  }
}

/** The memory of this name, whichever plugin brings it and whenever that is loaded; until then everything waits. */
export function awaitedMemory(
  name: string,
  find: () => PluginMemory | undefined,
  firstLoads: () => Promise<void>,
): PluginMemoryProvider {
  const method =
    (method: (typeof MEMORY_METHODS)[number]): Method =>
    async (...args) => {
      await firstLoads();
      const provider = find();
      if (provider !== undefined) return (provider[method] as Method | undefined)?.(...args);
      if (method === 'shutdown') return undefined;
      throw new MoiraiError('subscriber_unavailable', `no plugin that is loaded brings the memory "${name}"`);
    };
  const { remember, ...others } = Object.fromEntries(MEMORY_METHODS.map((each) => [each, method(each)]));
  return Object.defineProperties({ name, ...others } as PluginMemoryProvider, {
    kinds: { get: () => find()?.kinds },
    tools: { get: () => find()?.tools },
    // Until a plugin that brings it is loaded, it may be able to.
    remember: { get: () => (find() === undefined ? remember : find()?.remember) },
  });
}

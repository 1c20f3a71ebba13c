import { randomInt } from 'node:crypto';
import type { Figures } from '../api/figures.ts';
import type { Config } from '../config/config.ts';
import { Engine } from '../engine/engine.ts';
import { describeThisProcess } from '../engine/host.ts';
import { type Ids, timeSortedIds } from '../engine/ids.ts';
import { Dispatcher } from '../events/dispatcher.ts';
import { ExtensionHost } from '../extensions/host/extension-host.ts';
import type { Logger } from '../log/logger.ts';
import { createProviders } from '../memory/create-provider.ts';
import type { MemoryProvider } from '../memory/provider.ts';
import type { Store } from '../store/port.ts';
import { PluginBridge } from './plugin-bridge.ts';

/** What has to be there before a gateway can be made. */
export interface Foundation {
  readonly engine: Engine;
  readonly ids: Ids;
  readonly dispatcher: Dispatcher;
  /** Runs the processes of hooks and plugins. */
  readonly extensions: ExtensionHost;
  readonly plugins: PluginBridge;
  readonly providers: readonly MemoryProvider[];
}

/** Of what a gateway is told, what it stands on. */
export interface FoundationOptions {
  readonly config: Config;
  readonly store: Store;
  readonly version: string;
  readonly log: Logger;
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly primary: boolean;
  readonly memoryProviders?: readonly MemoryProvider[];
  readonly figures?: Figures;
}

/** Throws what no later start would change, such as `memory_provider`; then nothing of it stays behind. */
export async function createFoundation(options: FoundationOptions): Promise<Foundation> {
  const { config, store, version, log, environment, primary, figures } = options;
  const ids = timeSortedIds(Date.now, () => randomInt(2 ** 32) / 2 ** 32);
  const id = ids.command().replace(/^cmd/, 'ins');
  const instance = { id, name: config.gateway.name, version, ...describeThisProcess() };
  const engine = await Engine.boot({ store, ids, instance, leaseTtlMs: config.sessions.leaseTtlMs });
  const dispatcher = new Dispatcher({
    ...engine.queueDeps((error) => log.warn('the store did not take the outcome of a delivery', { error })),
    store,
    retried: (subscriber) => figures?.subscriberRetried(subscriber),
  });
  const extensions = new ExtensionHost(log);
  const plugins = await PluginBridge.start({ config, store, dispatcher, extensions, log, environment, primary });
  try {
    const brought = plugins.memoryProvider(config.memory.provider);
    const others = [...(options.memoryProviders ?? []), ...(brought === null ? [] : [brought])];
    const providers = createProviders(config.memory, store, others);
    return { engine, ids, dispatcher, extensions, plugins, providers };
  } catch (thrown) {
    await Promise.all([plugins.stop(), dispatcher.stop()]);
    await extensions.stop();
    await engine.stop();
    throw thrown;
  }
}

import { randomInt } from 'node:crypto';
import type { AgentRunner } from '../agent/runner.ts';
import type { ToolPorts } from '../agent/tools/ports.ts';
import type { Figures } from '../api/figures.ts';
import type { Config } from '../config/config.ts';
import { Engine } from '../engine/engine.ts';
import { describeThisProcess } from '../engine/host.ts';
import { type Ids, timeSortedIds } from '../engine/ids.ts';
import { StoreHealth } from '../engine/store-health.ts';
import { Dispatcher } from '../events/dispatcher.ts';
import { ExtensionHost } from '../extensions/host/extension-host.ts';
import type { Plugins } from '../extensions/plugins/plugins.ts';
import type { Session } from '../lifecycle/session.ts';
import type { Logger } from '../log/logger.ts';
import { createProviders } from '../memory/create-provider.ts';
import type { MemoryProvider } from '../memory/provider.ts';
import type { ArrivedReplies } from '../outbound/arrived-replies.ts';
import type { Sender } from '../platforms/platform.ts';
import type { ConfiguredPlatform } from '../platforms/registry.ts';
import { processTimers } from '../queue/timers.ts';
import type { Store } from '../store/port.ts';
import type { Tracer } from '../tracing/tracer.ts';
import { startPlugins } from './gateway-plugins.ts';

export interface GatewayOptions {
  readonly config: Config;
  readonly store: Store;
  readonly log: Logger;
  readonly version: string;
  /** Ways out beside the chat platforms. */
  readonly platforms: readonly Sender[];
  /** The chat platforms it is to be on; none unless said. */
  readonly chat?: readonly ConfiguredPlatform[];
  /** What hooks may see a harmless part of. */
  readonly environment: Readonly<Record<string, string | undefined>>;
  readonly makeRunner: (ports: ToolPorts) => AgentRunner;
  /** Restarts the gateway, unless its configuration is wrong (false); null where no gateway runs. */
  readonly restart: (() => Promise<boolean>) | null;
  /** The lease was lost, and the store takes writes: this gateway is over, and another one must begin. */
  readonly lost: () => void;
  /**
   * Also ends what expires, finds turns nobody runs, and announces its comings and goings. A terminal beside a gateway
   * leaves all that to it.
   */
  readonly primary: boolean;
  /** What plugins remember with; `memory.provider` says whether one of them does. */
  readonly memoryProviders?: readonly MemoryProvider[];
  /** Hears what is said to a conversation that nothing is sent to, beside its replies. */
  readonly onNote?: (session: Session, text: string) => void;
  /** What the process knows to have arrived, from this gateway and those before it; its own unless given. */
  readonly arrived?: ArrivedReplies;
  /** Where what is measured goes; nowhere unless given. */
  readonly figures?: Figures;
  /** Where traces go; null and nothing for nowhere. */
  readonly tracer?: Tracer | null;
}

/** What has to be there before a gateway can be made. */
export interface Foundation {
  readonly engine: Engine;
  readonly health: StoreHealth;
  readonly ids: Ids;
  readonly dispatcher: Dispatcher;
  /** Runs the processes of hooks and plugins. */
  readonly extensions: ExtensionHost;
  readonly plugins: Plugins;
  readonly providers: readonly MemoryProvider[];
}

/** Throws what no later start would change, such as `memory_provider`; then nothing of it stays behind. */
export async function createFoundation(options: GatewayOptions): Promise<Foundation> {
  const { config, version, log, figures } = options;
  const ids = timeSortedIds(Date.now, () => randomInt(2 ** 32) / 2 ** 32);
  const id = ids.command().replace(/^cmd/, 'ins');
  const instance = { id, name: config.gateway.name, version, ...describeThisProcess() };
  const health = new StoreHealth({
    ...{ store: options.store, instance: id, timers: processTimers },
    changed: (problem) => {
      if (problem === null) log.info('the store takes writes again');
      else log.error('the store takes no writes; nothing new is accepted', { error: problem });
    },
  });
  const store = health.watch(options.store);
  const engine = await Engine.boot({ store, ids, instance, leaseTtlMs: config.sessions.leaseTtlMs });
  const dispatcher = new Dispatcher({
    ...engine.queueDeps((error) => log.warn('the store did not take the outcome of a delivery', { error })),
    store,
    retried: (subscriber) => figures?.subscriberRetried(subscriber),
  });
  const extensions = new ExtensionHost(log);
  const plugins = await startPlugins(options, dispatcher, extensions);
  try {
    const brought = plugins.memoryProvider(config.memory.provider);
    const others = [...(options.memoryProviders ?? []), ...(brought === null ? [] : [brought])];
    const providers = createProviders(config.memory, store, others);
    return { engine, health, ids, dispatcher, extensions, plugins, providers };
  } catch (thrown) {
    await Promise.all([plugins.stop(), dispatcher.stop()]);
    await extensions.stop();
    await engine.stop();
    throw thrown;
  }
}

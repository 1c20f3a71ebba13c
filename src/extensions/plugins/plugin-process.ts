import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Logger } from '../../log/logger.ts';
import { nodeCommand } from '../host/environment.ts';
import type { ExtensionHost } from '../host/extension-host.ts';
import { ExtensionProcess } from '../host/extension-process.ts';
import type { ProcessSpec } from '../host/protocol.ts';
import type { InboxMessage } from './api.ts';
import { OFFER, type Offer, type PluginTask } from './offer.ts';
import { moduleName, type UsablePlugin } from './plugin-kind.ts';

/** How long a plugin's process may take for what. */
export interface PluginLimits {
  readonly loadMs: number;
  /** Between two questions whether it is still there. */
  readonly pingMs: number;
  /** So many questions in a row without an answer, and it is ended. */
  readonly pings: number;
  /** What is under way when it is replaced has so long to finish. */
  readonly graceMs: number;
  readonly unloadMs: number;
}

export const PLUGIN_LIMITS: PluginLimits = { loadMs: 15_000, pingMs: 5000, pings: 6, graceMs: 10_000, unloadMs: 3000 };

/** What processes of plugins are made and served with. */
export interface PluginDeps {
  readonly home: string;
  readonly host: ExtensionHost;
  readonly log: Logger;
  readonly limits: PluginLimits;
  readonly environment: Readonly<Record<string, string>>;
  /** How long a plugin may work on one event, unless its plugin.yaml says so. */
  readonly timeoutMs: number;
  /** A process was loaded: what its plugin offers may be something else. Resolves when that is in force. */
  readonly changed: () => Promise<void>;
  /** Brings what is started in line with what is wanted. */
  readonly settle: () => Promise<void>;
}

/** What a process has beside its heap. */
const BESIDE_HEAP_MB = 256;
/** People wait for plugins, but for the gateway first. */
const NICENESS = 5;

/** Starts a process and loads the plugin in it; `receive` takes messages of its platforms. Throws `plugin_invalid`, or `plugin_unavailable` when it died or hung. */
export async function loadPlugin(
  plugin: UsablePlugin,
  { home, host, limits, environment }: PluginDeps,
  receive: (platform: string, message: InboxMessage) => Promise<void>,
  signal: AbortSignal,
): Promise<{ process: ExtensionProcess; offer: Offer }> {
  const { name, folder, main, manifest } = plugin;
  const { config, gates, memoryMb: heapMb } = manifest;
  const command = nodeCommand('plugin-worker', import.meta.url, heapMb);
  const task: PluginTask = { name, folder, home, main, config, gates };
  const spec: ProcessSpec = {
    kind: 'plugin',
    name,
    command,
    folder,
    environment,
    stdin: null,
    niceness: NICENESS,
    memoryMb: heapMb + BESIDE_HEAP_MB,
  };
  const methods = new Map([
    ['receive', (platform: unknown, message: unknown) => receive(String(platform), message as InboxMessage)],
  ]);
  const options = { spec, task, loadMs: limits.loadMs, onLate: 'abort', pulse: limits, methods } as const;
  try {
    const loaded = await ExtensionProcess.load(host, options, signal);
    const offer = OFFER.safeParse(loaded.offer);
    if (offer.success) return { process: loaded.process, offer: offer.data };
    loaded.process.kill('sent an offer that cannot be read');
    throw new MoiraiError('plugin_invalid', 'it sent an offer that cannot be read');
  } catch (thrown) {
    const { code, message, details } = MoiraiError.wrap(thrown);
    if (code !== 'plugin_invalid') throw thrown;
    throw new MoiraiError(code, `${moduleName(plugin)}: ${message}`, { details });
  }
}

/** Lets what is under way finish for a while, then has the plugin leave, and ends its process. */
export async function retirePlugin(
  process: ExtensionProcess,
  { limits, log }: PluginDeps,
  graceMs = limits.graceMs,
): Promise<void> {
  await process.untilIdle(graceMs);
  try {
    await process.call('unload', [], { timeoutMs: limits.unloadMs });
  } catch (thrown) {
    // It ends now in any case.
    if (!process.isGone) log.warn('plugin did not leave properly', { error: MoiraiError.wrap(thrown).message });
  }
  process.kill('was unloaded');
  await process.gone;
}

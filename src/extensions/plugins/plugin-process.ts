import { fileURLToPath } from 'node:url';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Logger } from '../../log/logger.ts';
import type { Timers } from '../../queue/timers.ts';
import type { ExtensionHost } from '../host/extension-host.ts';
import { ExtensionProcess, type ExtensionProcessOptions } from '../host/extension-process.ts';
import type { InboxMessage } from './api.ts';
import { GATE_NAMES } from './names.ts';
import { moduleName, type UsablePlugin } from './plugin-kind.ts';
import type { Offer, PluginTask } from './protocol.ts';

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
  readonly timers: Timers;
  readonly log: Logger;
  readonly limits: PluginLimits;
  readonly environment: Readonly<Record<string, string>>;
  /** Takes a message that came over a plugin's platform; resolves when it is durable. */
  readonly receive: (plugin: string, platform: string, message: InboxMessage) => Promise<void>;
}

const NODE_OPTIONS = ['--disable-warning=ExperimentalWarning', '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON'];
/** What a process has beside its heap. */
const BESIDE_HEAP_MB = 256;
/** People wait for plugins, but for the gateway first. */
const NICENESS = 5;

/** Starts a process and loads the plugin in it. Throws `plugin_invalid`, or `plugin_unavailable` when it died or hung. */
export async function loadPlugin(
  plugin: UsablePlugin,
  { home, host, timers, limits, environment, receive }: PluginDeps,
  signal: AbortSignal,
): Promise<ExtensionProcess> {
  const { name, folder, main, manifest } = plugin;
  const worker = import.meta.url.endsWith('.ts') ? './plugin-worker.ts' : './plugin-worker.js';
  const runner = fileURLToPath(new URL(worker, import.meta.url));
  const command = [process.execPath, ...NODE_OPTIONS, `--max-old-space-size=${manifest.memoryMb}`, runner];
  const task: PluginTask = { name, folder, home, main, config: manifest.config, gates: manifest.gates };
  const memoryMb = manifest.memoryMb + BESIDE_HEAP_MB;
  const spec = { extension: `plugin:${name}`, command, folder, environment, stdin: null, niceness: NICENESS, memoryMb };
  const options: ExtensionProcessOptions = {
    ...{ name, spec, task, loadMs: limits.loadMs, pulse: limits },
    onLate: 'abort',
    receive: (platform, message) => receive(name, platform, message as InboxMessage),
  };
  try {
    const loaded = await ExtensionProcess.load(host, options, timers, signal);
    if (isOffer(loaded.offer)) return loaded;
    loaded.kill('sent an offer that cannot be read');
    throw new MoiraiError('plugin_invalid', 'it sent an offer that cannot be read');
  } catch (thrown) {
    const { code, message, details } = MoiraiError.wrap(thrown);
    if (code !== 'plugin_invalid') throw thrown;
    throw new MoiraiError(code, `${moduleName(plugin)}: ${message}`, { details });
  }
}

/** What a loaded plugin registered. */
export function offerOf({ offer }: ExtensionProcess): Offer {
  return offer as Offer;
}

/** Lets what is under way finish for a while, then has the plugin leave, and ends its process. */
export async function retirePlugin(
  loaded: ExtensionProcess,
  deps: PluginDeps,
  graceMs = deps.limits.graceMs,
): Promise<void> {
  await loaded.untilIdle(graceMs);
  try {
    await loaded.call({ what: 'unload' }, { timeoutMs: deps.limits.unloadMs });
  } catch (thrown) {
    // It ends now in any case.
    if (!loaded.isGone) deps.log.warn('plugin did not leave properly', { error: MoiraiError.wrap(thrown).message });
  }
  loaded.kill('was unloaded');
  await loaded.gone;
}

type Entry = Readonly<Record<string, unknown>>;

/** It comes from another process, in which the plugin can do what it likes. */
function isOffer(offer: unknown): offer is Offer {
  if (typeof offer !== 'object' || offer === null) return false;
  const { events, gates, tools, commands, memoryProviders, platforms } = offer as Entry;
  const isListOf = (list: unknown, is: (entry: Entry) => boolean): boolean =>
    Array.isArray(list) && list.every((entry) => typeof entry === 'object' && entry !== null && is(entry as Entry));
  const isTool = ({ name, description, inputSchema }: Entry): boolean =>
    typeof name === 'string' && typeof description === 'string' && typeof inputSchema === 'object';
  const isNamed = ({ name }: Entry): boolean => typeof name === 'string';
  return (
    Array.isArray(events) &&
    events.every((event) => typeof event === 'string') &&
    isListOf(gates, ({ gate }) => GATE_NAMES.some((name) => name === gate)) &&
    isListOf(tools, isTool) &&
    isListOf(commands, (entry) => isNamed(entry) && typeof entry.summary === 'string') &&
    isListOf(
      memoryProviders,
      (entry) => isNamed(entry) && Array.isArray(entry.methods) && isListOf(entry.tools, isTool),
    ) &&
    isListOf(platforms, (entry) => isNamed(entry) && typeof entry.maxText === 'number')
  );
}

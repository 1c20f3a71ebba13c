/** Runs in a process of its own: loads one plugin, and does what the gateway calls for. */
import { registerHooks } from 'node:module';
import { pathToFileURL } from 'node:url';
import { inspect } from 'node:util';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { LOG_ENTRY } from '../host/protocol.ts';
import { serve } from '../host/serve.ts';
import type { PluginDefinition, PluginLog } from './api.ts';
import type { Offer, PluginTask } from './offer.ts';
import { Registrations } from './registrations.ts';

const LONGEST_MESSAGE = 2000;
const LONGEST_FIELDS = 4000;

const registered = new Registrations();

const api = new URL(import.meta.url.endsWith('.ts') ? './api.ts' : './api.js', import.meta.url).href;
registerHooks({
  resolve: (specifier, context, next) =>
    specifier === 'moirai' ? { url: api, shortCircuit: true } : next(specifier, context),
});

registered.methods.set('load', load);
serve(registered.methods);

async function load(task: PluginTask): Promise<Offer> {
  const loaded = (await import(pathToFileURL(task.main).href)) as Partial<PluginDefinition> & { default?: unknown };
  const definition =
    typeof loaded.setup === 'function' ? loaded : (loaded.default as Partial<PluginDefinition> | undefined);
  if (typeof definition?.setup !== 'function') {
    const remedy = 'export function setup(ctx), or by default what definePlugin({ setup }) returns';
    throw new MoiraiError('plugin_invalid', `it exports no setup(ctx); ${remedy}`);
  }
  await definition.setup(registered.contextFor(task, log()));
  return registered.seal(task.gates);
}

/** On standard output, as everything else it writes, so that the same limits hold for it. */
function log(): PluginLog {
  const writer =
    (level: keyof PluginLog): PluginLog['info'] =>
    (message, fields = {}) => {
      const entry = { level, message: String(message).slice(0, LONGEST_MESSAGE), fields: plain(fields) };
      process.stdout.write(`${LOG_ENTRY}${JSON.stringify(entry)}\n`);
    };
  return { debug: writer('debug'), info: writer('info'), warn: writer('warn'), error: writer('error') };
}

/** Whatever it is, as something that can be sent, and not too long. */
function plain(fields: unknown): object {
  try {
    const text = JSON.stringify(fields, (_, value) => (value instanceof Error ? value.stack : value));
    if (text !== undefined && text.length <= LONGEST_FIELDS) return JSON.parse(text) as object;
  } catch {
    // It refers to itself, or cannot be told in JSON: then as a person would see it.
  }
  return { fields: inspect(fields, { depth: 2 }).slice(0, LONGEST_FIELDS) };
}

import { MoiraiError } from '../../errors/moirai-error.ts';
import type { ConversationRef } from '../../store/transactions/conversations.ts';
import type { PluginToolContext } from './api.ts';
import { type PluginGate, pluginGates } from './gates.ts';
import type { LivePlugin } from './live-plugin.ts';
import { type PluginMemory, pluginMemory } from './memory-offer.ts';
import { methodOf, OFFER_WORDS, type OfferKind } from './names.ts';
import type { Offer, ToolOffer } from './offer.ts';
import type { PluginPlatform } from './plugin-platform.ts';

/** Names that are not for plugins, for the gateway has them itself. */
export type ReservedNames = { readonly [Kind in OfferKind]?: readonly string[] };

/** What a plugin offers, as the gateway sees it. */
export interface Offers {
  readonly gates: readonly PluginGate[];
  readonly tools: readonly PluginTool[];
  readonly commands: readonly PluginCommand[];
  readonly memoryProviders: readonly PluginMemory[];
  readonly platforms: readonly PluginPlatform[];
}

/** Made once for each process, so that the agent can tell by the objects whether its tools are the same. */
export function makeOffers(live: LivePlugin, offer: Offer): Offers {
  return {
    gates: pluginGates(live, offer.gates),
    tools: offer.tools.map((tool) => pluginTool(live, tool)),
    commands: offer.commands.map((command) => pluginCommand(live, command)),
    memoryProviders: offer.memoryProviders.map((provider) => pluginMemory(live, provider)),
    platforms: offer.platforms.map((platform) => live.platform(platform)),
  };
}

/** Something that a plugin offers by a name, and why in vain: the gateway or another plugin has the name. */
export interface Claim<Kind extends OfferKind> {
  readonly offer: Offers[Kind][number];
  readonly problem: string | null;
}

/** Everything of one kind that plugins offer, in their order: of two with one name the first counts. */
export function claimsOf<Kind extends OfferKind>(
  kind: Kind,
  plugins: readonly LivePlugin[],
  reserved: ReservedNames,
): Claim<Kind>[] {
  const owners = new Map(reserved[kind]?.map((name) => [name, 'the gateway']));
  const offers: readonly Offers[Kind][number][] = plugins.flatMap(
    (live): readonly Offers[Kind][number][] => live.offers[kind],
  );
  return offers.map((offer) => {
    const owner = owners.get(offer.name);
    owners.set(offer.name, owner ?? offer.plugin);
    return { offer, problem: owner === undefined ? null : `the ${OFFER_WORDS[kind]} "${offer.name}" is ${owner}'s` };
  });
}

/** Something the model may do, as the gateway sees it. */
export interface PluginTool extends Omit<ToolOffer, 'danger'> {
  readonly plugin: string;
  /** At once: what the plugin itself has to say about these arguments is asked by `askDanger` before. */
  dangerous(args: unknown): string | null;
  /** Asks the plugin what is dangerous about these arguments, and keeps the answer for `dangerous`. */
  askDanger(args: unknown): Promise<void>;
  run(args: unknown, context: PluginToolContext): Promise<string>;
}

/** What a command has to know of its use. */
export interface PluginCommandUse {
  readonly name: string;
  readonly args: string;
  readonly conversation: Pick<ConversationRef, 'key' | 'platform' | 'userId'>;
  readonly session: { readonly id: string } | null;
}

/** A slash command, as the gateway sees it. */
export type PluginCommand = Offer['commands'][number] & {
  readonly plugin: string;
  run(use: PluginCommandUse): Promise<string>;
};

const COMMAND_MS = 60_000;
const DANGER_MS = 2000;

/** What plugins said about the arguments of a call. Kept here, for the agent may run a tool that it got before a reload. */
const verdicts = new WeakMap<object, { readonly tool: string; readonly text: string | null }>();

function pluginTool(live: LivePlugin, { danger, ...offer }: ToolOffer): PluginTool {
  const { name } = offer;
  return {
    ...offer,
    plugin: live.name,
    dangerous: (args) => {
      if (danger !== 'depends') return danger?.text ?? null;
      const verdict = isObject(args) ? verdicts.get(args) : undefined;
      // The plugin was not asked: then a person is asked.
      return verdict?.tool === name ? verdict.text : name;
    },
    askDanger: async (args) => {
      if (danger !== 'depends' || !isObject(args)) return;
      try {
        const text = await live.call(methodOf('tools', name, 'danger'), [args], { timeoutMs: DANGER_MS });
        verdicts.set(args, { tool: name, text: typeof text === 'string' ? text : null });
      } catch {
        // It cannot say: `dangerous` has a person asked.
        verdicts.delete(args);
      }
    },
    run: async (args, { signal, sessionId, turnId, platform, userId }) => {
      const context = { sessionId, turnId, platform, userId };
      try {
        return textOf(await live.call(methodOf('tools', name, 'run'), [args, context], { signal }));
      } catch (thrown) {
        throw toolFailure(thrown);
      }
    },
  };
}

function pluginCommand(live: LivePlugin, offer: Offer['commands'][number]): PluginCommand {
  const { name } = offer;
  return {
    ...offer,
    plugin: live.name,
    run: async ({ args, conversation, session }) => {
      const { platform, userId: user_id, key: session_key } = conversation;
      const call = { name, args, platform, user_id, session_key, session_id: session?.id ?? null };
      return textOf(await live.call(methodOf('commands', name, 'run'), [call], { timeoutMs: COMMAND_MS }));
    },
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

/** With words for the model: it has to know whether something may have happened. */
function toolFailure(thrown: unknown): MoiraiError {
  const error = MoiraiError.wrap(thrown, 'tool_failed');
  const { code, details } = error;
  if (code === 'plugin_unavailable') return failure('the plugin is not available now, and nothing was done', error);
  if (details.died === true) return failure('the plugin died over it; it may have taken effect in part', error);
  return failure(typeof details.thrown === 'string' ? details.thrown : error.message, error);
}

function failure(message: string, cause: MoiraiError): MoiraiError {
  return new MoiraiError('tool_failed', message, { cause });
}

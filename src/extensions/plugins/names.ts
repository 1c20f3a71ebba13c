import { MoiraiError } from '../../errors/moirai-error.ts';
import {
  assertPattern,
  EVENT_TYPES,
  type EventType,
  type MoiraiEvent,
  matches,
  nearestName,
} from '../../lifecycle/events.ts';
import type { GateName, NamedEvents } from './api.ts';

/** What is heard under a name. */
export interface Observed {
  /** Of the log; none for what is not in it. */
  readonly patterns: readonly string[];
  /** The event as it is heard; null when this one is not meant. */
  view(event: MoiraiEvent): MoiraiEvent | null;
}

const NAMED: Readonly<Record<keyof NamedEvents, Observed>> = {
  on_session_start: ofType('session:start'),
  on_session_finalize: { patterns: ['session:end', 'session:resume_pending'], view: finalized },
  on_session_reset: ofType('session:reset'),
  post_llm_call: ofType('agent:end', ({ outcome }) => outcome === 'done'),
  post_tool_call: { patterns: [], view: () => null },
};

const GATES: Readonly<Record<GateName, true>> = { pre_gateway_dispatch: true, pre_llm_call: true, pre_tool_call: true };

/** What a plugin offers by a name, which only one plugin can have; each kind with the word that people read. */
export const OFFER_WORDS = {
  tools: 'tool',
  commands: 'command',
  memoryProviders: 'memory provider',
  platforms: 'platform',
} as const;

export type OfferKind = keyof typeof OFFER_WORDS;
export const OFFER_KINDS = Object.keys(OFFER_WORDS) as OfferKind[];

/** The name under which a function of what is offered is called in the plugin's process. */
export function methodOf(kind: OfferKind | 'gates', name: string, func: string | number): string {
  return `${kind}/${name}/${func}`;
}

export const MEMORY_METHODS = [
  ...['initialize', 'systemPromptBlock', 'prefetch', 'onTurnStart', 'syncTurn', 'onPreCompress'],
  ...['onSessionEnd', 'onSessionSwitch', 'remember', 'shutdown'],
] as const;

/** As long as a gate may take. */
export const LONGEST_GATE_MS = 60_000;

const NAMES = Object.keys(NAMED);
export const GATE_NAMES = Object.keys(GATES) as GateName[];

/** A plugin gets the events that any of its observers wants; `view` picks those of one observer. */
function ofType(type: EventType, isMeant: (event: MoiraiEvent) => boolean = () => true): Observed {
  return { patterns: [type], view: (event) => (event.type === type && isMeant(event) ? event : null) };
}

/** A session that a stop interrupted is not over; its observers hear of it with the reason `shutdown`. */
function finalized(event: MoiraiEvent): MoiraiEvent | null {
  if (event.type === 'session:end') return event;
  if (event.type !== 'session:resume_pending') return null;
  return event.reason === 'restart' || event.reason === 'shutdown' ? { ...event, reason: 'shutdown' } : null;
}

/** What `ctx.on` hears under a name. Throws `unknown_event` for a name that no event can have. */
export function observedUnder(name: string): Observed {
  if (Object.hasOwn(NAMED, name)) return NAMED[name as keyof NamedEvents];
  if (name === 'on_session_end') throw unknown(name, TURN_OR_SESSION);
  if (Object.hasOwn(GATES, name)) throw unknown(name, `it is a gate: register it with ctx.gate("${name}", ...)`);
  if (name !== '*' && !name.includes(':')) {
    throw unknown(name, `did you mean "${nearestName(name, [...NAMES, ...EVENT_TYPES])}"?`);
  }
  assertPattern(name);
  return { patterns: [name], view: (event) => (matches(name, event.type) ? event : null) };
}

const TURN_OR_SESSION =
  'the end of a turn is "agent:end" (or "post_llm_call", when it was answered); ' +
  'the end of a session is "on_session_finalize" (or "session:end")';

/** Throws `unknown_event` for what is no gate. */
export function assertGate(name: string): asserts name is GateName {
  if (Object.hasOwn(GATES, name)) return;
  if (Object.hasOwn(NAMED, name)) throw unknown(name, `it is no gate: register it with ctx.on("${name}", ...)`);
  throw unknown(name, `did you mean the gate "${nearestName(name, GATE_NAMES)}"?`);
}

function unknown(name: string, instead: string): MoiraiError {
  return new MoiraiError('unknown_event', `nothing is called "${name}" here; ${instead}`, { details: { name } });
}

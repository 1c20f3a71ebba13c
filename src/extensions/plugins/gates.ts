import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import { Breaker } from '../host/breaker.ts';
import type { DispatchQuestion, GateName, ToolQuestion, TurnQuestion } from './api.ts';
import type { LivePlugin } from './live-plugin.ts';
import type { PluginDeps } from './plugin-process.ts';
import type { GateOffer } from './protocol.ts';

export type DispatchVerdict =
  | { readonly action: 'pass'; readonly text: string }
  | { readonly action: 'skip'; readonly reason: string | null; readonly plugin: string };

export type ToolVerdict =
  | { readonly action: 'pass'; readonly args: unknown }
  | { readonly action: 'block'; readonly reason: string; readonly plugin: string };

const USUAL_MS = 2000;
const LONGEST_CONTEXT = 32_000;

/** A gate that could not be asked, or gave no proper answer, and is closed then. */
interface Shut {
  readonly shut: string;
}

/** What is asked before something happens. */
export interface Gate {
  readonly gate: GateName;
  readonly plugin: string;
  /** Null for nothing. */
  ask(question: object): Promise<Record<string, unknown> | Shut | null>;
  /** What an answer means that this gate does not know. */
  misunderstood(answer: Record<string, unknown>): Shut | null;
}

/** The gate of a plugin that cannot be used, and wants it closed then. */
export function closedGate(gate: GateName, plugin: string, problem: string): Gate {
  const answer: Shut = { shut: shutText(gate, plugin, problem) };
  return { gate, plugin, ask: async () => answer, misunderstood: () => answer };
}

function shutText(gate: GateName, plugin: string, why: string): string {
  return `${gate} of ${plugin} did not let it pass: ${why}`;
}

/**
 * One gate of one plugin, behind its deadline. A gate that does not answer rests for a while, and is treated meanwhile
 * as one that failed: it does not cost every message its deadline.
 */
export class PluginGate implements Gate {
  readonly gate: GateName;
  readonly #live: LivePlugin;
  readonly #index: number;
  readonly #offer: GateOffer;
  readonly #deps: Pick<PluginDeps, 'timers' | 'log'>;
  readonly #breaker: Breaker;
  #asked = 0;

  /** `index` counts the gates of this name that the plugin has. */
  constructor(live: LivePlugin, index: number, offer: GateOffer, deps: Pick<PluginDeps, 'timers' | 'log'>) {
    this.gate = offer.gate;
    this.#live = live;
    this.#index = index;
    this.#offer = offer;
    this.#deps = deps;
    this.#breaker = new Breaker(() => deps.timers.elapsed());
  }

  get plugin(): string {
    return this.#live.name;
  }

  async ask(question: object): Promise<Record<string, unknown> | Shut | null> {
    if (!this.#breaker.admit()) return this.#shutFor('it rests, for it did not answer');
    const live = this.#live;
    const timeoutMs = this.#offer.timeoutMs ?? live.plugin.manifest.gateTimeoutMs ?? USUAL_MS;
    try {
      const answer = await live.call({ what: 'gate', gate: this.gate, index: this.#index, question }, { timeoutMs });
      this.#breaker.succeeded();
      if (answer === null || (typeof answer === 'object' && !Array.isArray(answer))) {
        return answer as Record<string, unknown> | null;
      }
      return this.#failed('its answer is no object');
    } catch (thrown) {
      const error = MoiraiError.wrap(thrown);
      this.#judge(error);
      return this.#failed(error.message);
    }
  }

  misunderstood(answer: Record<string, unknown>): Shut | null {
    return this.#failed(`its answer has the action "${String(answer.action)}"`);
  }

  /** A process that did not even begin is no use asking; one that was slow several times in a row is not, either. */
  #judge(error: MoiraiError): void {
    if (error.details.busy === true) this.#breaker.trip();
    else if (hasCode(error, 'plugin_timeout')) this.#breaker.failed(String(this.#asked++));
    else if (this.#live.process !== null) this.#breaker.succeeded();
    else this.#breaker.calledOff();
  }

  #failed(why: string): Shut | null {
    const { onFailure } = this.#offer;
    this.#deps.log.warn('gate failed', { plugin: this.plugin, gate: this.gate, why, went: onFailure });
    return this.#shutFor(why);
  }

  /** Null where it is open. */
  #shutFor(why: string): Shut | null {
    return this.#offer.onFailure === 'closed' ? { shut: shutText(this.gate, this.plugin, why) } : null;
  }
}

/** Asks who may keep a message from the agent, one after another; what one rewrites is what the next one sees. */
export async function askDispatch(gates: readonly Gate[], question: DispatchQuestion): Promise<DispatchVerdict> {
  let { text } = question;
  for (const gate of gates) {
    const answer = understood(gate, await gate.ask({ ...question, text }), (given) => isSkip(given) || isText(given));
    if (answer === null) continue;
    if ('shut' in answer) return { action: 'skip', reason: String(answer.shut), plugin: gate.plugin };
    if (isText(answer)) text = answer.text;
    else return { action: 'skip', reason: textOrNull(answer.reason), plugin: gate.plugin };
  }
  return { action: 'pass', text };
}

/** Asks who may keep a tool from being run, one after another. */
export async function askTool(gates: readonly Gate[], question: ToolQuestion): Promise<ToolVerdict> {
  let { args } = question;
  for (const gate of gates) {
    const answer = understood(gate, await gate.ask({ ...question, args }), (given) => isBlock(given) || isArgs(given));
    if (answer === null) continue;
    const { plugin } = gate;
    if ('shut' in answer) return { action: 'block', reason: String(answer.shut), plugin };
    if (isArgs(answer)) args = answer.args;
    else return { action: 'block', reason: textOrNull(answer.reason) ?? `${plugin} does not allow it`, plugin };
  }
  return { action: 'pass', args };
}

/** What plugins add to a turn, in the order of their names; null for nothing. They do not wait for each other. */
export async function askContext(gates: readonly Gate[], question: TurnQuestion): Promise<string | null> {
  const answers = await Promise.all(gates.map((gate) => gate.ask(question)));
  const texts = answers.map((answer) => (answer !== null && 'context' in answer ? textOrNull(answer.context) : null));
  const joined = texts.filter((text) => text !== null && text.trim() !== '').join('\n\n');
  return joined === '' ? null : joined.slice(0, LONGEST_CONTEXT).toWellFormed();
}

type Given = Record<string, unknown>;

function understood(gate: Gate, answer: Given | Shut | null, knows: (given: Given) => boolean): Given | null {
  if (answer === null || 'shut' in answer) return answer as Given | null;
  if (answer.action === undefined || answer.action === 'allow') return null;
  return knows(answer) ? answer : (gate.misunderstood(answer) as Given | null);
}

function isSkip({ action }: Given): boolean {
  return action === 'skip';
}

function isText(given: Given): given is { action: 'rewrite'; text: string } {
  return given.action === 'rewrite' && typeof given.text === 'string';
}

function isBlock({ action }: Given): boolean {
  return action === 'block';
}

function isArgs(given: Given): given is { action: 'rewrite'; args: unknown } {
  return given.action === 'rewrite' && given.args !== undefined;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

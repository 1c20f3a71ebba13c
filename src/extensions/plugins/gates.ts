import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import { Breaker } from '../host/breaker.ts';
import type { DispatchQuestion, GateName, ToolQuestion, TurnQuestion } from './api.ts';
import type { LivePlugin } from './live-plugin.ts';
import { methodOf } from './names.ts';
import type { GateOffer } from './offer.ts';

export type DispatchVerdict =
  | { readonly action: 'pass'; readonly text: string }
  | { readonly action: 'skip'; readonly reason: string | null; readonly plugin: string };

export type ToolVerdict =
  | { readonly action: 'pass'; readonly args: unknown }
  | { readonly action: 'block'; readonly reason: string; readonly plugin: string };

const USUAL_MS = 2000;
const LONGEST_CONTEXT = 32_000;

/** What a gate answered; with `shut` for one that could not be asked, or gave no proper answer, and is closed then. */
type Answer = Readonly<Record<string, unknown>>;

/** What is asked before something happens. */
export interface Gate {
  readonly gate: GateName;
  readonly plugin: string;
  /** Null for nothing. An answer that `knows` does not accept counts as a failure of the gate. */
  ask(question: object, knows?: (answer: Answer) => boolean): Promise<Answer | null>;
}

/** The gate of a plugin that cannot be used, and wants it closed then. */
export function closedGate(gate: GateName, plugin: string, problem: string): Gate {
  const answer = { shut: shutText(gate, plugin, problem) };
  return { gate, plugin, ask: async () => answer };
}

function shutText(gate: GateName, plugin: string, why: string): string {
  return `${gate} of ${plugin} did not let it pass: ${why}`;
}

/** A gate of a plugin that can be asked. */
export interface PluginGate extends Gate {
  readonly onFailure: 'open' | 'closed';
}

/**
 * One gate of one plugin, behind its deadline; `index` counts the gates of this name that the plugin has. A gate that does
 * not answer rests for a while, and is treated meanwhile as one that failed: it does not cost every message its deadline.
 */
function pluginGate(live: LivePlugin, index: number, { gate, onFailure, timeoutMs }: GateOffer): PluginGate {
  const { name: plugin, deps } = live;
  const breaker = new Breaker(() => deps.host.timers.elapsed());
  let slow = 0;
  /** Null where it is open. */
  const shutFor = (why: string): Answer | null =>
    onFailure === 'closed' ? { shut: shutText(gate, plugin, why) } : null;
  const failed = (why: string): Answer | null => {
    deps.log.warn('gate failed', { plugin, gate, why, went: onFailure });
    return shutFor(why);
  };
  /** A process that did not even begin is no use asking; one that was slow several times in a row is not, either. */
  const judge = (error: MoiraiError): void => {
    if (error.details.busy === true) breaker.trip();
    else if (hasCode(error, 'plugin_timeout')) breaker.failed(String(slow++));
    else if (live.process !== null) breaker.succeeded();
    else breaker.calledOff();
  };
  const ask: Gate['ask'] = async (question, knows) => {
    if (!breaker.admit()) return shutFor('it rests, for it did not answer');
    const deadline = timeoutMs ?? live.plugin.manifest.gateTimeoutMs ?? USUAL_MS;
    let answer: unknown;
    try {
      answer = await live.call(methodOf('gates', gate, index), [question], { timeoutMs: deadline });
    } catch (thrown) {
      const error = MoiraiError.wrap(thrown);
      judge(error);
      return failed(error.message);
    }
    breaker.succeeded();
    if (answer === null) return null;
    if (typeof answer !== 'object' || Array.isArray(answer)) return failed('its answer is no object');
    const given = answer as Answer;
    if (knows === undefined || 'shut' in given) return given;
    if (given.action === undefined || given.action === 'allow') return null;
    return knows(given) ? given : failed(`its answer has the action "${String(given.action)}"`);
  };
  return { gate, plugin, onFailure, ask };
}

/** The gates of a plugin, as its code registered them or its plugin.yaml declares them. */
export function pluginGates(live: LivePlugin, offers: readonly GateOffer[]): readonly PluginGate[] {
  const gates: PluginGate[] = [];
  for (const offer of offers) {
    gates.push(pluginGate(live, gates.filter(({ gate }) => gate === offer.gate).length, offer));
  }
  return gates;
}

type Outcome = { readonly value: unknown } | { readonly refused: string | null; readonly plugin: string };

/** Asks one gate after another: each can refuse, or rewrite one field of the question, which the next one then sees. */
async function askInTurn(
  gates: readonly Gate[],
  question: object,
  refusal: 'skip' | 'block',
  field: 'text' | 'args',
  isValue: (value: unknown) => boolean,
): Promise<Outcome> {
  let value = (question as Answer)[field];
  const isRewrite = (answer: Answer): boolean => answer.action === 'rewrite' && isValue(answer[field]);
  for (const gate of gates) {
    const { plugin } = gate;
    const knows = (answer: Answer): boolean => answer.action === refusal || isRewrite(answer);
    const answer = await gate.ask({ ...question, [field]: value }, knows);
    if (answer === null) continue;
    if ('shut' in answer) return { refused: String(answer.shut), plugin };
    if (!isRewrite(answer)) return { refused: textOrNull(answer.reason), plugin };
    value = answer[field];
  }
  return { value };
}

/** Asks the gates that can keep a message from the agent. */
export async function askDispatch(gates: readonly Gate[], question: DispatchQuestion): Promise<DispatchVerdict> {
  const outcome = await askInTurn(gates, question, 'skip', 'text', (value) => typeof value === 'string');
  if ('value' in outcome) return { action: 'pass', text: outcome.value as string };
  return { action: 'skip', reason: outcome.refused, plugin: outcome.plugin };
}

/** Asks the gates that can keep a tool from being run. */
export async function askTool(gates: readonly Gate[], question: ToolQuestion): Promise<ToolVerdict> {
  const outcome = await askInTurn(gates, question, 'block', 'args', (value) => value !== undefined);
  if ('value' in outcome) return { action: 'pass', args: outcome.value };
  const { plugin, refused } = outcome;
  return { action: 'block', reason: refused ?? `${plugin} does not allow it`, plugin };
}

/** What plugins add to a turn, in the order of their names; null for nothing. They do not wait for each other. */
export async function askContext(gates: readonly Gate[], question: TurnQuestion): Promise<string | null> {
  const answers = await Promise.all(gates.map((gate) => gate.ask(question)));
  const texts = answers.map((answer) => textOrNull(answer?.context));
  const joined = texts.filter((text) => text !== null && text.trim() !== '').join('\n\n');
  return joined === '' ? null : joined.slice(0, LONGEST_CONTEXT).toWellFormed();
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : null;
}

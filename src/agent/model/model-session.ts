import type { ToolSet } from 'ai';
import type { PromptMessage } from '../prompt.ts';
import type { AgentTool } from '../tools/tool.ts';
import { modelError } from './model-error.ts';
import type { ModelServer } from './model-server.ts';
import { retryPlan, type Wait } from './retry.ts';
import { type StepRequest, type StepResult, streamStep } from './step.ts';

export interface ModelSessionSetting {
  readonly name: string;
  readonly server: ModelServer;
  readonly apiKey: string | null;
  readonly system: string;
  readonly tools: ReadonlyMap<string, AgentTool>;
  readonly window: number;
  readonly silenceMs: number;
  readonly wait: Wait;
}

type Listeners = Pick<StepRequest, 'onText' | 'onReasoning'>;

/** One model with all that stays the same from request to request: what it is told first and what it may do. */
export class ModelSession {
  readonly name: string;
  readonly window: number;
  readonly tools: ReadonlyMap<string, AgentTool>;
  readonly #setting: ModelSessionSetting;

  constructor(setting: ModelSessionSetting) {
    this.#setting = setting;
    this.name = setting.name;
    this.window = setting.window;
    this.tools = setting.tools;
  }

  /** How much every request carries beside its messages. */
  get fixedCharacters(): number {
    return offerOf(this.tools).characters + this.#setting.system.length;
  }

  /** One answer. Tries again where that can help, and throws a coded error or the signal's reason. */
  async ask(messages: readonly PromptMessage[], signal: AbortSignal, listeners: Listeners): Promise<StepResult> {
    let hasShown = false;
    const onText = (text: string): void => {
      hasShown = true;
      listeners.onText(text);
    };
    const plan = retryPlan(() => hasShown);
    for (;;) {
      try {
        return await this.#stream(messages, signal, { ...listeners, onText });
      } catch (thrown) {
        signal.throwIfAborted();
        const error = modelError(thrown, this.#setting.server.baseUrl, this.#setting.apiKey);
        const waitMs = plan(error);
        if (waitMs === null) throw error;
        await this.#setting.wait(waitMs, signal);
      }
    }
  }

  async #stream(messages: readonly PromptMessage[], signal: AbortSignal, listeners: Listeners): Promise<StepResult> {
    const { server, system, silenceMs } = this.#setting;
    const model = await server.open(this.name);
    const tools = await offerOf(this.tools).toolSet();
    return streamStep({ server, model, system, messages, tools, signal, silenceMs, ...listeners });
  }
}

/** Tools as the SDK wants them. They are the same from turn to turn, so this is made once for each set of them. */
class Offer {
  readonly characters: number;
  readonly #tools: readonly AgentTool[];
  #toolSet: Promise<ToolSet> | null = null;

  constructor(tools: ReadonlyMap<string, AgentTool>) {
    this.#tools = [...tools.values()];
    this.characters = this.#tools
      .map(({ name, description, inputSchema }) => JSON.stringify([name, description, inputSchema]).length)
      .reduce((sum, length) => sum + length, 0);
  }

  toolSet(): Promise<ToolSet> {
    this.#toolSet ??= this.#make();
    return this.#toolSet;
  }

  async #make(): Promise<ToolSet> {
    const { tool, jsonSchema } = await import('ai');
    const offered = this.#tools.map(({ name, description, inputSchema }) => [
      name,
      tool({ description, inputSchema: jsonSchema({ ...inputSchema }) }),
    ]);
    return Object.fromEntries(offered);
  }
}

const offers = new WeakMap<ReadonlyMap<string, AgentTool>, Offer>();

function offerOf(tools: ReadonlyMap<string, AgentTool>): Offer {
  const known = offers.get(tools) ?? new Offer(tools);
  offers.set(tools, known);
  return known;
}

import type { PromptMessage } from '../prompt.ts';
import type { ToolSet } from '../tools/tool.ts';
import { oncePerSet } from './model-api.ts';
import { modelError } from './model-error.ts';
import type { ModelServer } from './model-server.ts';
import { retryPlan, type Wait } from './retry.ts';
import { type StepListener, type StepResult, streamStep } from './step.ts';

export interface ModelSessionSetting {
  readonly name: string;
  readonly server: ModelServer;
  readonly apiKey: string | null;
  readonly system: string;
  readonly tools: ToolSet;
  readonly window: number;
  readonly silenceMs: number;
  readonly wait: Wait;
}

/** One model with all that stays the same from request to request: what it is told first and what it may do. */
export class ModelSession {
  readonly name: string;
  readonly window: number;
  readonly tools: ToolSet;
  readonly #setting: ModelSessionSetting;

  constructor(setting: ModelSessionSetting) {
    this.#setting = setting;
    this.name = setting.name;
    this.window = setting.window;
    this.tools = setting.tools;
  }

  /** How much every request carries beside its messages. */
  get fixedCharacters(): number {
    return charactersOf(this.tools) + this.#setting.system.length;
  }

  /** One answer. Tries again where that can help, and throws a coded error or the signal's reason. */
  async ask(messages: readonly PromptMessage[], signal: AbortSignal, listener: StepListener): Promise<StepResult> {
    let hasShown = false;
    const onText = (text: string): void => {
      hasShown = true;
      listener.onText(text);
    };
    const { name: model, server, apiKey, system, tools, silenceMs, wait } = this.#setting;
    const plan = retryPlan(() => hasShown);
    for (;;) {
      try {
        const api = await server.api();
        return await streamStep({ api, model, system, messages, tools, signal, silenceMs, ...listener, onText });
      } catch (thrown) {
        signal.throwIfAborted();
        const error = modelError(thrown, server.baseUrl, apiKey);
        const waitMs = plan(error);
        if (waitMs === null) throw error;
        await wait(waitMs, signal);
      }
    }
  }
}

/** How long the description of all tools is. */
const charactersOf = oncePerSet((tools) => {
  let counted = 0;
  for (const { name, description, inputSchema } of tools.values()) {
    counted += JSON.stringify([name, description, inputSchema]).length;
  }
  return counted;
});

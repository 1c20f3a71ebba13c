import type { LanguageModel, TextStreamPart, ToolSet } from 'ai';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { TokenUsage } from '../../lifecycle/commands.ts';
import type { PromptMessage } from '../prompt.ts';
import type { ToolCall } from '../transcript.ts';
import type { ModelServer } from './model-server.ts';

export interface StepRequest {
  readonly server: ModelServer;
  readonly model: LanguageModel;
  readonly system: string;
  readonly messages: readonly PromptMessage[];
  readonly tools: ToolSet;
  readonly signal: AbortSignal;
  /** How long the server may be silent. */
  readonly silenceMs: number;
  onText(text: string): void;
  onReasoning(text: string): void;
}

export interface StepResult {
  readonly text: string;
  readonly calls: readonly ToolCall[];
  readonly usage: TokenUsage;
}

/**
 * One answer of the model, streamed. Throws what the stream threw, and the signal's reason when it was aborted. Nothing is
 * tried again here and no tool is run: the caller decides about both.
 */
export async function streamStep(request: StepRequest): Promise<StepResult> {
  request.signal.throwIfAborted();
  const { streamText } = await loadSdk();
  const silence = new AbortController();
  const signal = AbortSignal.any([request.signal, silence.signal]);
  const { stream } = streamText({
    model: request.model,
    instructions: request.system,
    messages: [...request.messages],
    tools: request.tools,
    providerOptions: request.server.options,
    abortSignal: signal,
    maxRetries: 0,
    // Errors come as parts of the stream; without a listener the SDK would print them as well.
    onError: () => undefined,
  });
  const parts = stream[Symbol.asyncIterator]();
  const result = new StepCollector(request);
  try {
    for (;;) {
      const part = await nextPart(parts, request, silence);
      if (part === null) return result.finished();
      result.take(part);
    }
  } finally {
    // Whatever ended it, nobody reads on: the connection is let go.
    silence.abort();
  }
}

async function loadSdk() {
  // The SDK's own switch: a library does not print into a gateway's log.
  globalThis.AI_SDK_LOG_WARNINGS = false;
  return import('ai');
}

type Part = TextStreamPart<ToolSet>;

/** The next part, or null at the end. Never waits longer than the silence allowed, nor past an abort. */
async function nextPart(
  parts: AsyncIterator<Part>,
  { signal, silenceMs }: StepRequest,
  silence: AbortController,
): Promise<Part | null> {
  const { promise: stopped, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => {
    const error = new DOMException(`nothing came for ${silenceMs} ms`, 'TimeoutError');
    reject(error);
    silence.abort(error);
  }, silenceMs);
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  try {
    signal.throwIfAborted();
    const next = parts.next();
    // When the race is lost this promise is nobody's, and its rejection must not end the process.
    next.catch(() => undefined);
    const { done, value } = await Promise.race([next, stopped]);
    return done === true ? null : value;
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}

class StepCollector {
  readonly #request: StepRequest;
  readonly #calls: ToolCall[] = [];
  #text = '';
  #usage: TokenUsage | null = null;

  constructor(request: StepRequest) {
    this.#request = request;
  }

  take(part: Part): void {
    if (part.type === 'text-delta') this.#takeText(part.text);
    else if (part.type === 'reasoning-delta') this.#request.onReasoning(part.text);
    else if (part.type === 'tool-call') {
      this.#calls.push({ id: part.toolCallId, name: part.toolName, args: readable(part.input) });
    } else if (part.type === 'error') throw part.error;
    else if (part.type === 'abort') this.#throwAbort();
    else if (part.type === 'finish-step') this.#finish(part);
  }

  finished(): StepResult {
    if (this.#usage === null)
      throw new MoiraiError('model_cut', 'the stream from the model server ended without a finish');
    return { text: this.#text, calls: this.#calls, usage: this.#usage };
  }

  #takeText(text: string): void {
    if (text === '') return;
    this.#text += text;
    this.#request.onText(text);
  }

  #throwAbort(): never {
    this.#request.signal.throwIfAborted();
    throw new MoiraiError('model_cut', 'the stream from the model server was aborted');
  }

  #finish({ finishReason, usage }: Extract<Part, { type: 'finish-step' }>): void {
    if (CUT_REASONS.has(finishReason)) {
      throw new MoiraiError('model_cut', 'the stream from the model server broke off before its end');
    }
    if (finishReason === 'content-filter' && this.#text === '' && this.#calls.length === 0) {
      throw new MoiraiError('model_refused', 'the model server held the answer back by its content filter');
    }
    this.#usage = { input: usage.inputTokens ?? 0, output: usage.outputTokens ?? 0 };
  }
}

/** Arguments that are no object were not readable; the tool will say so, and the server gets back what it can read. */
function readable(input: unknown): unknown {
  return typeof input === 'object' && input !== null && !Array.isArray(input) ? input : { unreadable: input ?? null };
}

/** How providers name a stream that ended before the model said it was done. */
const CUT_REASONS: ReadonlySet<string> = new Set(['interrupted', 'error']);

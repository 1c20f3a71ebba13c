import { createAnthropic } from '@ai-sdk/anthropic';
import type { ToolCall } from '../transcript.ts';
import {
  type AnswerListener,
  argumentsOf,
  type ModelAnswer,
  type ModelApi,
  type ModelMessage,
  type ModelRequest,
  oncePerSet,
} from './model-api.ts';
import { BrokenAnswer } from './model-error.ts';

type AnthropicModel = ReturnType<ReturnType<typeof createAnthropic>>;
type CallOptions = Parameters<AnthropicModel['doStream']>[0];
type SdkMessage = CallOptions['prompt'][number];

/** A model is opened once: its provider compiles what answers look like, which costs more than reading one. */
const MODELS_KEPT = 16;

/** Anthropic reads its cache only where it is told to; said once for the request, no message has to carry a mark. */
const CACHED = { anthropic: { cacheControl: { type: 'ephemeral' } } } as const;

/** Why a connection is closed whose reader is gone: one object for all, since it is never looked at. */
const CANCELLED = new BrokenAnswer('nobody reads the answer any more');

/** Anthropic's messages API, through the provider of the AI SDK. */
export function anthropicApi(baseURL: string, apiKey: string): ModelApi {
  // An empty key would make the provider look into the environment, which only the configuration may read.
  const provider = createAnthropic({ baseURL, apiKey: apiKey === '' ? 'none' : apiKey });
  const opened = new Map<string, AnthropicModel>();
  const open = (name: string): AnthropicModel => {
    const model = opened.get(name) ?? provider(name);
    // Clients name models as they like; more than a few is none of them in use.
    if (opened.size >= MODELS_KEPT) opened.clear();
    opened.set(name, model);
    return model;
  };
  return (request, listener) => {
    const abort = new AbortController();
    return {
      answer: read(open(request.model), request, listener, abort.signal),
      cancel: () => abort.abort(CANCELLED),
    };
  };
}

async function read(
  model: AnthropicModel,
  request: ModelRequest,
  listener: AnswerListener,
  abortSignal: AbortSignal,
): Promise<ModelAnswer> {
  const { stream } = await model.doStream(callOptions(request, abortSignal));
  const calls: ToolCall[] = [];
  let answer: ModelAnswer | null = null;
  for await (const part of stream) {
    // What was read already comes even after an abort.
    abortSignal.throwIfAborted();
    listener.onActivity();
    if (part.type === 'text-delta') listener.onText(part.delta);
    else if (part.type === 'reasoning-delta') listener.onReasoning(part.delta);
    else if (part.type === 'error') throw part.error;
    else if (part.type === 'tool-call') {
      calls.push({ id: part.toolCallId, name: part.toolName, args: argumentsOf(part.input) });
    } else if (part.type === 'finish') {
      const usage = { input: part.usage.inputTokens.total ?? 0, output: part.usage.outputTokens.total ?? 0 };
      answer = { calls, usage, finishReason: part.finishReason.unified };
    }
  }
  if (answer !== null) return answer;
  throw new BrokenAnswer('it ended without a finish');
}

function callOptions({ system, messages, tools, maxTokens }: ModelRequest, abortSignal: AbortSignal): CallOptions {
  const first: SdkMessage[] = system === '' ? [] : [{ role: 'system', content: system }];
  const prompt = [...first, ...messages.map(sdkMessage)];
  const offer = offerOf(tools);
  return {
    prompt,
    abortSignal,
    providerOptions: CACHED,
    ...(offer.length === 0 ? {} : { tools: offer, toolChoice: { type: 'auto' } }),
    ...(maxTokens === undefined ? {} : { maxOutputTokens: maxTokens }),
  };
}

function sdkMessage(message: ModelMessage): SdkMessage {
  const { role, content } = message;
  if (role === 'tool') return { role, content: [...content] };
  if (typeof content === 'string') return { role, content: [{ type: 'text', text: content }] };
  if (role === 'assistant') return { role, content: [...content] };
  return {
    role,
    content: content.map((part) => {
      if (part.type === 'text') return part;
      return { type: 'file', mediaType: part.mime, data: { type: 'data', data: part.bytes } };
    }),
  };
}

/** The tools as the provider wants them. */
const offerOf = oncePerSet((tools): NonNullable<CallOptions['tools']> => {
  return [...tools.values()].map(({ name, description, inputSchema }) => {
    return { type: 'function', name, description, inputSchema };
  });
});

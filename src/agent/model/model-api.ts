import type { TokenUsage } from '../../lifecycle/commands.ts';
import type { PromptMessage } from '../prompt.ts';
import type { ToolSet } from '../tools/tool.ts';
import type { ToolCall } from '../transcript.ts';

export type UserPart =
  | { readonly type: 'text'; readonly text: string }
  | { readonly type: 'picture'; readonly mime: string; readonly bytes: Uint8Array };

/** What a model reads: a transcript's messages, and what a person says with a picture in it. */
export type ModelMessage = PromptMessage | { readonly role: 'user'; readonly content: readonly UserPart[] };

/** One question to a model. */
export interface ModelRequest {
  readonly model: string;
  /** What the model is told first; empty for nothing. */
  readonly system: string;
  readonly messages: readonly ModelMessage[];
  readonly tools: ToolSet;
  readonly maxTokens?: number;
}

/** Hears an answer while it is being written. */
export interface AnswerListener {
  onText(text: string): void;
  onReasoning(text: string): void;
  /** Something came from the server, whatever it was. */
  onActivity(): void;
}

/** How an answer ended. Its text went to the listener. */
export interface ModelAnswer {
  readonly calls: readonly ToolCall[];
  readonly finishReason: string;
  readonly usage: TokenUsage;
}

/** A question that is being answered. */
export interface PendingAnswer {
  /** Rejects with whatever the server, or the way to it, threw. */
  readonly answer: Promise<ModelAnswer>;
  /** Closes the connection; the listener hears nothing more, and the promise may stay open. */
  cancel(): void;
}

/** How a kind of model server is asked. Nothing is tried again here. */
export type ModelApi = (request: ModelRequest, listener: AnswerListener) => PendingAnswer;

/** Makes something of a set of tools once, and keeps it for as long as the set is in use. */
export function oncePerSet<T>(make: (tools: ToolSet) => T): (tools: ToolSet) => T {
  const made = new WeakMap<ToolSet, T>();
  return (tools) => {
    const known = made.get(tools);
    if (known !== undefined) return known;
    const value = make(tools);
    made.set(tools, value);
    return value;
  };
}

/** The arguments of a call from their JSON. What is no object was not readable: the tool will say so, and the server gets back what it can read. */
export function argumentsOf(json: string): unknown {
  const value = json.trim() === '' ? {} : parsed(json);
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : { unreadable: value ?? null };
}

function parsed(json: string): unknown {
  try {
    return JSON.parse(json);
  } catch {
    return json;
  }
}

import type { RecordedRequest } from './http-fake.ts';

/** What a scripted model does with one request. */
export interface ScriptedReply {
  readonly text?: string;
  readonly reasoning?: string;
  readonly toolCalls?: readonly { readonly name: string; readonly args: unknown; readonly id?: string }[];
  readonly usage?: { readonly input: number; readonly output: number };
  /** Answers with this status and an error instead. */
  readonly status?: number;
  readonly error?: { readonly message: string; readonly type?: string; readonly code?: string };
  readonly headers?: Record<string, string>;
  /** An error that comes in the middle of the stream, with the status of success. */
  readonly streamError?: { readonly message: string; readonly type?: string; readonly code?: string };
  readonly beforeMs?: number;
  readonly betweenMs?: number;
  /** Awaited after so many pieces of text; the rest follows. */
  readonly pause?: { readonly after: number; readonly until: Promise<void> };
  /** Breaks the connection after so many pieces of text. */
  readonly cutAfter?: number;
  /** Ends the stream in order, but without saying that it is the end. */
  readonly unfinished?: true;
  /** Says nothing more after so many pieces of text. */
  readonly hangAfter?: number;
}

/** One reply per request, the last one again and again; or whatever a function makes of the request. */
export type ModelScript =
  | readonly ScriptedReply[]
  | ((request: RecordedRequest, index: number) => ScriptedReply | Promise<ScriptedReply>);

export async function replyTo(script: ModelScript, request: RecordedRequest, index: number): Promise<ScriptedReply> {
  if (typeof script === 'function') return script(request, index);
  return script[Math.min(index, script.length - 1)] ?? { text: 'ok' };
}

/** Words with the blanks behind them, so that the pieces make the whole. */
export function piecesOf(text: string): string[] {
  return text.match(/\S+\s*|\s+/g) ?? [];
}

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const usageOf = ({ usage }: ScriptedReply) => usage ?? { input: 10, output: 5 };

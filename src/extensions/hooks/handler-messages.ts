import type { MoiraiEvent } from '../../lifecycle/events.ts';
import type { HandlerFile } from './handler-file.ts';

/** What a handler's processes are started with, as far as it can be told to another process. */
export interface HandlerFacts {
  readonly name: string;
  readonly folder: string;
  readonly timeoutMs: number;
  readonly environment: Readonly<Record<string, string>>;
}

/** What the gateway says to the process that has the handlers. Calls are answered under their number. */
export type Order =
  | { readonly order: 'make'; readonly handler: number; readonly file: HandlerFile; readonly facts: HandlerFacts }
  | { readonly order: 'run'; readonly call: number; readonly handler: number; readonly event: MoiraiEvent }
  | { readonly order: 'abort'; readonly call: number }
  | { readonly order: 'retire' | 'close'; readonly call: number; readonly handler: number }
  | { readonly order: 'leave'; readonly call: number };

/** What it answers and tells. */
export type HandlerMessage =
  | { readonly word: 'done'; readonly call: number; readonly error: { code: string; message: string } | null }
  | { readonly word: 'processes'; readonly handler: number; readonly count: number }
  | { readonly word: 'said'; readonly handler: number; readonly stream: 'stdout' | 'stderr'; readonly line: string }
  | { readonly word: 'left out'; readonly handler: number; readonly lines: number };

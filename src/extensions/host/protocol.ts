/** How a process of an extension is started. */
export interface ProcessSpec {
  /** `hook` or `plugin`, and its name: the limits of what is printed are for all processes of an extension together. */
  readonly kind: string;
  readonly name: string;
  readonly command: readonly string[];
  readonly folder: string;
  readonly environment: Readonly<Record<string, string>>;
  /** Written to its standard input, which is closed then; null for one that is talked to over its channel. */
  readonly stdin: string | null;
  /** Of the process; the higher, the more the others come first. */
  readonly niceness: number;
  /** Resident memory above which it is killed. */
  readonly memoryMb: number;
}

/** How a process ended. */
export interface ProcessExit {
  readonly code: number | null;
  /** Why, as what the extension did: `exited with 3`, `ran out of memory`. */
  readonly why: string;
  /** It never ran, or the host process that ran it died: the extension did nothing wrong. */
  readonly lost: boolean;
}

/** What the gateway says to the host process. Processes have numbers, which are never used again. */
export type ToHost =
  | { readonly type: 'start'; readonly process: number; readonly spec: ProcessSpec }
  | { readonly type: 'write'; readonly process: number; readonly line: string }
  /** Nothing more will be written: it may leave. */
  | { readonly type: 'end'; readonly process: number }
  | { readonly type: 'kill'; readonly process: number; readonly why: string };

export type FromHost =
  /** A line of the channel. */
  | { readonly type: 'line'; readonly process: number; readonly line: string }
  | { readonly type: 'printed'; readonly process: number; readonly stream: OutputStream; readonly line: string }
  | { readonly type: 'left_out'; readonly kind: string; readonly name: string; readonly lines: number }
  | { readonly type: 'exit'; readonly process: number; readonly exit: ProcessExit };

export type OutputStream = 'stdout' | 'stderr';

/** An error that crosses a process. */
export interface Fault {
  readonly message: string;
  /** Of the error, or of the first of its causes that has one. */
  readonly code: string | null;
}

/**
 * One line of JSON between the gateway and a process that stays loaded. Both sides make calls and answer them; an id is the
 * caller's. The first call of the gateway is `load`.
 */
export type Message =
  | { readonly type: 'call'; readonly id: number; readonly method: string; readonly args: readonly unknown[] }
  | { readonly type: 'answer'; readonly id: number; readonly value: unknown }
  | { readonly type: 'fault'; readonly id: number; readonly fault: Fault }
  | FromGateway
  | FromExtension;

type FromGateway = { readonly type: 'abort'; readonly id: number } | { readonly type: 'ping' };

type FromExtension =
  /** The call reached the extension: until then it certainly has done nothing. */
  | { readonly type: 'began'; readonly id: number }
  /** It ends now, and why. */
  | { readonly type: 'dying'; readonly why: string }
  | { readonly type: 'pong' };

/** The variable that every process of an extension inherits: `<token of the host process>.<number of the process>`. */
export const MARKER = 'MOIRAI_EXTENSION';

/** Begins a line of standard output that is an entry for the log, as JSON. */
export const LOG_ENTRY = '\u0001moirai ';

import { openSync, readdirSync, readFileSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import type { Session } from '../../src/lifecycle/session.ts';
import type { EndCause, EndReason, TurnOutcome } from '../../src/lifecycle/states.ts';
import type { SubscriberName } from './settings.ts';

/** What must be true of the store for ever once a write was acknowledged. */
export type Fact =
  | { readonly is: 'started'; readonly session: string; readonly key: string; readonly parent: string | null }
  | {
      readonly is: 'ended';
      readonly session: string;
      readonly reason: EndReason;
      readonly cause: EndCause | null;
      readonly successor?: string;
    }
  | { readonly is: 'received'; readonly turn: string; readonly ref: string }
  | { readonly is: 'begun'; readonly turn: string; readonly session: string; readonly epoch: number }
  | { readonly is: 'over'; readonly turn: string; readonly outcome: TurnOutcome; readonly response: string | null }
  | { readonly is: 'message'; readonly session: string; readonly position: number; readonly text: string }
  | { readonly is: 'delivery'; readonly id: string; readonly turn: string }
  | { readonly is: 'settled'; readonly id: string; readonly state: 'sent' | 'failed' }
  /** The event with this number is of this type and has these fields. */
  | {
      readonly is: 'event';
      readonly session: string;
      readonly seq: number;
      readonly type: string;
      readonly has?: Readonly<Record<string, unknown>>;
    };

/** A session's row as an acknowledged write left it, as far as the history of the row is concerned. */
export interface Seen {
  readonly id: string;
  readonly version: number;
  readonly epoch: number;
  readonly seq: number;
  readonly owner: string | null;
  readonly command: string | null;
}

export type JournalLine =
  | { readonly line: 'ack'; readonly op: string; readonly facts: readonly Fact[]; readonly seen: readonly Seen[] }
  /** A write was refused: nothing that carries this tag may be in the store. */
  | { readonly line: 'refused'; readonly op: string; readonly tag: string; readonly code: string }
  | { readonly line: 'booted'; readonly instance: string }
  /** It leaves in order: whoever is next settles what it still owns. */
  | { readonly line: 'stopping'; readonly instance: string }
  /** The worker itself saw something that may not be. */
  | { readonly line: 'wrong'; readonly what: string };

/** An event as a subscriber heard it. */
export interface DeliveredEvent {
  readonly id: string;
  readonly key: string | null;
  readonly type: string;
  readonly session_seq: number | null;
  /** Microseconds on the clock that all processes of the machine share. */
  readonly t: number;
}

/** A file that survives its process: a line is in it, whole, when `write` returns. */
export class LineFile<T> {
  readonly #fd: number;

  constructor(path: string) {
    this.#fd = openSync(path, 'a');
  }

  write(line: T): void {
    writeSync(this.#fd, `${JSON.stringify(line)}\n`);
  }
}

export function seenOf(session: Session): Seen {
  const { id, version, epoch, seq, owner, lastCommand } = session;
  return { id, version, epoch, seq, owner, command: lastCommand };
}

export function sharedMicros(): number {
  return Number(process.hrtime.bigint() / 1000n);
}

/** The journal of what was acknowledged to one process. */
export function ackFile(directory: string, worker: number, incarnation: number): LineFile<JournalLine> {
  return new LineFile(join(directory, `acks-${worker}-${incarnation}.ndjson`));
}

export function deliveredFile(
  directory: string,
  name: SubscriberName,
  worker: number,
  incarnation: number,
): LineFile<DeliveredEvent> {
  return new LineFile(join(directory, `heard-${name}-${worker}-${incarnation}.ndjson`));
}

/** A reply as its platform took it. */
export interface SentReply {
  readonly id: string;
  /** It said that it may be a repetition. */
  readonly marked: boolean;
  readonly t: number;
}

export function sentFile(directory: string, worker: number, incarnation: number): LineFile<SentReply> {
  return new LineFile(join(directory, `sent-${worker}-${incarnation}.ndjson`));
}

export function* readAcks(directory: string): Generator<JournalLine> {
  yield* readLines<JournalLine>(directory, 'acks-');
}

export function* readHeard(directory: string, name: SubscriberName): Generator<DeliveredEvent> {
  yield* readLines<DeliveredEvent>(directory, `heard-${name}-`);
}

export function* readSent(directory: string): Generator<SentReply> {
  yield* readLines<SentReply>(directory, 'sent-');
}

function* readLines<T>(directory: string, prefix: string): Generator<T> {
  for (const name of readdirSync(directory).filter((file) => file.startsWith(prefix))) {
    const lines = readFileSync(join(directory, name), 'utf8').split('\n');
    // What follows the last newline is empty, or a line that its process was killed in the middle of.
    for (const line of lines.slice(0, -1)) yield JSON.parse(line) as T;
  }
}

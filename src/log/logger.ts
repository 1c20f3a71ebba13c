import { type Level, type Logger as PinoLogger, pino, stdTimeFunctions } from 'pino';
import { prettyFactory } from 'pino-pretty';
import { makeRedactor, type Redactor } from './redact.ts';

export type Fields = Readonly<Record<string, unknown>>;

/** What happens, for the operators of the gateway. A message is a fixed sentence; what varies goes into the fields. */
export interface Logger {
  debug(message: string, fields?: Fields): void;
  info(message: string, fields?: Fields): void;
  warn(message: string, fields?: Fields): void;
  error(message: string, fields?: Fields): void;
  /** The same log, with these fields on every line. */
  child(fields: Fields): Logger;
}

/** A log whose level and secrets can be changed, for its children too. */
export interface LeveledLogger extends Logger {
  setLevel(level: LogOptions['level']): void;
  setSecrets(secrets: readonly string[]): void;
}

export interface LogStream {
  write(line: string): unknown;
  readonly isTTY?: boolean;
}

export interface LogOptions {
  readonly level: Level | 'silent';
  readonly format: 'pretty' | 'json';
  /** Strings that never appear in the log, whatever carries them. */
  readonly secrets?: readonly string[];
  /** Standard error unless given: standard output belongs to what was asked for. */
  readonly stream?: LogStream;
}

/** Lines are written at once and in order, so that the last one before a crash is there. */
export function createLogger({ level, format, secrets = [], stream = standardError() }: LogOptions): LeveledLogger {
  const harmless = { write: (line: string) => stream.write(spellOut(line)) };
  const destination = format === 'json' ? harmless : prettified(harmless, stream.isTTY === true);
  const log = pino(
    {
      // Everything: what is written is decided by the gate, which all children share.
      level: 'trace',
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      // Errors come as plain objects from the redactor.
      serializers: {},
    },
    destination,
  );
  const gate: Gate = { threshold: thresholdOf(level), redactor: makeRedactor(secrets) };
  const setLevel = (next: LogOptions['level']): void => {
    gate.threshold = thresholdOf(next);
  };
  const setSecrets = (next: readonly string[]): void => {
    gate.redactor = makeRedactor(next);
  };
  return { ...wrap(log, gate), setLevel, setSecrets };
}

interface Gate {
  threshold: number;
  redactor: Redactor;
}

function thresholdOf(level: LogOptions['level']): number {
  return pino.levels.values[level] ?? Number.POSITIVE_INFINITY;
}

function wrap(log: PinoLogger, gate: Gate): Logger {
  const writer =
    (level: Level) =>
    (message: string, fields: Fields = {}): void => {
      const { threshold, redactor } = gate;
      if (thresholdOf(level) >= threshold) log[level](redactor.fields(fields), '%s', redactor.text(message));
    };
  return {
    debug: writer('debug'),
    info: writer('info'),
    warn: writer('warn'),
    error: writer('error'),
    child: (fields) => wrap(log.child(gate.redactor.fields(fields)), gate),
  };
}

/** In this process and at once: the worker thread that pino would start loses lines when the process dies. */
function prettified(stream: LogStream, colorize: boolean): LogStream {
  const prettify = prettyFactory({
    colorize,
    translateTime: 'SYS:yyyy-mm-dd HH:MM:ss.l',
    singleLine: true,
  });
  return { write: (line) => stream.write(prettify(JSON.parse(line, visible))) };
}

/** Nothing that is written may act on a terminal, and a message of several lines must not pass for several. */
function visible(name: string, value: unknown): unknown {
  if (typeof value !== 'string') return value;
  return value.replace(name === 'msg' ? /\p{Cc}/gu : /[^\P{Cc}\n\t]/gu, codeOf);
}

function codeOf(character: string): string {
  if (character === '\n') return '\\n';
  return character.replace(/./gs, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

/**
 * What turns the direction of a line around, has no width, breaks lines in some programs or steers old terminals. JSON lets
 * all of it pass; as codes it means the same to a program.
 */
const UNSEEN = /[\u007f-\u009f\u2028\u2029]|\p{Cf}/gu;

function spellOut(line: string): string {
  return line.replace(UNSEEN, codeOf);
}

let listening = false;

function standardError(): LogStream {
  if (!listening) {
    listening = true;
    // The reader of the log is gone: that is no reason to stop the gateway.
    process.stderr.on('error', () => undefined);
  }
  return process.stderr;
}

import type { ErrorCode } from '../errors/codes.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { complain, printable } from './print.ts';

const FAILURE = 1;
const USAGE = 2;
const CONFIGURATION = 78;

/** What a failed command exits with, where it is not a plain failure. */
const EXIT_CODES: Partial<Record<ErrorCode, number>> = {
  usage: USAGE,
  bad_input: USAGE,
  bad_reason: USAGE,
  bad_duration: USAGE,
  unknown_event: USAGE,
  store_url: CONFIGURATION,
  home_unusable: CONFIGURATION,
  config_invalid: CONFIGURATION,
  config_unreadable: CONFIGURATION,
  memory_provider: CONFIGURATION,
};

/** Says on standard error what went wrong and what to do about it; returns the code to exit with. */
export function reportError(thrown: unknown, json: boolean): number {
  const error = MoiraiError.wrap(thrown);
  const { code, message, hint } = error;
  if (json) complain(`${JSON.stringify({ error: { code, message, hint } })}\n`);
  else complain(`error: ${inLines(error)}  ${printable(hint)}\n`);
  if (process.env.MOIRAI_DEBUG === '1') complain(`${stackOf(error)}\n`);
  return EXIT_CODES[code] ?? FAILURE;
}

/** Mentions on standard error what went wrong without ending anything. */
export function warn(thrown: unknown): void {
  const { message, code } = MoiraiError.wrap(thrown);
  complain(`moirai: ${printable(message)} [${code}]\n`);
}

/** One line, so that no error can pass for two; only a configuration has a line for each of its problems. */
function inLines({ code, message }: MoiraiError): string {
  const [first = '', ...more] = (code === 'config_invalid' ? message.split('\n') : [message]).map(printable);
  return [`${first} [${code}]\n`, ...more.map((line) => `  ${line}\n`)].join('');
}

function stackOf(error: Error): string {
  const own = error.stack ?? error.message;
  return error.cause instanceof Error ? `${own}\ncaused by ${stackOf(error.cause)}` : own;
}

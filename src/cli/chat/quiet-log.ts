import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Fields, Logger } from '../../log/logger.ts';

/**
 * A log for a terminal in which somebody talks. What passes by itself is not mentioned, and what a turn failed of is told
 * as its reply; only the rest is, by its fixed sentence and code.
 */
export function quietLog(tell: (text: string) => void): Logger {
  const say = (message: string, fields: Fields = {}): void => {
    const { error } = fields;
    tell(error === undefined ? message : `${message} [${MoiraiError.wrap(error).code}]`);
  };
  const wordy = process.env.MOIRAI_DEBUG === '1' ? say : (): void => undefined;
  const log: Logger = { debug: () => undefined, info: () => undefined, warn: wordy, error: say, child: () => log };
  return log;
}

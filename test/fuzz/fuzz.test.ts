import { expect, test } from 'vitest';
import { wordsOf } from '../../src/platforms/telegram/send.ts';
import { share } from '../support/share.ts';
import { describeFuzz, fuzz, LIMIT_MS } from './fuzz.ts';

/** `npm run fuzz` holds the limit itself; beside other tests a core does half as much, or less. */
const BUSY_LIMIT_MS = 4 * LIMIT_MS;

test('no text from outside keeps a parser busy, and none makes it throw', () => {
  const result = fuzz(share(600, 10_000), 1);
  expect(result.thrown).toEqual([]);
  const slow = [...result.slowest].filter(([, { ms }]) => ms > BUSY_LIMIT_MS);
  expect(slow, describeFuzz(result).join('\n')).toEqual([]);
}, 600_000);

test('a reply that cannot be formatted is sent to Telegram as it is', () => {
  const broken = { length: 3, split: () => expect.fail('the renderer read it') } as unknown as string;
  expect(wordsOf(broken, true)).toEqual({ text: broken, mode: {} });
});

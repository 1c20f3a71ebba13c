import { expect, test } from 'vitest';
import { parkedText } from './parked-text.ts';

test.each([
  ['operator', /An operator parked it\..* waits until it is released/],
  ['stuck_loop', /interrupted too often in a row\. The next message starts a new session, unless this one is released/],
  ['a word of another version', /It is parked\. .* when it is released/],
])('a session that is parked because of %s says why, and how it goes on', (reason, text) => {
  expect(parkedText(reason)).toMatch(text);
});

import { expect, test } from 'vitest';
import { section, setting } from './declaration.ts';
import { kind, secret, text } from './kinds.ts';
import { secretsOf, showSettings } from './show-settings.ts';

const anything = section({
  options: setting(secret(kind((value) => value as object)), null, ''),
  name: setting(text, 'n', ''),
});

test('a secret may be an object: nothing of it is shown, and its long texts are hidden in logs', () => {
  const options = { token: 'a-long-token', mode: 'webhook', deep: [{ key: 'another-long-one', port: 5 }], none: null };
  const values = { options, name: 'not a secret' };
  expect(showSettings(anything, values)).toEqual({ options: '***', name: 'not a secret' });
  expect(secretsOf(anything, values).sort()).toEqual(['a-long-token', 'another-long-one']);
});

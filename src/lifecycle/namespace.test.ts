import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { isWithin, namespaceOf } from './namespace.ts';
import { buildKey } from './session-key.ts';

const name = fc.stringMatching(/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/);
const chat = fc.stringMatching(/^[a-z]{2}[a-z:%_-]{0,20}$/);

describe('the namespace of an API key', () => {
  test('has exactly the keys that begin with one of its prefixes', () => {
    fc.assert(
      fc.property(name, name, chat, fc.constantFrom('api', 'web'), (owner, other, text, platform) => {
        const own = buildKey({ profile: 'main', platform, type: 'dm', scope: owner, chat: text });
        for (const asked of [owner, other]) {
          expect(isWithin(own, namespaceOf(asked))).toBe(asked === owner);
        }
      }),
    );
  });

  test('has no conversation that was named without a namespace, whatever it is called', () => {
    fc.assert(
      fc.property(name, chat, fc.constantFrom('api', 'web', 'telegram'), (owner, text, platform) => {
        for (const called of [text, owner, `${owner}:${text}`, `${owner}:${text}:`]) {
          const key = buildKey({ profile: 'main', platform, type: 'dm', chat: called });
          expect(isWithin(key, namespaceOf(owner))).toBe(false);
          expect(isWithin(key, null)).toBe(true);
        }
      }),
    );
  });

  test('has no event that belongs to no conversation', () => {
    expect(isWithin(null, namespaceOf('loom'))).toBe(false);
    expect(isWithin(null, null)).toBe(true);
  });
});

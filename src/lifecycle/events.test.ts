import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MoiraiError } from '../errors/moirai-error.ts';
import { assertPattern, EVENT_TYPES, isNumbered, matches, nearestName } from './events.ts';

describe('a subscription', () => {
  test.each([
    ['session:end', 'session:end', true],
    ['session:end', 'session:ended', false],
    ['session:*', 'session:end', true],
    ['session:*', 'sessions:end', false],
    ['session:*', 'agent:end', false],
    ['command:*', 'command:new', true],
    ['command:new', 'command:news', false],
    ['*', 'anything:at-all', true],
    ['sess*', 'session:end', false],
  ])('%s and the event %s: %s', (pattern, type, expected) => {
    expect(matches(pattern, type)).toBe(expected);
  });

  test('may name every event, every group of events, any command and all of them', () => {
    const groups = EVENT_TYPES.map((type) => `${type.split(':')[0]}:*`);
    for (const pattern of [...EVENT_TYPES, ...groups, 'command:*', 'command:new', 'command:my-command_2', '*']) {
      expect(() => assertPattern(pattern)).not.toThrow();
    }
  });

  test.each([
    ['session:finish', 'session:end'],
    ['session:ends', 'session:end'],
    ['sesion:start', 'session:start'],
    ['Session:*', 'session:*'],
    ['agent:begin', 'agent:end'],
    ['command', 'command:*'],
    ['commands:*', 'command:*'],
    ['', '*'],
    ['hook:fail', 'hook:failed'],
  ])('that nothing can match (%s) is refused with the nearest name', (pattern, nearest) => {
    const refusal = refusalOf(pattern);
    expect(refusal.code).toBe('unknown_event');
    expect(refusal.details).toEqual({ pattern, nearest });
  });

  test('whatever it says is refused with a name that is valid, or covers something that can happen', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 30, unit: 'grapheme' }), (pattern) => {
        try {
          assertPattern(pattern);
        } catch (error) {
          expect(error).toBeInstanceOf(MoiraiError);
          assertPattern(String((error as MoiraiError).details.nearest));
          return;
        }
        expect([...EVENT_TYPES, 'command:new', pattern].some((type) => matches(pattern, type))).toBe(true);
      }),
    );
  });
});

describe('the nearest name', () => {
  test('is the one with the fewest edits', () => {
    expect(nearestName('ilde', ['idle', 'daily', 'both'])).toBe('idle');
    expect(nearestName('dayly', ['idle', 'daily', 'both'])).toBe('daily');
    expect(nearestName('x', [])).toBe('');
  });
});

describe('a number within its session', () => {
  test('has what the contract lists, and nothing else', () => {
    const numbered = EVENT_TYPES.filter(isNumbered);
    expect(numbered).toEqual([
      ...['session:start', 'session:end', 'session:reset', 'session:resume_pending', 'session:resume'],
      ...['session:suspend', 'session:release', 'session:compress', 'session:title', 'agent:start', 'agent:end'],
    ]);
    expect(isNumbered('command:new')).toBe(true);
  });
});

function refusalOf(pattern: string): MoiraiError {
  try {
    assertPattern(pattern);
  } catch (error) {
    if (error instanceof MoiraiError) return error;
    throw error;
  }
  throw new Error(`${pattern} was taken`);
}

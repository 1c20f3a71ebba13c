import { describe, expect, test } from 'vitest';
import { arrive } from './arrival.ts';
import { DEFAULT_RESET_RULES } from './reset-policy.ts';
import type { Session } from './session.ts';

const NOW = 1_000_000_000;
const WINDOW = 3_600_000;
const policy = DEFAULT_RESET_RULES.reset;

type Facts = Pick<Session, 'state' | 'suspendReason' | 'expiresAt' | 'expiresCause' | 'resumeAt'>;

const fresh: Facts = { state: 'open', suspendReason: null, expiresAt: NOW + 1, expiresCause: 'idle', resumeAt: null };
const cut: Facts = { ...fresh, state: 'resume_pending', resumeAt: NOW - 1 };

function causeOf(facts: Partial<Facts>, mode: 'idle' | 'none' = 'idle') {
  return arrive({ ...fresh, ...facts } as Session, NOW, { ...policy, mode }, WINDOW);
}

describe('a message', () => {
  test.each([
    ['finds a fresh session', {}, null],
    ['finds a session at its deadline', { expiresAt: NOW }, 'idle'],
    ['finds a session past its daily boundary', { expiresAt: NOW - 1, expiresCause: 'daily' }, 'daily'],
    ['finds a session without a deadline', { expiresAt: null, expiresCause: null }, null],
    ['finds a suspended session', { state: 'suspended' }, 'suspended'],
    ['finds a session that an operator parked', { state: 'suspended', suspendReason: 'operator' }, null],
    ['finds a suspended session past its deadline', { state: 'suspended', expiresAt: NOW - 1 }, 'suspended'],
    ['finds a session just cut', cut, null],
    ['finds a session cut exactly the window ago', { ...cut, resumeAt: NOW - WINDOW }, null],
    ['finds a session cut longer ago', { ...cut, resumeAt: NOW - WINDOW - 1 }, 'resume_expired'],
    ['finds a cut session past its deadline', { ...cut, resumeAt: NOW - WINDOW - 1, expiresAt: NOW }, 'idle'],
    ['finds an old marker on an open session', { resumeAt: NOW - WINDOW - 1 }, null],
  ] satisfies [string, Partial<Facts>, string | null][])('%s', (_, facts, cause) => {
    expect(causeOf(facts)).toBe(cause);
  });

  test('with mode none continues whatever is not suspended', () => {
    expect(causeOf({ ...cut, resumeAt: 0, expiresAt: null }, 'none')).toBeNull();
    expect(causeOf({ state: 'suspended' }, 'none')).toBe('suspended');
  });
});

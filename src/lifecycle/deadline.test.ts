import { describe, expect, test } from 'vitest';
import { deadlineOf } from './deadline.ts';
import { DEFAULT_RESET_RULES, type ResetPolicy } from './reset-policy.ts';
import type { Session, SessionWithTurns, Turn } from './session.ts';

const NOW = Date.parse('2026-02-02T12:00:00Z');
const HOUR = 3_600_000;
const policy: ResetPolicy = { ...DEFAULT_RESET_RULES.reset, idleMs: HOUR };
const NEVER = { expiresAt: null, expiresCause: null };

function deadline(session: Partial<Session>, turns: Turn['state'][] = [], over: Partial<ResetPolicy> = {}) {
  const facts = { state: 'open', attached: false, background: 0, lastActivityAt: NOW, resumeAt: null, ...session };
  const loaded = { session: facts, turns: turns.map((state) => ({ state })) } as unknown as SessionWithTurns;
  return deadlineOf(loaded, { ...policy, ...over }, 2 * HOUR);
}

describe('a deadline', () => {
  test('is the last activity plus the idle time, or the next daily boundary, whichever is earlier', () => {
    expect(deadline({})).toEqual({ expiresAt: NOW + HOUR, expiresCause: 'idle' });
    expect(deadline({}, [], { mode: 'daily', at: '12:30' })).toEqual({
      expiresAt: NOW + HOUR / 2,
      expiresCause: 'daily',
    });
    expect(deadline({}, [], { mode: 'both', at: '12:30' }).expiresCause).toBe('daily');
    expect(deadline({}, [], { mode: 'both', at: '13:30' }).expiresCause).toBe('idle');
  });

  test.each([
    ['a waiting turn', {}, ['queued']],
    ['a running turn', {}, ['running']],
    ['a background process', { background: 1 }, []],
    ['an owner it is attached to', { attached: true }, []],
    ['its end', { state: 'ended' }, []],
    ['a waiting turn beside one that was cut', { state: 'resume_pending', resumeAt: NOW }, ['cut', 'queued']],
  ] satisfies [string, Partial<Session>, Turn['state'][]][])('is held off by %s', (_, session, turns) => {
    expect(deadline(session, turns)).toEqual(NEVER);
  });

  test('does not exist with mode none', () => {
    expect(deadline({}, [], { mode: 'none' })).toEqual(NEVER);
  });

  test('is held by a cut turn until the resume window has passed, and no longer', () => {
    const cut = { state: 'resume_pending', resumeAt: NOW } as const;
    expect(deadline(cut, ['cut'])).toEqual({ expiresAt: NOW + 2 * HOUR, expiresCause: 'idle' });
    expect(deadline(cut, ['cut'], { idleMs: 5 * HOUR }).expiresAt).toBe(NOW + 5 * HOUR);
    expect(deadline(cut, []).expiresAt).toBe(NOW + HOUR);
  });
});

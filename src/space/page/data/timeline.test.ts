import { expect, test } from 'vitest';
import { addUp, RANGES, slotsOf } from './timeline.ts';

test('what several stores say is added up, slot by slot', () => {
  const sum = addUp(
    [
      { started: [1, 2], ended: { reaped: [1, 0] } },
      { started: [3], ended: { reaped: [1, 1], api_close: [0, 2] } },
      {},
    ],
    [0, 60],
    60,
  );
  expect(sum.started).toEqual([4, 2]);
  expect(Object.fromEntries(sum.ended)).toEqual({ reaped: [2, 1], api_close: [0, 2] });
});

test('slots are whole ones, end with the one that is now, and are never too many to ask for', () => {
  const now = Date.parse('2026-08-01T12:00:30Z');
  for (const range of RANGES) {
    const { from, to, slots } = slotsOf(range, now);
    expect(slots.length).toBeLessThanOrEqual(500);
    expect(from % range.step).toBe(0);
    expect(slots.at(-1)).toBe(to - range.step);
    expect(to * 1000).toBeGreaterThan(now);
    expect((to - range.step) * 1000).toBeLessThanOrEqual(now);
  }
});

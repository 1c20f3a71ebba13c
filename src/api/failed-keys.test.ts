import { describe, expect, test } from 'vitest';
import { FailedKeys } from './failed-keys.ts';

function fail(keys: FailedKeys, address: string, times: number, now: number): void {
  for (let i = 0; i < times; i++) keys.note(address, now);
}

describe('wrong keys', () => {
  test('are too many from the tenth on, until the minute is over', () => {
    const keys = new FailedKeys();
    fail(keys, '10.0.0.1', 9, 1000);
    expect(keys.waitSeconds('10.0.0.1', 1000)).toBe(0);
    fail(keys, '10.0.0.1', 1, 31_000);
    expect(keys.waitSeconds('10.0.0.1', 31_000)).toBe(30);
    expect(keys.waitSeconds('10.0.0.1', 60_999)).toBe(1);
    expect(keys.waitSeconds('10.0.0.1', 61_000)).toBe(0);
    expect(keys.waitSeconds('10.0.0.2', 31_000)).toBe(0);
  });

  test('are counted by network where one customer has a whole one', () => {
    const keys = new FailedKeys();
    for (let i = 0; i < 10; i++) keys.note(`2001:db8:1:2::${i}`, 0);
    expect(keys.waitSeconds('2001:db8:1:2:ffff:ffff:ffff:ffff', 0)).toBeGreaterThan(0);
    expect(keys.waitSeconds('2001:db8:1:3::1', 0)).toBe(0);
    fail(keys, '::ffff:10.0.0.1', 10, 0);
    expect(keys.waitSeconds('10.0.0.1', 0)).toBeGreaterThan(0);
  });

  test('count for no longer when the clock is set back', () => {
    const keys = new FailedKeys();
    fail(keys, '10.0.0.1', 10, 1_000_000);
    expect(keys.waitSeconds('10.0.0.1', 0)).toBe(0);
  });

  test('from very many addresses do not pile up', () => {
    const keys = new FailedKeys();
    fail(keys, '10.0.0.1', 10, 0);
    for (let i = 0; i < 10_000; i++) keys.note(`${i >> 8}.${i & 255}.1.1`, 0);
    expect(keys.waitSeconds('10.0.0.1', 0)).toBe(0);
  });
});

import { beforeEach, expect, test } from 'vitest';
import { AgentCache } from './agent-cache.ts';

let now: number;
let cache: AgentCache<string>;

beforeEach(() => {
  now = 0;
  cache = new AgentCache({ maxSize: 3, idleTtlMs: 100, maxBytes: 1_000 }, () => now);
});

test('what was set is found under its version, and under no other', () => {
  cache.set('a', '1', 'one', 10);
  expect(cache.get('a', '1')).toBe('one');
  expect(cache.get('a', '2')).toBeUndefined();
  expect(cache.get('a', '1')).toBeUndefined();
  expect(cache.bytes).toBe(0);
});

test('the least recently used goes first', () => {
  for (const key of ['a', 'b', 'c']) cache.set(key, '1', key, 10);
  cache.get('a', '1');
  cache.set('d', '1', 'd', 10);
  expect(['a', 'b', 'c', 'd'].map((key) => cache.get(key, '1'))).toEqual(['a', undefined, 'c', 'd']);
});

test('all together stay within the budget of bytes, and what alone exceeds it is not taken', () => {
  cache.set('a', '1', 'a', 600);
  cache.set('b', '1', 'b', 600);
  expect([cache.size, cache.bytes]).toEqual([1, 600]);
  cache.set('c', '1', 'c', 1_001);
  expect(cache.get('b', '1')).toBe('b');
  expect(cache.get('c', '1')).toBeUndefined();
  cache.set('b', '1', 'bb', 300);
  expect(cache.bytes).toBe(300);
});

test('what lies idle is not found and goes with the next sweep', () => {
  cache.set('a', '1', 'a', 10);
  now = 60;
  cache.set('b', '1', 'b', 10);
  now = 120;
  cache.sweep(now);
  expect(cache.size).toBe(1);
  expect(cache.get('b', '1')).toBe('b');
  now = 300;
  expect(cache.get('b', '1')).toBeUndefined();
});

test('what is deleted or cleared is gone', () => {
  cache.set('a', '1', 'a', 10);
  cache.delete('a');
  cache.delete('never');
  cache.set('b', '1', 'b', 10);
  cache.clear();
  expect([cache.size, cache.bytes]).toEqual([0, 0]);
});

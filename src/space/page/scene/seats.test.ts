import { expect, test } from 'vitest';
import { Seats } from './seats.ts';

test('nobody moves when others come and go, and free places are taken again', () => {
  const seats = new Seats<string>();
  expect(['a', 'b', 'c', 'd'].map((who) => seats.take(who))).toEqual([0, 1, 2, 3]);
  seats.release(2);
  seats.release(0);
  expect(seats.taken[1]).toBe('b');
  expect(seats.take('e')).toBe(0);
  expect(seats.take('f')).toBe(2);
  expect(seats.take('g')).toBe(4);
  expect(seats.count).toBe(5);
});

test('a place is given back once', () => {
  const seats = new Seats<string>();
  seats.take('a');
  seats.release(0);
  seats.release(0);
  expect(seats.count).toBe(0);
  expect(seats.taken.length).toBe(0);
});

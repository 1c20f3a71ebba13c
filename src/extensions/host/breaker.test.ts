import { expect, test } from 'vitest';
import { Breaker } from './breaker.ts';

function setUp() {
  const clock = { now: 0 };
  const breaker = new Breaker(() => clock.now);
  return { clock, breaker };
}

test('one conversation that always fails does not stop the others', () => {
  const { breaker } = setUp();
  for (let i = 0; i < 50; i++) breaker.failed('a');
  expect(breaker.admit()).toBe(true);
});

test('a success between failures shows that the hook is well', () => {
  const { breaker } = setUp();
  for (let i = 0; i < 50; i++) {
    breaker.failed(`${i}`);
    if (i % 3 === 0) breaker.succeeded();
  }
  expect(breaker.open).toBe(false);
});

test('several that fail in a row make it rest, longer each time, with one trial at the end', () => {
  const { clock, breaker } = setUp();
  for (const key of ['a', 'b', 'c', 'a', 'b']) breaker.failed(key);
  breaker.failed('d'); // It was under way already.
  for (const pause of [1000, 2000, 4000, 8000, 16_000, 32_000, 60_000, 60_000]) {
    clock.now += pause - 1;
    expect(breaker.admit()).toBe(false);
    clock.now += 1;
    expect([breaker.admit(), breaker.admit()]).toEqual([true, false]);
    breaker.failed('a');
  }
  clock.now += 60_000;
  expect(breaker.admit()).toBe(true);
  breaker.succeeded();
  expect([breaker.admit(), breaker.admit()]).toEqual([true, true]);
});

test('a trial that is called off decides nothing', () => {
  const { clock, breaker } = setUp();
  breaker.trip();
  clock.now += 1000;
  expect(breaker.admit()).toBe(true);
  breaker.calledOff();
  expect(breaker.open).toBe(true);
  expect(breaker.admit()).toBe(true);
});

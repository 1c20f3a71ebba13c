import { expect, test } from 'vitest';
import { isLoopbackAddress, isLoopbackHost } from './loopback.ts';

test.each(['127.0.0.1', '127.255.255.254', '::1', '::ffff:127.0.0.1', '::FFFF:127.1.2.3'])(
  '%s is this machine',
  (address) => {
    expect(isLoopbackAddress(address)).toBe(true);
  },
);

test.each(['10.0.0.1', '128.0.0.1', '::2', '::ffff:10.0.0.1', '', '127.0.0.1.example.org', '1127.0.0.1'])(
  '%s is not',
  (address) => {
    expect(isLoopbackAddress(address)).toBe(false);
  },
);

test.each(['localhost', 'LocalHost:8787', 'moirai.localhost', 'localhost.', '127.0.0.1:1', '[::1]', '[::1]:8787'])(
  'the host %s is this machine',
  (host) => {
    expect(isLoopbackHost(host)).toBe(true);
  },
);

test.each([
  '',
  'example.org',
  'localhost.example.org',
  'notlocalhost',
  '::1',
  '[::1',
  '127.0.0.1:',
  'localhost:1:2',
  '0.0.0.0',
])('the host %s is not', (host) => {
  expect(isLoopbackHost(host)).toBe(false);
});

import { describe, expect, test } from 'vitest';
import { TrustedProxies } from './client-address.ts';

function clientOf(trusted: readonly string[], remoteAddress: string, headers: Record<string, string> = {}) {
  return new TrustedProxies(trusted).clientOf({ socket: { remoteAddress }, headers });
}

const BY_LOCAL_PROXY = ['127.0.0.1', '::1'];

describe('the address of a client', () => {
  test('is that of the connection while no proxy is trusted, whatever a header says', () => {
    for (const headers of [{ 'x-forwarded-for': '203.0.113.9' }, { forwarded: 'for=203.0.113.9' }, {}]) {
      expect(clientOf([], '127.0.0.1', headers)).toEqual({ address: '127.0.0.1', proxied: false });
      expect(clientOf(['10.0.0.0/8'], '192.0.2.1', headers)).toEqual({ address: '192.0.2.1', proxied: false });
    }
  });

  test.each([
    [{ 'x-forwarded-for': '203.0.113.9' }, '203.0.113.9'],
    [{ 'x-forwarded-for': '127.0.0.1, 203.0.113.9' }, '203.0.113.9'],
    [{ 'x-forwarded-for': '203.0.113.9, 127.0.0.1' }, '203.0.113.9'],
    [{ 'x-forwarded-for': '203.0.113.9:4711' }, '203.0.113.9'],
    [{ 'x-forwarded-for': '2001:db8::1' }, '2001:db8::1'],
    [{ 'x-forwarded-for': '::ffff:203.0.113.9' }, '203.0.113.9'],
    [{ forwarded: 'for=203.0.113.9;proto=https' }, '203.0.113.9'],
    [{ forwarded: 'for=10.9.9.9, proto=https;For="[2001:db8::1]:4711"' }, '2001:db8::1'],
    [{ 'x-forwarded-for': '203.0.113.9', forwarded: 'for=198.51.100.1' }, '203.0.113.9'],
    [{ 'x-forwarded-for': '203.0.113.9, unknown' }, '127.0.0.1'],
    [{ forwarded: 'for=_hidden' }, '127.0.0.1'],
    [{ 'x-forwarded-for': '' }, '127.0.0.1'],
  ])('is the nearest one that a trusted proxy names: %j', (headers, address) => {
    expect(clientOf(BY_LOCAL_PROXY, '::ffff:127.0.0.1', headers)).toEqual({ address, proxied: true });
  });

  test('is found behind several proxies by their networks', () => {
    const headers = { 'x-forwarded-for': '203.0.113.9, 10.1.2.3, fd00::7' };
    expect(clientOf(['10.0.0.0/8', 'fd00::/8', '192.0.2.1'], '192.0.2.1', headers).address).toBe('203.0.113.9');
    expect(clientOf(['10.0.0.0/8', '192.0.2.1'], '192.0.2.1', headers).address).toBe('fd00::7');
  });

  test('that a proxy passed on is never of this machine, also when it claims so', () => {
    const claim = clientOf(BY_LOCAL_PROXY, '127.0.0.1', { 'x-forwarded-for': '127.0.0.1' });
    expect(claim).toEqual({ address: '127.0.0.1', proxied: true });
    expect(clientOf(BY_LOCAL_PROXY, '127.0.0.1').proxied).toBe(false);
  });
});

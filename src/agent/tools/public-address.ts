import { lookup } from 'node:dns/promises';
import { BlockList, isIP, isIPv4 } from 'node:net';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { WebAccess } from './ports.ts';

/** IPv4 networks that are not the public internet: this host, its neighbours, documentation, multicast, reserved. */
const CLOSED_V4: readonly (readonly [string, number])[] = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
];

/** In IPv6 only global unicast is open, and of it nothing that wraps an IPv4 address or is for documentation. */
const OPEN_V6: readonly [string, number] = ['2000::', 3];
const CLOSED_V6: readonly (readonly [string, number])[] = [
  ['2001::', 32],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['3fff::', 20],
];

const closed = new BlockList();
const open = new BlockList();
for (const [net, prefix] of CLOSED_V4) closed.addSubnet(net, prefix, 'ipv4');
for (const [net, prefix] of CLOSED_V6) closed.addSubnet(net, prefix, 'ipv6');
open.addSubnet(...OPEN_V6, 'ipv6');

export function isPublic(address: string): boolean {
  if (isIPv4(address)) return !closed.check(address, 'ipv4');
  return isIP(address) === 6 && open.check(address, 'ipv6') && !closed.check(address, 'ipv6');
}

/**
 * The address to connect to for a host. The connection must go to this very address: asking the resolver a second time
 * may give another answer. One private address among several refuses the host, since which of them is meant is a guess.
 */
export async function checkedAddress(host: string, web: WebAccess): Promise<string> {
  const name = host.replace(/^\[(.*)\]$/, '$1');
  const addresses = isIP(name) === 0 ? await resolve(name, web) : [name];
  const allowed = (address: string) => isPublic(address) || (web.allowLoopback === true && isLoopback(address));
  const [first] = addresses;
  if (first === undefined) throw new MoiraiError('tool_failed', `${name} has no address`);
  if (!addresses.every(allowed)) {
    throw new MoiraiError('tool_failed', `${name} is not a public address; only the public internet can be fetched`);
  }
  return first;
}

function isLoopback(address: string): boolean {
  return address === '::1' || (isIPv4(address) && address.startsWith('127.'));
}

async function resolve(host: string, web: WebAccess): Promise<readonly string[]> {
  try {
    if (web.resolve !== undefined) return await web.resolve(host);
    return (await lookup(host, { all: true })).map(({ address }) => address);
  } catch (error) {
    throw new MoiraiError('tool_failed', `${host} cannot be resolved`, { cause: error });
  }
}

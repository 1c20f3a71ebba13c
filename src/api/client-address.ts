import type { IncomingMessage } from 'node:http';
import { BlockList, isIP, isIPv4 } from 'node:net';

/** Where a request came from. */
export interface Client {
  readonly address: string;
  /** A trusted proxy passed it on: its sender is no program of this machine, whatever it says. */
  readonly proxied: boolean;
}

/** The part of a request that says where it came from. */
interface Arrival extends Pick<IncomingMessage, 'headers'> {
  readonly socket: { readonly remoteAddress?: string | undefined };
}

/**
 * Who is believed about where a request came from: addresses and networks (`10.0.0.0/8`) of reverse proxies. What anybody
 * else writes into `X-Forwarded-For` or `Forwarded` is not looked at.
 */
export class TrustedProxies {
  readonly #list = new BlockList();

  constructor(ranges: readonly string[]) {
    for (const range of ranges) {
      const [network = '', length] = range.split('/');
      const family = isIPv4(network) ? 'ipv4' : 'ipv6';
      if (length === undefined) this.#list.addAddress(network, family);
      else this.#list.addSubnet(network, Number(length), family);
    }
  }

  /** The nearest address that is no trusted proxy's: everything before it could be made up by its sender. */
  clientOf({ socket, headers }: Arrival): Client {
    let address = plainAddress(socket.remoteAddress ?? '') ?? 'an unknown address';
    if (!this.#trusts(address)) return { address, proxied: false };
    const named = namedAddresses(headers);
    for (const text of named.toReversed()) {
      const before = plainAddress(text);
      if (before === null) break;
      address = before;
      if (!this.#trusts(address)) break;
    }
    return { address, proxied: named.length > 0 };
  }

  #trusts(address: string): boolean {
    return isIP(address) !== 0 && this.#list.check(address, isIPv4(address) ? 'ipv4' : 'ipv6');
  }
}

/** As the header has them: the nearest last. A proxy that writes the one passes the other on as it came. */
function namedAddresses(headers: IncomingMessage['headers']): readonly string[] {
  const [forwardedFor, forwarded] = [headers['x-forwarded-for'], headers.forwarded];
  if (forwardedFor !== undefined) return String(forwardedFor).split(',');
  if (forwarded === undefined) return [];
  return forwarded.split(',').map((element) => {
    const pair = element.split(';').find((each) => each.trim().toLowerCase().startsWith('for='));
    return pair?.slice(pair.indexOf('=') + 1) ?? '';
  });
}

/** An address without quotes, brackets, port and zone, and IPv4 as such; null for what is none. */
function plainAddress(text: string): string | null {
  const bare = text.trim().replaceAll('"', '');
  const bracketed = bare.startsWith('[') ? bare.slice(1, bare.indexOf(']')) : null;
  const [withoutPort = ''] = isIP(bare) === 0 ? bare.split(':') : [bare];
  const [address = ''] = (bracketed ?? withoutPort).split('%');
  const mapped = address.toLowerCase().startsWith('::ffff:') ? address.slice('::ffff:'.length) : '';
  if (isIPv4(mapped)) return mapped;
  return isIP(address) === 0 ? null : address;
}

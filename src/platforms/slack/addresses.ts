const OWN_HOST = /^(?:[a-z0-9-]+\.)*slack(?:-gov)?\.com$/;

/**
 * Where a request goes for which Slack gave the address; null for an address that is not Slack's own: no token leaves for
 * another host. With a root of its own every host is that one, and the path stays.
 */
export function addressAt(url: unknown, apiRoot: string | null): URL | null {
  if (typeof url !== 'string' || !URL.canParse(url)) return null;
  const given = new URL(url);
  if (apiRoot === null) {
    const isOwn = (given.protocol === 'https:' || given.protocol === 'wss:') && OWN_HOST.test(given.hostname);
    return isOwn ? given : null;
  }
  const root = new URL(apiRoot);
  const isSocket = given.protocol === 'wss:' || given.protocol === 'ws:';
  if (!isSocket && given.protocol !== 'https:' && given.protocol !== 'http:') return null;
  // A server of one's own may listen for sockets on another port.
  if (given.hostname === root.hostname) return given;
  const scheme = isSocket ? root.protocol.replace('http', 'ws') : root.protocol;
  return new URL(`${scheme}//${root.host}${given.pathname}${given.search}`);
}

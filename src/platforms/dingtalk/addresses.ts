const API = 'https://api.dingtalk.com';
const OAPI = 'https://oapi.dingtalk.com';

const OWN = /^(?:[\w-]+\.)*dingtalk\.com$/i;
/** Files lie in DingTalk's own storage or in that of Alibaba Cloud; names of its inner network are none of ours. */
const STORAGE = /^(?:[\w-]+\.)+(?:aliyuncs|alicdn)\.com$/i;
const INNER = /-internal\./i;

type Scheme = 'http' | 'ws';

/**
 * Where DingTalk is. Some of its addresses come in with messages and answers: only those of DingTalk's hosts are called.
 * With another root every host is that one, and paths stay as they are.
 */
export class Addresses {
  readonly #root: URL | null;

  constructor(apiRoot: string | null) {
    this.#root = apiRoot === null ? null : new URL(apiRoot);
  }

  api(path: string): string {
    return `${this.#root?.origin ?? API}${path}`;
  }

  /** The older API: files, and the addresses that messages bring. */
  oapi(path: string): string {
    return `${this.#root?.origin ?? OAPI}${path}`;
  }

  /** The address that a message is answered at; null for one that is not DingTalk's. */
  webhook(address: string): string | null {
    return this.#permitted(address, 'http', (host) => OWN.test(host), 'host');
  }

  /** The socket that messages come over, as the API names it; null for one that is not DingTalk's. */
  socket(address: string): URL | null {
    const permitted = this.#permitted(address, 'ws', (host) => OWN.test(host), 'hostname');
    return permitted === null ? null : new URL(permitted);
  }

  /** Where a file lies, as the API names it; null for a place that is not DingTalk's. */
  file(address: string): string | null {
    const isStorage = (host: string): boolean => OWN.test(host) || (STORAGE.test(host) && !INNER.test(host));
    return this.#permitted(address, 'http', isStorage, 'hostname');
  }

  #permitted(
    address: string,
    scheme: Scheme,
    isKnown: (host: string) => boolean,
    like: 'host' | 'hostname',
  ): string | null {
    if (!URL.canParse(address)) return null;
    const url = new URL(address);
    if (url.username !== '' || url.password !== '') return null;
    const root = this.#root;
    if (root !== null && isAt(root, url, like) && url.protocol === schemeAs(root, scheme)) return url.href;
    // Storage links are often written with http; DingTalk's hosts all know https.
    const isPlainFile = scheme === 'http' && url.protocol === 'http:' && url.port === '';
    if (!isKnown(url.hostname) || url.port !== '' || !(url.protocol === `${scheme}s:` || isPlainFile)) return null;
    url.protocol = `${scheme}s:`;
    return root === null ? url.href : `${schemeAs(root, scheme)}//${root.host}${url.pathname}${url.search}`;
  }
}

const THIS_MACHINE = /^(?:localhost|127\.0\.0\.1|\[::1\])$/;

/** On one machine its names mean the same; another port is another server, except where the API itself names it. */
function isAt(root: URL, url: URL, like: 'host' | 'hostname'): boolean {
  if (like === 'host' && root.port !== url.port) return false;
  return root.hostname === url.hostname || (THIS_MACHINE.test(root.hostname) && THIS_MACHINE.test(url.hostname));
}

/** `wss:` where the root is an `https:` one, and so on. */
function schemeAs(root: URL, scheme: Scheme): string {
  return root.protocol === 'https:' ? `${scheme}s:` : `${scheme}:`;
}

import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/**
 * A network between a store and its PostgreSQL server, on loopback, that a test troubles: give the store
 * `proxy.through(url)`. It reads just enough of the protocol to know a COMMIT when it passes. Without TLS only.
 */
export interface PostgresProxy {
  /** The URL of a database of the server, by way of the proxy. */
  through(url: string): string;
  /** Nothing passes any more, and no side is told: connections stay, new ones are accepted and never answered. */
  silence(): void;
  /** The same from the moment on when a store sends this text, which the server does not get. */
  silenceAt(text: string): void;
  /** Breaks every connection and refuses new ones. */
  refuse(): Promise<void>;
  /** Ends `silence` and `refuse`; what was held back by the silence passes now. */
  restore(): Promise<void>;
  /** Breaks every connection; new ones are served. */
  cut(): void;
  /** What happens to the next COMMIT of any connection. Resolves once it has happened. */
  troubleNextCommit(trouble: CommitTrouble): Promise<void>;
  /** Connections that stores have open now. */
  readonly connections: number;
  close(): Promise<void>;
}

/**
 * `cut-before`: the connection breaks and the server never gets it. `cut-after`: the server has done it, and the
 * connection breaks before the store is told. `silent-after`: the same, but the connection stays, silent for ever.
 */
export type CommitTrouble = 'cut-before' | 'cut-after' | 'silent-after';

interface Link {
  readonly store: Socket;
  readonly server: Socket;
  silent: boolean;
}

interface PendingTrouble {
  readonly kind: CommitTrouble;
  happened(): void;
}

/** Starts a proxy to the server of a URL. */
export async function startPostgresProxy(serverUrl: string): Promise<PostgresProxy> {
  const target = new URL(serverUrl);
  const links = new Set<Link>();
  const pending: PendingTrouble[] = [];
  let silent = false;
  let lastWords: string | null = null;

  const silence = (): void => {
    silent = true;
    lastWords = null;
    for (const link of links) hush(link);
  };
  const listener = createServer((store) => {
    const server = connect(Number(target.port || 5432), target.hostname);
    const link: Link = { store, server, silent: false };
    links.add(link);
    const passes = (data: Buffer): boolean => {
      if (lastWords === null || !data.includes(lastWords)) return true;
      silence();
      return false;
    };
    joinSockets(link, { pending, passes, gone: () => links.delete(link) });
    if (silent) hush(link);
  });
  const port = await listen(listener, 0);

  const cut = (): void => {
    for (const link of links) breakLink(link);
  };
  const refuse = async (): Promise<void> => {
    const closed = listener.listening ? once(listener.close(), 'close') : null;
    cut();
    await closed;
  };
  return {
    through: (url) => {
      const through = new URL(url);
      through.hostname = '127.0.0.1';
      through.port = String(port);
      return through.href;
    },
    silence,
    silenceAt: (text) => {
      lastWords = text;
    },
    refuse,
    restore: async () => {
      silent = false;
      for (const link of links) {
        if (link.silent) continue;
        link.store.resume();
        link.server.resume();
      }
      if (!listener.listening) await listen(listener, port);
    },
    cut,
    troubleNextCommit: (kind) => new Promise((happened) => pending.push({ kind, happened })),
    get connections() {
      return links.size;
    },
    close: refuse,
  };
}

async function listen(listener: Server, port: number): Promise<number> {
  listener.listen(port, '127.0.0.1');
  await once(listener, 'listening');
  return (listener.address() as AddressInfo).port;
}

function hush({ store, server }: Link): void {
  store.pause();
  server.pause();
}

/** With a reset, as a router does it that has forgotten the connection. */
function breakLink({ store, server }: Link): void {
  store.resetAndDestroy();
  server.destroy();
}

interface LinkDeps {
  readonly pending: PendingTrouble[];
  /** Whether what a store has sent goes on to the server. */
  passes(data: Buffer): boolean;
  gone(): void;
}

function joinSockets(link: Link, { pending, passes, gone }: LinkDeps): void {
  const { store, server } = link;
  const isCommit = commitReader();
  let awaited: PendingTrouble | null = null;
  store.on('data', (data: Buffer) => {
    if (!passes(data)) return;
    if (isCommit(data) && pending.length > 0) {
      awaited = pending.shift() ?? null;
      if (awaited?.kind === 'cut-before') {
        breakLink(link);
        awaited.happened();
        return;
      }
    }
    server.write(data);
  });
  let answer = '';
  server.on('data', (data: Buffer) => {
    if (awaited === null) {
      store.write(data);
      return;
    }
    // The server's word for a transaction that is durable now; a refusal is passed on.
    answer += data.toString('latin1');
    if (answer.includes('COMMIT\0')) {
      if (awaited.kind === 'cut-after') breakLink(link);
      else {
        link.silent = true;
        hush(link);
      }
      awaited.happened();
      awaited = null;
    } else if (answer.includes('SFATAL') || answer.includes('SERROR')) {
      store.write(Buffer.from(answer, 'latin1'));
      awaited = null;
    }
  });
  const end = (): void => {
    store.destroy();
    server.destroy();
    gone();
  };
  for (const socket of [store, server]) {
    socket.on('error', end);
    socket.on('close', end);
  }
}

/** Says of what a store sends, piece by piece, whether a COMMIT has just been asked for. */
function commitReader(): (data: Buffer) => boolean {
  let unread = Buffer.alloc(0);
  let started = false;
  const named = new Set<string>();
  return (data) => {
    unread = Buffer.concat([unread, data]);
    let found = false;
    for (;;) {
      const head = started ? 1 : 0; // The first message has no type.
      if (unread.length < head + 4) return found;
      const length = head + unread.readInt32BE(head);
      if (unread.length < length) return found;
      const type = started ? String.fromCharCode(unread[0] ?? 0) : '';
      const words = unread.toString('latin1', head + 4, length).split('\0');
      started = true;
      unread = unread.subarray(length);
      const [first = '', second = ''] = words;
      if (type === 'P' && second === 'COMMIT') named.add(first);
      // A Bind names its portal first, then the statement.
      if ((type === 'B' && named.has(second)) || (type === 'Q' && first === 'COMMIT')) found = true;
    }
  };
}

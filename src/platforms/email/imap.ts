import { ImapFlow } from 'imapflow';
import type { MailServer } from './account.ts';

const CONNECT_MS = 20_000;
const SILENCE_MS = 120_000;
/** Of one answer; a mail is fetched in pieces, so this is what only a broken server sends. */
const MOST_LITERAL_BYTES = 8 * 1024 * 1024;

/** Logs in; the connection ends when the signal does. Whatever happens to it later, its calls reject. */
export async function openImap(
  { host, port, user, password, encryption }: MailServer,
  signal: AbortSignal,
): Promise<ImapFlow> {
  signal.throwIfAborted();
  const client = new ImapFlow({
    host,
    port,
    secure: encryption === 'tls',
    doSTARTTLS: encryption === 'starttls',
    auth: { user, pass: password },
    clientInfo: { name: 'Moirai' },
    logger: false,
    // What is waited for, and for how long, is decided here.
    disableAutoIdle: true,
    disableAutoEnable: true,
    disableCompression: true,
    disableIMAP4rev2: true,
    connectionTimeout: CONNECT_MS,
    socketTimeout: SILENCE_MS,
    maxLineLength: MOST_LITERAL_BYTES,
    maxLiteralSize: MOST_LITERAL_BYTES,
    maxResponseSize: 2 * MOST_LITERAL_BYTES,
  });
  // An error of the connection also rejects what waits for it; without a listener it would end the process.
  client.on('error', () => undefined);
  const close = (): void => client.close();
  signal.addEventListener('abort', close, { once: true });
  client.once('close', () => signal.removeEventListener('abort', close));
  try {
    await client.connect();
    return client;
  } catch (thrown) {
    client.close();
    throw thrown;
  }
}

/** Does something with a mailbox over a connection of its own, so that nobody has to stop listening. */
export async function withMailbox<T>(
  server: MailServer,
  signal: AbortSignal,
  work: (client: ImapFlow) => Promise<T>,
): Promise<T> {
  const client = await openImap(server, signal);
  try {
    return await work(client);
  } finally {
    client.close();
  }
}

/** The folder of what was sent; null where the server has none. */
export async function sentFolder(client: ImapFlow): Promise<string | null> {
  const folders = await client.list();
  return folders.find(({ specialUse }) => specialUse === '\\Sent')?.path ?? null;
}

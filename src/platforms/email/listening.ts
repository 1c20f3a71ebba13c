import type { ImapFlow } from 'imapflow';
import type { Connection } from '../connection.ts';
import type { PlatformRuntime } from '../platform.ts';
import type { MailAccount } from './account.ts';
import { openImap } from './imap.ts';
import { connectionLost, type Intake } from './intake.ts';

/** Shorter than what servers and the routers between bear of silence. */
const IDLE_MS = 9 * 60_000;
/** Where the server does not tell by itself that something came. */
const POLL_MS = 10_000;

/** Remembers that something is to be done until somebody does it. */
export class Bell {
  readonly #rung = new Set<string>();
  #wake: () => void = () => undefined;

  ring(why: 'mail' | 'taken' | 'idled' | 'closed'): void {
    this.#rung.add(why);
    this.#wake();
  }

  /** Why it was rung since the last time. */
  take(): ReadonlySet<string> {
    const reasons = new Set(this.#rung);
    this.#rung.clear();
    return reasons;
  }

  /** Resolves when it is rung, or was since the last time. */
  async heard(): Promise<void> {
    if (this.#rung.size > 0) return;
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }
}

export interface ListeningDeps {
  readonly account: MailAccount;
  readonly runtime: PlatformRuntime;
  readonly connection: Connection;
  readonly intake: Intake;
  readonly bell: Bell;
}

/** Takes what comes into the mailbox until the signal ends it or trying has no use; connects again by itself. */
export async function listen(deps: ListeningDeps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    const ended = new AbortController();
    try {
      await deps.intake.start();
      await session(deps, await openImap(deps.account.imap, AbortSignal.any([signal, ended.signal])), signal);
    } catch (thrown) {
      if (signal.aborted) return;
      ended.abort();
      if ((await deps.connection.failed(thrown, signal)).phase === 'failed') return;
    } finally {
      ended.abort();
    }
  }
}

async function session({ intake, connection, bell, runtime }: ListeningDeps, client: ImapFlow, signal: AbortSignal) {
  client.on('exists', () => bell.ring('mail'));
  client.once('close', () => bell.ring('closed'));
  const mailbox = await client.mailboxOpen('INBOX');
  await intake.enter(client, mailbox);
  bell.ring('mail');
  let canTell = client.capabilities.has('IDLE');
  // The next command ends it, the server may, and the library does after a long silence: then it has to begin again. A server
  // that refuses it is asked from time to time.
  let idles = false;
  const idled = (ended: boolean | undefined): void => {
    idles = false;
    if (ended === false) canTell = false;
    bell.ring('idled');
  };
  while (!signal.aborted) {
    const reasons = bell.take();
    if (!client.usable || client.mailbox === false) throw connectionLost();
    if (reasons.has('mail')) await intake.catchUp(client);
    else await intake.goOn(client);
    await intake.mark(client);
    connection.succeeded();
    const cancel = runtime.after(canTell ? IDLE_MS : POLL_MS, () => bell.ring('mail'));
    if (canTell && !idles) {
      idles = true;
      client.idle().then(idled, () => idled(undefined));
    }
    await bell.heard();
    cancel();
  }
}

/** One of the two servers of a mailbox, and how to log in there. */
export interface MailServer {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly password: string;
  readonly encryption: 'tls' | 'starttls' | 'none';
}

/** A mailbox that the agent has. */
export interface MailAccount {
  /** In lower case. */
  readonly address: string;
  readonly imap: MailServer;
  readonly smtp: MailServer;
  /** Whose `Authentication-Results` are believed; null: nobody's, and senders are not proven. */
  readonly authservId: string | null;
}

/** What stands under `imap` and `smtp`. */
export interface ServerSettings {
  readonly host: string | null;
  readonly port: number | null;
  readonly user: string | null;
  readonly password: string | null;
  readonly tls: boolean;
}

export interface AccountSettings {
  readonly address: string | null;
  readonly password: string | null;
  readonly imap: ServerSettings;
  readonly smtp: ServerSettings;
  readonly authservId: string | null;
  readonly apiRoot: string | null;
}

/** Ports on which a connection begins unencrypted and becomes encrypted by STARTTLS. */
const STARTTLS_PORTS: ReadonlySet<number> = new Set([143, 25, 587, 2525]);

/** The account that the settings describe, with what follows from others filled in. */
export function accountOf({ address, password, imap, smtp, authservId, apiRoot }: AccountSettings): MailAccount {
  const own = (address ?? '').trim().toLowerCase();
  const host = apiRoot === null ? null : new URL(apiRoot).hostname;
  const serverOf = (given: ServerSettings, ports: { readonly tls: number; readonly plain: number }): MailServer => {
    const port = given.port ?? (given.tls ? ports.tls : ports.plain);
    return {
      host: host ?? given.host ?? '',
      port,
      user: given.user ?? own,
      password: given.password ?? password ?? '',
      encryption: !given.tls ? 'none' : STARTTLS_PORTS.has(port) ? 'starttls' : 'tls',
    };
  };
  return {
    address: own,
    imap: serverOf(imap, { tls: 993, plain: 143 }),
    smtp: serverOf(smtp, { tls: 465, plain: 25 }),
    authservId: authservId?.trim().toLowerCase() ?? null,
  };
}

/** The keys that are needed and not given. */
export function missingOf({ address, password, imap, smtp, apiRoot }: AccountSettings): string[] {
  const servers = { imap, smtp };
  const missing = address === null ? ['address'] : [];
  for (const [name, server] of Object.entries(servers)) {
    if (server.host === null && apiRoot === null) missing.push(`${name}.host`);
  }
  const withoutPassword = Object.values(servers).some((server) => server.password === null);
  return withoutPassword && password === null ? [...missing, 'password'] : missing;
}

export function domainOf(address: string): string {
  return address.slice(address.lastIndexOf('@') + 1);
}

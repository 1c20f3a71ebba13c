import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { freePort } from './free-port.ts';
import { giveTo, temporaryFolder, unprivilegedUser } from './postgres-binaries.ts';

const PATH = `${process.env.PATH}:/usr/sbin:/usr/local/sbin`;
const START_DEADLINE_MS = 30_000;
const PASSWORD = 'password-of-all';

/** Why no mail servers can be started here; undefined when they can. */
export function whyNoMailServers(): string | undefined {
  const versionOf = (command: string, ...args: string[]): string | null => {
    const { error, stdout } = spawnSync(command, args, { env: { ...process.env, PATH }, encoding: 'utf8' });
    return error === undefined ? stdout.trim() : null;
  };
  const dovecot = versionOf('dovecot', '--version');
  if (dovecot === null) return 'Dovecot is not installed (dovecot-imapd)';
  if (!dovecot.startsWith('2.3')) return `Dovecot ${dovecot} has another configuration than 2.3`;
  if (versionOf('postconf', '-d', 'mail_version') === null) return 'Postfix is not installed (postfix)';
  const isRoot = process.getuid?.() === 0 || spawnSync('sudo', ['-n', 'true']).status === 0;
  return isRoot ? undefined : 'Postfix starts as root only, and this user may not become root';
}

export interface MailServers {
  readonly password: string;
  readonly imapPort: number;
  readonly smtpPort: number;
  /** Ends every connection to the mailboxes; they can be opened again at once. */
  restartDovecot(): Promise<void>;
  /** The mails of a mailbox get other numbers, as after it was made anew from a backup. */
  renumber(address: string): Promise<void>;
  /** Whether somebody waits to be told what comes into a mailbox. */
  isIdled(address: string): boolean;
  /** What both have written to their logs. */
  readonly log: string;
  stop(): Promise<void>;
}

/**
 * Dovecot and Postfix on loopback, in a folder of their own: a mailbox for each address, all with the same password. Postfix
 * takes mail for them from everybody, and asks Dovecot who may send elsewhere. What is sent to `returned` comes back.
 */
export async function startMailServers(addresses: readonly string[], returned: string): Promise<MailServers> {
  const owner = process.getuid?.() === 0 ? unprivilegedUser() : undefined;
  const { uid, gid } = owner ?? { uid: process.getuid?.() ?? 0, gid: process.getgid?.() ?? 0 };
  const home = await mkdtemp(join(await temporaryFolder(owner), 'moirai-mail-'));
  await chmod(home, 0o755);
  const [imapPort, smtpPort] = [await freePort(), await freePort()];
  const lines: string[] = [];
  const note = (child: ChildProcess): void => {
    for (const stream of [child.stdout, child.stderr])
      stream?.on('data', (text: Buffer) => lines.push(text.toString()));
  };

  for (const folder of ['dovecot', 'mail']) await mkdir(join(home, folder));
  await writeFile(join(home, 'dovecot', 'dovecot.conf'), dovecotSettings(home, imapPort, uid, gid));
  if (owner !== undefined) for (const folder of ['dovecot', 'mail']) await giveTo(owner, join(home, folder));
  const startDovecot = async (): Promise<ChildProcess> => {
    const child = spawn('dovecot', ['-F', '-c', join(home, 'dovecot', 'dovecot.conf')], {
      ...owner,
      cwd: home,
      env: { PATH },
      stdio: 'pipe',
    });
    note(child);
    await open(child, imapPort, lines);
    return child;
  };

  const postfixFolder = join(home, 'postfix');
  for (const folder of ['', 'queue', 'data']) await mkdir(join(postfixFolder, folder));
  await writeFile(join(postfixFolder, 'main.cf'), postfixSettings(home, [...addresses, returned], returned, uid, gid));
  await writeFile(join(postfixFolder, 'master.cf'), postfixServices(smtpPort));
  const asRoot = (...command: string[]): [string, string[]] => {
    const [first = '', ...rest] = process.getuid?.() === 0 ? command : ['sudo', '-n', ...command];
    return [first, rest];
  };
  spawnSync(...asRoot('chown', 'postfix', join(postfixFolder, 'data')), { env: { PATH } });

  let dovecot = await startDovecot();
  const postfix = spawn(...asRoot('postfix', '-c', postfixFolder, 'start-fg'), {
    cwd: home,
    env: { PATH },
    stdio: 'pipe',
  });
  note(postfix);
  const stop = async (): Promise<void> => {
    if (postfix.exitCode === null) {
      const exited = once(postfix, 'exit');
      spawnSync(...asRoot('postfix', '-c', postfixFolder, 'abort'), { env: { PATH } });
      await exited;
    }
    await end(dovecot);
    spawnSync(...asRoot('rm', '-rf', postfixFolder));
    await rm(home, { recursive: true, force: true });
  };
  await open(postfix, smtpPort, lines).catch(async (error: unknown) => {
    await stop();
    throw error;
  });
  return {
    ...{ password: PASSWORD, imapPort, smtpPort, stop },
    get log() {
      return `${lines.join('')}${readFileSync(join(postfixFolder, 'log'), 'utf8')}`;
    },
    restartDovecot: async () => {
      await end(dovecot);
      dovecot = await startDovecot();
    },
    renumber: async (address) => {
      const folder = join(home, 'mail', address);
      await end(dovecot);
      // All that is its own: what is left are the mails.
      for (const name of await readdir(folder)) if (name.startsWith('dovecot')) await rm(join(folder, name));
      dovecot = await startDovecot();
    },
    isIdled: (address) => processTitles().some((title) => title.includes(address) && title.includes('IDLE')),
  };
}

/** What every process of this machine calls itself. */
function processTitles(): string[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      return /^\d+$/.test(name) ? [readFileSync(`/proc/${name}/cmdline`, 'utf8')] : [];
    } catch {
      return []; // It ended meanwhile.
    }
  });
}

/** Resolves when the port answers. */
async function open(child: ChildProcess, port: number, log: readonly string[]): Promise<void> {
  for (const deadline = Date.now() + START_DEADLINE_MS; !(await isOpen(port)); await sleep(20)) {
    if (child.exitCode === null && Date.now() < deadline) continue;
    throw new Error(`a mail server did not start:\n${log.join('')}`);
  }
}

async function isOpen(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1');
  try {
    await once(socket, 'connect');
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Dovecot's processes end with the first of them, which has a moment to tell them. */
async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

function dovecotSettings(home: string, port: number, uid: number, gid: number): string {
  const own = join(home, 'dovecot');
  return `
base_dir = ${own}/run
state_dir = ${own}/state
log_path = /dev/stderr
verbose_proctitle = yes
default_internal_user = ${nameOf('/etc/passwd', uid)}
default_internal_group = ${nameOf('/etc/group', gid)}
default_login_user = ${nameOf('/etc/passwd', uid)}
first_valid_uid = 1
first_valid_gid = 1
protocols = imap
listen = 127.0.0.1
ssl = no
disable_plaintext_auth = no
auth_mechanisms = plain login
mail_location = maildir:${home}/mail/%u
mail_uid = ${uid}
mail_gid = ${gid}
passdb {
  driver = static
  args = password=${PASSWORD}
}
userdb {
  driver = static
  args = uid=${uid} gid=${gid} home=${home}/mail/%u
}
namespace inbox {
  inbox = yes
  mailbox Sent {
    special_use = \\Sent
    auto = subscribe
  }
}
service imap-login {
  chroot =
  inet_listener imap {
    port = ${port}
  }
  inet_listener imaps {
    port = 0
  }
}
service anvil {
  chroot =
}
service stats {
  chroot =
}
service auth {
  unix_listener ${own}/auth-client {
    mode = 0666
  }
}
`;
}

/** Of a user or a group, by its number. */
function nameOf(file: string, id: number): string {
  const lines = readFileSync(file, 'utf8')
    .split('\n')
    .map((line) => line.split(':'));
  return lines.find(([, , number]) => Number(number) === id)?.[0] ?? 'nobody';
}

function postfixSettings(
  home: string,
  addresses: readonly string[],
  returned: string,
  uid: number,
  gid: number,
): string {
  const own = join(home, 'postfix');
  const domains = [...new Set(addresses.map((address) => address.split('@')[1]))];
  // All of them have a mailbox: an address without one would be refused at once, and nothing would come back.
  const mailboxes = addresses.map((address) => `{${address}=${address}/}`).join(', ');
  return `
compatibility_level = 3.6
queue_directory = ${own}/queue
data_directory = ${own}/data
# It opens its log by name, which a pipe does not have.
maillog_file = ${own}/log
maillog_file_prefixes = ${own}
myhostname = mx.${domains[0]}
mydestination =
alias_maps =
local_recipient_maps =
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks =
virtual_mailbox_domains = ${domains.join(', ')}
virtual_mailbox_base = ${home}/mail
virtual_mailbox_maps = inline:{${mailboxes}}
virtual_uid_maps = static:${uid}
virtual_gid_maps = static:${gid}
virtual_minimum_uid = 1
transport_maps = inline:{{${returned} = error:5.1.1 nobody of that name}}
smtpd_sasl_auth_enable = yes
smtpd_sasl_type = dovecot
smtpd_sasl_path = ${home}/dovecot/auth-client
smtpd_recipient_restrictions = permit_sasl_authenticated, reject_unauth_destination
smtpd_peername_lookup = no
`;
}

function postfixServices(port: number): string {
  return `
127.0.0.1:${port} inet n - n - - smtpd
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 300 1 qmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
proxymap unix - - n - - proxymap
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
virtual unix - n n - - virtual
anvil unix - - n - 1 anvil
postlog unix-dgram n - n - 1 postlogd
`;
}

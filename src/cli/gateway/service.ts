import { existsSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { launchdAgent } from './launchd-agent.ts';
import { MARK, type ServiceFacts } from './service-facts.ts';
import { systemdUnit } from './systemd-unit.ts';

/** A supervisor of this system: where its files are, what is in them, and what to say to it. */
export interface Supervisor {
  path(name: string): string;
  /** What starts the service at login, beside its file. */
  readonly links: (name: string) => readonly string[];
  text(facts: ServiceFacts): string;
  afterInstall(name: string, path: string): readonly string[];
  afterUninstall(name: string): readonly string[];
}

const systemd: Supervisor = {
  path: (name) => join(systemdFolder(), `${name}.service`),
  links: (name) => [join(systemdFolder(), 'default.target.wants', `${name}.service`)],
  text: systemdUnit,
  afterInstall: (name) => [
    'systemctl --user daemon-reload',
    `systemctl --user enable --now ${name}`,
    'loginctl enable-linger    # to run also while you are not logged in',
  ],
  afterUninstall: (name) => [`systemctl --user stop ${name}`, 'systemctl --user daemon-reload'],
};

const launchd: Supervisor = {
  path: (name) => join(homedir(), 'Library', 'LaunchAgents', `${name}.plist`),
  links: () => [],
  text: launchdAgent,
  afterInstall: (_, path) => [`launchctl bootstrap gui/$(id -u) ${shellQuoted(path)}`],
  afterUninstall: (name) => [`launchctl bootout gui/$(id -u)/${name}`],
};

function systemdFolder(): string {
  return join(process.env.XDG_CONFIG_HOME || join(homedir(), '.config'), 'systemd', 'user');
}

export function supervisorOf(platform: NodeJS.Platform): Supervisor {
  if (platform === 'linux') return systemd;
  if (platform === 'darwin') return launchd;
  throw new MoiraiError('bad_input', `there is no service to write on ${platform}; run \`moirai gateway start\``);
}

/** The name of a service, for its file and for commands. */
export function serviceName(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(text)) return text;
  throw new MoiraiError('bad_input', `--name is letters, digits, dots and dashes, not "${text}"`);
}

/** Throws `service_not_ours` for a file that somebody else wrote. True when there is one of ours. */
export function isInstalled(path: string): boolean {
  if (!existsSync(path)) return false;
  if (readFileSync(path, 'utf8').includes(MARK)) return true;
  throw new MoiraiError('service_not_ours', `${path} was not written by \`moirai gateway install\``);
}

function shellQuoted(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

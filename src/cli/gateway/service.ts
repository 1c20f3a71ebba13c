import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Answer } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { printable, shellQuoted } from '../print.ts';
import { makeHome, type Settings } from '../settings.ts';
import { logPath, thisInstallation } from './launch.ts';
import { launchdAgent, MARK, type ServiceFacts, systemdUnit } from './service-files.ts';

/** A supervisor of this system: where its files are, what is in them, and what to say to it. */
interface Supervisor {
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

/** What closing takes, beyond the turns; then the supervisor may kill it. */
const STOP_GRACE_S = 15;

interface ServiceOptions {
  readonly print?: boolean;
  readonly name: string;
}

/** Writes the service of a home, or only shows it. */
export async function install(settings: Settings, { name, print }: ServiceOptions): Promise<Answer> {
  const supervisor = supervisorOf(process.platform);
  const text = supervisor.text(await factsOf(settings, name));
  const path = supervisor.path(name);
  const next = supervisor.afterInstall(name, path);
  if (print) return { json: { path, text, next }, text };
  isInstalled(path);
  makeHome(settings.home);
  mkdirSync(dirname(logPath(settings.home)), { recursive: true, mode: 0o700 });
  mkdirSync(dirname(path), { recursive: true });
  // For its owner only: a store's URL may be in it, with its password.
  writeFileSync(path, text, { mode: 0o600 });
  return { json: { path, next }, text: withSteps(`Wrote ${printable(path)}. Now:`, next) };
}

async function factsOf(settings: Settings, name: string): Promise<ServiceFacts> {
  const { home, storeUrl } = settings;
  const { gateway } = await readConfig(settings);
  const store = storeUrl === null ? [] : ['--store', storeUrl];
  return {
    command: [...thisInstallation(), 'gateway', 'run', '--supervised', ...store],
    home,
    name,
    log: logPath(home),
    stopSeconds: Math.ceil(gateway.drainTimeoutMs / 1000) + STOP_GRACE_S,
  };
}

/** Removes the service of a home, or only says what would be removed. */
export async function uninstall(_: Settings, { name, print }: ServiceOptions): Promise<Answer> {
  const supervisor = supervisorOf(process.platform);
  const path = supervisor.path(name);
  const installed = isInstalled(path);
  const next = installed ? supervisor.afterUninstall(name) : [];
  const removed = installed && !print;
  if (removed) for (const file of [path, ...supervisor.links(name)]) rmSync(file, { force: true });
  const json = { path, installed, removed, next };
  if (!installed) return { json, text: `There is no service at ${printable(path)}.` };
  if (!removed) return { json, text: `${printable(path)} would be removed.` };
  return { json, text: withSteps(`Removed ${printable(path)}. If it runs:`, next) };
}

function withSteps(sentence: string, commands: readonly string[]): string {
  return [sentence, '', ...commands.map((line) => `    ${line}`)].join('\n');
}

/** The name of a service, for its file and for commands. */
export function serviceName(text: string): string {
  if (/^[A-Za-z0-9][A-Za-z0-9_.-]*$/.test(text)) return text;
  throw new MoiraiError('bad_input', `--name is letters, digits, dots and dashes, not "${text}"`);
}

/** Throws `service_not_ours` for a file that Moirai did not write. True when there is one that it wrote. */
function isInstalled(path: string): boolean {
  if (!existsSync(path)) return false;
  if (readFileSync(path, 'utf8').includes(MARK)) return true;
  throw new MoiraiError('service_not_ours', `${path} was not written by \`moirai gateway install\``);
}

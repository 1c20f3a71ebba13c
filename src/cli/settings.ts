import { mkdirSync, statSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { type Command, Option } from 'commander';
import { MoiraiError } from '../errors/moirai-error.ts';

/** The options that every command has beside its own. */
export interface Settings {
  /** The folder of everything that is kept; absolute. */
  readonly home: string;
  /** What `--store` says; null leaves it to the configuration. */
  readonly storeUrl: string | null;
  readonly json: boolean;
}

/** The options that every command takes, before its name or behind it. */
export function addCommonOptions(command: Command): void {
  const add = (flags: string, description: string): unknown =>
    command.addOption(new Option(flags, description).helpGroup('Common options:'));
  add('--home <dir>', 'folder of everything that is kept (default: $MOIRAI_HOME, else ~/.moirai)');
  add(
    '--store <url>',
    `sqlite:<file>, relative to the home, or postgres://... (default: store.url of the configuration)`,
  );
  add('--json', 'print JSON, errors too');
  command.helpOption('-h, --help', 'show this help');
}

/** The settings a command was called with: the options nearest to it count. */
export function settingsOf(command: Command): Settings {
  const given: { home?: string; store?: string | null; json?: boolean } = {};
  for (const each of lineOf(command)) Object.assign(given, each.opts());
  const { home = process.env.MOIRAI_HOME || join(homedir(), '.moirai'), store = null, json = false } = given;
  return { home: resolve(home), storeUrl: store, json };
}

/** The program, its groups, and the command itself last. */
function lineOf(command: Command): Command[] {
  return command.parent === null ? [command] : [...lineOf(command.parent), command];
}

/** Makes the home on first use, for its owner only. */
export function makeHome(home: string): void {
  try {
    makeFolder(home);
  } catch (cause) {
    const { message } = MoiraiError.wrap(cause);
    throw new MoiraiError('home_unusable', `the home ${home} cannot be made: ${message}`, { cause });
  }
}

/** Step by step: Node's own recursion never ends where the system answers "no such folder" for the new one (/proc). */
function makeFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return;
  if (dirname(path) !== path) makeFolder(dirname(path));
  try {
    mkdirSync(path, { mode: 0o700 });
  } catch (thrown) {
    // Another process may have made it meanwhile.
    if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw thrown;
  }
}

import { mkdirSync } from 'node:fs';
import { homedir } from 'node:os';
import { join, resolve } from 'node:path';
import type { Command } from 'commander';
import { MoiraiError } from '../errors/moirai-error.ts';

/** What every command is told beside its own options. */
export interface Settings {
  /** The folder of everything that is kept; absolute. */
  readonly home: string;
  readonly storeUrl: string;
  readonly json: boolean;
}

const DEFAULT_STORE = 'sqlite:state.db';

/** The options that every command takes, before its name or behind it. */
export function addCommonOptions(command: Command): void {
  command
    .option('--home <dir>', 'folder of everything that is kept (default: $MOIRAI_HOME, else ~/.moirai)')
    .option('--store <url>', `sqlite:<file>, relative to the home, or postgres://... (default: ${DEFAULT_STORE})`)
    .option('--json', 'print JSON, errors too');
}

/** The settings a command was called with: the options nearest to it count. */
export function settingsOf(command: Command): Settings {
  const given: { home?: string; store?: string; json?: boolean } = {};
  for (const each of lineOf(command)) Object.assign(given, each.opts());
  const { home = process.env.MOIRAI_HOME || join(homedir(), '.moirai'), store = DEFAULT_STORE, json = false } = given;
  return { home: resolve(home), storeUrl: store, json };
}

/** The program, its groups, and the command itself last. */
function lineOf(command: Command): Command[] {
  return command.parent === null ? [command] : [...lineOf(command.parent), command];
}

/** Makes the home on first use, for its owner only. */
export function makeHome(home: string): void {
  try {
    mkdirSync(home, { recursive: true, mode: 0o700 });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new MoiraiError('home_unusable', `the home ${home} cannot be made: ${why}`, { cause });
  }
}

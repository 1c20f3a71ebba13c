import { homedir } from 'node:os';
import { extname } from 'node:path';
import { fileURLToPath } from 'node:url';

/** What a handler needs to work, and nothing that could open a door: names are allowed, not forbidden. */
const HARMLESS = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR)$/;

export const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin';

/** The environment of a hook's handler: the harmless part of the gateway's own. */
export function hookEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  home: string,
): Record<string, string> {
  const kept = Object.entries(environment).filter(
    (entry): entry is [string, string] => HARMLESS.test(entry[0]) && entry[1] !== undefined,
  );
  return { PATH: USUAL_PATH, HOME: homedir(), ...Object.fromEntries(kept), MOIRAI_HOME: home };
}

/**
 * Runs a worker of ours, which stands beside the module of this address, in a Node of its own. What it loads in TypeScript
 * is run as it is, with its types taken off.
 */
export function nodeCommand(worker: string, beside: string, heapMb: number): string[] {
  const warnings = ['--disable-warning=ExperimentalWarning', '--disable-warning=MODULE_TYPELESS_PACKAGE_JSON'];
  const file = fileURLToPath(new URL(`./${worker}${extname(beside)}`, beside));
  return [process.execPath, ...warnings, `--max-old-space-size=${heapMb}`, file];
}

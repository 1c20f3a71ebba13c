import { homedir } from 'node:os';

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

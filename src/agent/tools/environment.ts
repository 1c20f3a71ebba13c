/** What a command needs to work, and nothing that could open a door: names are allowed, not forbidden. */
const HARMLESS = /^(PATH|HOME|USER|LOGNAME|SHELL|LANG|LANGUAGE|LC_[A-Z]+|TZ|TMPDIR|TERM|COLORTERM)$/;

const USUAL_PATH = '/usr/local/bin:/usr/bin:/bin';

/** The environment of a command: the harmless part of the gateway's own. */
export function harmlessEnvironment(
  environment: Readonly<Record<string, string | undefined>>,
  home: string,
): Record<string, string> {
  const kept = Object.entries(environment).filter(
    (entry): entry is [string, string] => HARMLESS.test(entry[0]) && entry[1] !== undefined,
  );
  return { PATH: USUAL_PATH, HOME: home, TERM: 'dumb', ...Object.fromEntries(kept) };
}

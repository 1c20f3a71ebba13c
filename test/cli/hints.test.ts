import { afterEach, beforeEach, expect, test } from 'vitest';
import { ERROR_HINTS } from '../../src/errors/codes.ts';
import { CliFixture } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

/** The commands whose options a hint names without naming them. */
const COMMAND_OF: Readonly<Record<string, string>> = {
  store_not_empty: 'restore',
  backup_exists: 'backup',
  gateway_refused_key: 'space',
  service_not_ours: 'gateway install',
  port_in_use: 'gateway run',
  home_unusable: 'gateway run',
  gateway_running: 'gateway run',
};

/** What a hint tells people to type, as a command and the options behind it. */
function advised([code, hint]: [string, string]): [command: string, options: string[]][] {
  const typed = [...hint.matchAll(/`moirai ([^`]+)`/g)].map(([, words = '']): [string, string[]] => [
    /^[a-z]+(?: [a-z]+)*/.exec(words)?.[0] ?? '',
    words.match(/--[a-z]+/g) ?? [],
  ]);
  const bare = hint.replace(/`[^`]*`/g, '').match(/--[a-z]+/g) ?? [];
  return bare.length === 0 ? typed : [...typed, [COMMAND_OF[code] ?? code, bare]];
}

test('every command and every option that a hint of an error names is there', { timeout: 60_000 }, async () => {
  const wanted = new Map<string, Set<string>>();
  for (const [command, options] of Object.entries(ERROR_HINTS).flatMap(advised)) {
    wanted.set(command, new Set([...(wanted.get(command) ?? []), ...options]));
  }
  expect(wanted.size).toBeGreaterThan(15);
  for (const [command, options] of wanted) {
    const { code, output } = await cli.moirai(...command.split(' '), '-h');
    expect({ command, code }).toEqual({ command, code: 0 });
    expect(output).toContain(`moirai ${command}`);
    for (const option of options) expect(`${command}: ${output}`).toContain(option);
  }
});

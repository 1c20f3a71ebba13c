import { mkdirSync } from 'node:fs';
import { parse } from 'yaml';
import { configPaths } from '../../config/config-paths.ts';
import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import { isAccountName, platformName } from '../../lifecycle/session-key.ts';
import { ADDABLE_PLATFORMS, type AddablePlatform, makeUntried } from '../../platforms/registry.ts';
import type { Answer } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { findGateway } from '../gateway/holder.ts';
import { printable } from '../print.ts';
import type { Settings } from '../settings.ts';
import { askInTerminal } from './ask-in-terminal.ts';
import { identify, tryingRuntime } from './try-platform.ts';
import { writeDotEnv, writeYaml } from './write-settings.ts';

export interface AddOptions {
  readonly account?: string;
  /** `key=value`, as often as there are keys. */
  readonly set?: readonly string[];
  readonly force?: true;
}

/** Asks for what a platform needs, tries it at the server, and writes it down: secrets into `.env`, the rest into `config.yaml`. */
export async function addPlatform(settings: Settings, named: string, options: AddOptions): Promise<Answer> {
  const platform = ADDABLE_PLATFORMS.find(({ name }) => name === named);
  if (platform === undefined) {
    const names = ADDABLE_PLATFORMS.map(({ name }) => name).join(', ');
    throw new MoiraiError('platform_unknown', `there is no platform ${named}; there are ${names}`);
  }
  const account = options.account ?? null;
  if (account !== null && !isAccountName(account)) {
    throw new MoiraiError(
      'bad_input',
      `"${account}" is no name for an account: lower-case letters, digits, "_" and "-"`,
    );
  }
  // A file that cannot be read now must not be written over.
  await readConfig(settings);
  const given = givenAnswers(platform, options.set ?? []);
  const answers = await askInTerminal(platform, given, settings.json);
  const name = platformName({ platform: platform.name, ...(account === null ? {} : { account }) });
  const identity = await tryAnswers(platform, name, answers, settings.home, options.force === true);
  const written = write(settings.home, platform, account, answers);
  const text = [
    identity === null ? `${name} was written without being tried.` : `${name} is ${printable(identity)}.`,
    `Written: ${written.files.join(' and ')}.`,
    findGateway(settings.home) === null
      ? 'Start it: moirai gateway start'
      : 'A gateway runs here: moirai gateway restart connects it.',
    ...platform.afterwards,
  ];
  return { json: { name, identity, ...written, afterwards: platform.afterwards }, text: text.join('\n') };
}

function givenAnswers(platform: AddablePlatform, pairs: readonly string[]): Map<string, string> {
  const given = new Map<string, string>();
  for (const pair of pairs) {
    const at = pair.indexOf('=');
    const key = pair.slice(0, at);
    if (at < 1) throw new MoiraiError('usage', `--set takes key=value, not "${pair}"`);
    if (!platform.keys.includes(key.split('.')[0] ?? '')) {
      throw new MoiraiError('usage', `${platform.label} has no setting ${key}; it has ${platform.keys.join(', ')}`);
    }
    given.set(key, pair.slice(at + 1));
  }
  return given;
}

/** Null for what was not tried because it was to be written all the same. */
async function tryAnswers(
  platform: AddablePlatform,
  shown: string,
  answers: ReadonlyMap<string, string>,
  home: string,
  force: boolean,
): Promise<string | null> {
  const raw: Record<string, unknown> = {};
  for (const [key, value] of answers) setIn(raw, key.split('.'), valueFor(platform, key, value));
  const made = makeUntried(platform.name, raw, home, tryingRuntime(shown));
  try {
    return await identify(await made);
  } catch (thrown) {
    if (force && hasCode(thrown, 'platform_refused', 'platform_unreachable')) return null;
    throw thrown;
  }
}

/** What was asked for is text, and so is a secret; anything else is written as in the file: a list, a flag, a number. */
function valueFor({ asks, secretVariable }: AddablePlatform, key: string, text: string): unknown {
  if (asks.some((question) => question.key === key)) return text;
  const value: unknown = parse(text);
  return secretVariable(key) === null || (typeof value === 'object' && value !== null) ? value : text;
}

function setIn(into: Record<string, unknown>, [first = '', ...rest]: readonly string[], value: unknown): void {
  if (rest.length === 0) into[first] = value;
  else {
    into[first] ??= {};
    setIn(into[first] as Record<string, unknown>, rest, value);
  }
}

function write(
  home: string,
  platform: AddablePlatform,
  account: string | null,
  answers: ReadonlyMap<string, string>,
): { readonly files: readonly string[]; readonly keys: readonly string[] } {
  const { name } = platform;
  const { config, env } = configPaths(home);
  const above = ['platforms', name, ...(account === null ? [] : ['accounts', account])];
  const secrets = new Map<string, string>();
  const values: (readonly [readonly string[], unknown])[] = [[[...above, 'enabled'], true]];
  for (const [key, answer] of answers) {
    const value = valueFor(platform, key, answer);
    const variable = typeof value === 'string' ? variableOf(platform, key, account) : null;
    if (variable !== null) secrets.set(variable, answer);
    values.push([[...above, ...key.split('.')], variable === null ? value : `\${${variable}}`]);
  }
  mkdirSync(home, { recursive: true, mode: 0o700 });
  if (secrets.size > 0) writeDotEnv(env, secrets);
  writeYaml(config, values);
  const keys = values.map(([path]) => path.join('.'));
  return { files: secrets.size > 0 ? [config, env] : [config], keys };
}

/** Under which variable a secret is kept; null for what is none. Each account has variables of its own. */
function variableOf({ asks, secretVariable }: AddablePlatform, key: string, account: string | null): string | null {
  const variable = asks.find((question) => question.key === key)?.secret?.variable ?? secretVariable(key);
  if (variable === null || account === null) return variable;
  return `${variable}_${account.toUpperCase().replaceAll('-', '_')}`;
}

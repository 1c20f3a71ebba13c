import { resolve } from 'node:path';
import { MoiraiError } from '../errors/moirai-error.ts';
import { variablesOf } from '../settings/keys.ts';
import { type Path, readSettings } from '../settings/read-settings.ts';
import type { Config } from './config.ts';
import { configPaths } from './config-paths.ts';
import { parseDotEnv } from './dot-env.ts';
import { expandVariables } from './expand-variables.ts';
import { explainIssue, problemAt } from './explain-issues.ts';
import { configInvalid } from './problem.ts';
import { configSettings } from './settings.ts';
import { noFile, parseYaml, readText, type YamlFile } from './yaml-file.ts';

export interface ConfigSource {
  /** The folder of everything that is kept. */
  readonly home: string;
  /** The process's environment; it wins over `.env` of the home. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** `config.yaml` of the home unless given; one that is given has to exist. */
  readonly file?: string;
}

/**
 * The one door of the configuration: reads the home's `config.yaml` and `.env`, checks everything, fills in the defaults
 * and freezes the result. A file that is missing sets nothing.
 *
 * Throws `config_invalid` with every problem there is, and `config_unreadable`.
 */
export function loadConfig(source: ConfigSource): Config {
  const home = resolve(source.home);
  const { env: envFile } = configPaths(home);
  const dotEnv = parseDotEnv(envFile, readText(envFile) ?? '');
  const env = { ...dotEnv.values, ...present(source.env) };
  const variable = (name: string) => (Object.hasOwn(env, name) && env[name]) || null;
  const yaml = readYaml(home, source.file);

  // A `${NAME}` of a variable that is read anyway may be unset.
  const expanded = expandVariables(yaml.value, env, variablesOf(configSettings));
  const { value, issues } = readSettings(configSettings, expanded.value, { home, variable });
  const unset = expanded.faults.map(({ path, message }) => problemAt(path, message, yaml));
  const wrong = issues.filter(({ path }) => !expanded.faults.some(isAt(path)));
  const explained = wrong.map((issue) => explainIssue(issue, configSettings, yaml));
  const problems = [...dotEnv.problems, ...unset, ...explained];
  if (problems.length > 0) throw configInvalid(problems);
  return deepFreeze({ home, ...value });
}

function readYaml(home: string, given: string | undefined): YamlFile {
  const file = given === undefined ? configPaths(home).config : resolve(given);
  const text = readText(file);
  if (text !== null) return parseYaml(file, text);
  if (given === undefined) return noFile(file);
  throw new MoiraiError('config_unreadable', `${file} does not exist`);
}

/** A value that could not be completed is reported once. */
function isAt(path: Path): (fault: { readonly path: Path }) => boolean {
  return (fault) => fault.path.length === path.length && fault.path.every((part, i) => part === path[i]);
}

function present(env: ConfigSource['env']): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter((entry): entry is [string, string] => entry[1] !== undefined));
}

function deepFreeze<T extends object>(value: T): T {
  for (const inner of Object.values(value)) if (typeof inner === 'object' && inner !== null) deepFreeze(inner);
  return Object.freeze(value);
}

import { MoiraiError } from '../../errors/moirai-error.ts';
import { configuredPlatforms, notServed } from '../../platforms/registry.ts';
import type { Answer } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { printable } from '../print.ts';
import type { Settings } from '../settings.ts';
import { identify, tryingRuntime } from './try-platform.ts';

/**
 * Asks the server of a platform who we are; of all that are configured where none is named. Then one that is refused keeps
 * nobody from being asked.
 */
export async function testPlatforms(settings: Settings, named: string | undefined): Promise<Answer> {
  const config = await readConfig(settings);
  const configured = configuredPlatforms(config).filter(({ name }) => named === undefined || name === named);
  if (configured.length === 0) throw unknown(named, notServed(config));
  const ask = async ({ name, make }: (typeof configured)[number]) => identify(await make(tryingRuntime(name)));
  const [one, ...more] = configured;
  if (one !== undefined && more.length === 0) return answerOf([{ name: one.name, identity: await ask(one) }]);
  const data: Tried[] = [];
  for (const each of configured) {
    const { name } = each;
    data.push(
      await ask(each).then(
        (identity) => ({ name, identity }),
        (thrown: unknown) => ({ name, problem: problemOf(thrown) }),
      ),
    );
  }
  if (data.some((each) => 'problem' in each)) process.exitCode = 1;
  return answerOf(data);
}

type Tried =
  | { readonly name: string; readonly identity: string }
  | { readonly name: string; readonly problem: ReturnType<typeof problemOf> };

function problemOf(thrown: unknown) {
  const { code, message, hint } = MoiraiError.wrap(thrown);
  return { code, message, hint };
}

function answerOf(data: readonly Tried[]): Answer {
  const lines = data.flatMap((each) => {
    if ('identity' in each) return [`${each.name} is ${printable(each.identity)}.`];
    const { code, message, hint } = each.problem;
    const said = message.startsWith(`${each.name}: `) ? message : `${each.name}: ${message}`;
    return [`${printable(said)} [${code}]`, `  ${printable(hint)}`];
  });
  return { json: { data }, text: lines.join('\n') };
}

function unknown(named: string | undefined, idle: ReturnType<typeof notServed>): MoiraiError {
  if (named === undefined) return new MoiraiError('platform_unknown', 'no platform is configured');
  const why = idle.find(({ name }) => name === named)?.why ?? 'not configured';
  return new MoiraiError('platform_unknown', `${named} is ${why}`);
}

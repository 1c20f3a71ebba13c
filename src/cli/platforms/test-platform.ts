import { MoiraiError } from '../../errors/moirai-error.ts';
import { configuredPlatforms, notServed } from '../../platforms/registry.ts';
import type { Answer } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { printable } from '../print.ts';
import type { Settings } from '../settings.ts';
import { identify, tryingRuntime } from './try-platform.ts';

/** Asks the server of a platform who we are; of all that are configured where none is named. */
export async function testPlatforms(settings: Settings, named: string | undefined): Promise<Answer> {
  const config = await readConfig(settings);
  const configured = configuredPlatforms(config).filter(({ name }) => named === undefined || name === named);
  if (configured.length === 0) throw unknown(named, notServed(config));
  const data: { name: string; identity: string }[] = [];
  for (const { name, make } of configured) {
    data.push({ name, identity: await identify(await make(tryingRuntime(name))) });
  }
  const text = data.map(({ name, identity }) => `${name} is ${printable(identity)}.`).join('\n');
  return { json: { data }, text };
}

function unknown(named: string | undefined, idle: ReturnType<typeof notServed>): MoiraiError {
  if (named === undefined) return new MoiraiError('platform_unknown', 'no platform is configured');
  const why = idle.find(({ name }) => name === named)?.why ?? 'not configured';
  return new MoiraiError('platform_unknown', `${named} is ${why}`);
}

import type { Config } from '../../config/config.ts';
import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import { configuredPlatforms, type IdlePlatform, notServed } from '../../platforms/registry.ts';
import { tryingRuntime } from './try-platform.ts';

/**
 * Every platform that is configured and will serve nobody: it lacks something, or what it has is of no form that its server
 * gives out. No server is asked.
 */
export async function idlePlatforms(config: Config): Promise<readonly IdlePlatform[]> {
  const unmakeable = await Promise.all(
    configuredPlatforms(config).map(async ({ name, make }): Promise<IdlePlatform[]> => {
      try {
        await make(tryingRuntime(name));
        return [];
      } catch (thrown) {
        if (!hasCode(thrown, 'bad_input', 'platform_package')) throw thrown;
        const { message: why, hint } = MoiraiError.wrap(thrown);
        return [{ name, why, hint }];
      }
    }),
  );
  return [...notServed(config), ...unmakeable.flat()];
}

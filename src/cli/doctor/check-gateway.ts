import { MoiraiError } from '../../errors/moirai-error.ts';
import { GatewayClient } from '../gateway/client.ts';
import { findGateway } from '../gateway/holder.ts';
import type { Settings } from '../settings.ts';
import type { Finding } from './checks.ts';

/** What the gateway of the home, if it runs, does not have of what it should: a plugin, the memory of a plugin. */
export async function checkGateway(settings: Settings): Promise<Finding[]> {
  const holder = findGateway(settings.home);
  if (holder === null) return [];
  try {
    const { checks } = await (await GatewayClient.to(holder, settings)).readiness();
    return Object.entries(checks).flatMap(([name, { ok, detail }]) =>
      ok ? [] : [{ check: `gateway:${name}`, status: 'warn', message: detail } as const],
    );
  } catch (thrown) {
    const { message, hint } = MoiraiError.wrap(thrown);
    return [{ check: 'gateway', status: 'warn', message, hint }];
  }
}

import { type PlatformView, platformView } from '../../api/platform-view.ts';
import { platformName } from '../../lifecycle/session-key.ts';
import { ADDABLE_PLATFORMS, configuredPlatforms, notServed } from '../../platforms/registry.ts';
import { type Answer, listing } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { GatewayClient } from '../gateway/client.ts';
import { findGateway } from '../gateway/holder.ts';
import { relativeTime, shorten, table } from '../print.ts';
import type { Settings } from '../settings.ts';

/** Every account that is configured: as the gateway says, or stopped where none runs or it does not know of it. */
export async function listPlatforms(settings: Settings): Promise<Answer> {
  const config = await readConfig(settings);
  const holder = findGateway(settings.home);
  const running = holder === null ? null : await (await GatewayClient.to(holder, settings)).platforms();
  const still = { phase: 'stopped', lastSuccessAt: null };
  const known = new Set(running?.map(nameOf));
  const stopped = configuredPlatforms(config).filter(({ name }) => !known.has(name));
  const problem = running === null ? null : SINCE;
  const idle = notServed(config).filter(({ name }) => !known.has(name));
  const data = [
    ...(running ?? []),
    ...stopped.map(({ name }) => platformView({ name, ...still, problem })),
    ...idle.map(({ name, why }) => platformView({ name, ...still, problem: why })),
  ];
  const text = table(['PLATFORM', 'ACCOUNT', 'PHASE', 'LAST ANSWER', 'PROBLEM'], data.map(cellsOf));
  return listing({ data, text: `${text}${others(data)}`, none: `No platform is configured.${others(data)}` });
}

const SINCE = 'configured since the gateway started; moirai gateway restart connects it';

function nameOf({ name: platform, account }: PlatformView): string {
  return platformName({ platform, ...(account === null ? {} : { account }) });
}

function cellsOf({ name, account, phase, problem, last_success_at }: PlatformView): string[] {
  const last = last_success_at === null ? '-' : relativeTime(Date.parse(last_success_at));
  return [name, account ?? '-', phase, last, shorten(problem ?? '-', 100)];
}

function others(data: readonly PlatformView[]): string {
  const known = new Set(data.map(({ name }) => name));
  const names = ADDABLE_PLATFORMS.map(({ name }) => name).filter((name) => !known.has(name));
  return names.length === 0 ? '' : `\nmoirai platforms add NAME connects: ${names.join(', ')}\n`;
}

import type { Command } from 'commander';
import { GatewayClient } from '../../gateway/client.ts';
import { needGateway } from '../../gateway/holder.ts';
import { printJson, printLine } from '../../print.ts';
import { type Settings, settingsOf } from '../../settings.ts';

export function define(command: Command): void {
  command.description('Lets a draining gateway take messages again.').action(() => undrain(settingsOf(command)));
}

async function undrain(settings: Settings): Promise<void> {
  const client = await GatewayClient.to(needGateway(settings.home), settings);
  const readiness = await client.undrain();
  return settings.json ? printJson(readiness) : printLine('The gateway takes messages again.');
}

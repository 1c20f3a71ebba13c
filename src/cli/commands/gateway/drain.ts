import type { Command } from 'commander';
import { GatewayClient } from '../../gateway/client.ts';
import { needGateway } from '../../gateway/holder.ts';
import { printable, printJson, printLine } from '../../print.ts';
import { type Settings, settingsOf } from '../../settings.ts';

export function define(command: Command): void {
  command
    .description('Lets the gateway finish what runs and take no new messages, without stopping it.')
    .addHelpText(
      'after',
      '\n`moirai gateway undrain` lets it take messages again; `moirai gateway status` shows what runs.',
    )
    .action(() => drain(settingsOf(command)));
}

async function drain(settings: Settings): Promise<void> {
  const client = await GatewayClient.to(needGateway(settings.home), settings);
  const readiness = await client.drain();
  if (settings.json) return printJson(readiness);
  return printLine(
    `The gateway takes no new messages: ${printable(readiness.checks.turns?.detail ?? readiness.state)}.`,
  );
}

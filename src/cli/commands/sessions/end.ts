import type { Command } from 'commander';
import { sessionView } from '../../../engine/views.ts';
import { MoiraiError } from '../../../errors/moirai-error.ts';
import { printable, printJson, printLine, relativeTime } from '../../print.ts';
import { reasonOf } from '../../session-text.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

/** The reasons for which somebody from outside may end a session; the others are the machine's to give. */
const REASONS = ['api_close', 'admin_close'] as const;
type Reason = (typeof REASONS)[number];

export function define(command: Command): void {
  command
    .description('Ends a session. An ended session never reopens; ending it again changes nothing.')
    .argument('<id>', 'the id, or any beginning of it that is unique')
    .option('--reason <reason>', `${REASONS.join(' or ')} (default: admin_close)`)
    .action((id: string, options: { reason?: string }) => end(command, id, options));
}

async function end(command: Command, idOrPrefix: string, options: { reason?: string }): Promise<void> {
  const settings = settingsOf(command);
  const reason = parseReason(options.reason ?? 'admin_close');
  await openStoreSession(settings, async (here) => {
    const found = await here.store.read('findSession', { idOrPrefix });
    const engine = await here.engine();
    const { session, already } = await engine.end(found.id, { reason, trigger: 'cli' });
    if (settings.json) return printJson(sessionView(session));
    const shown = printable(`${reasonOf(session)}`);
    if (!already) return printLine(`Ended ${session.id}: ${shown}`);
    const when = relativeTime(session.endedAt ?? 0, Date.now());
    return printLine(`${session.id} had ended before: ${shown}, ${when}`);
  });
}

function parseReason(text: string): Reason {
  const reason = REASONS.find((known) => known === text);
  if (reason !== undefined) return reason;
  throw new MoiraiError('bad_reason', `"${text}" is not a reason to give here; use ${REASONS.join(' or ')}`);
}

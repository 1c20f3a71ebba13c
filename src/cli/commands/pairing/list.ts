import type { Command } from 'commander';
import { isoTime } from '../../../engine/views.ts';
import type { Pairing } from '../../../people/pairing-store.ts';
import { print, printJson, printLine, relativeTime, table } from '../../print.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

export function define(command: Command): void {
  command
    .description('Lists who asked to talk to the agent and waits, and who was let in.')
    .addHelpText(
      'after',
      '\nWho is named in access.allow or in the allow of a platform is not listed: they need no pairing.',
    )
    .action(() => list(command));
}

const HEADINGS = ['PLATFORM', 'USER', 'NAME', 'STATE', 'SINCE', 'REQUEST'];

async function list(command: Command): Promise<void> {
  const settings = settingsOf(command);
  await openStoreSession(settings, async ({ store }) => {
    const pairings = await store.read('listPairings', {});
    if (settings.json) return printJson({ data: pairings.map(pairingView), next: null });
    if (pairings.length === 0) return printLine('Nobody waits, and nobody was let in.');
    const now = Date.now();
    const cells = ({ platform, userId, name, requestId, requestedAt, approvedAt }: Pairing): string[] => [
      ...[platform, userId, name ?? '-', approvedAt === null ? 'waits' : 'let in'],
      ...[relativeTime(approvedAt ?? requestedAt, now), approvedAt === null ? requestId : '-'],
    ];
    return print(table(HEADINGS, pairings.map(cells)));
  });
}

export function pairingView({ platform, userId, name, requestId, requestedAt, expiresAt, approvedAt }: Pairing) {
  return {
    ...{ platform, user_id: userId, name, request_id: requestId, state: approvedAt === null ? 'waiting' : 'approved' },
    requested_at: isoTime(requestedAt),
    expires_at: expiresAt === null ? null : isoTime(expiresAt),
    approved_at: approvedAt === null ? null : isoTime(approvedAt),
  };
}

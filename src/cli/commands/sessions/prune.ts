import type { Command } from 'commander';
import { pruneRules } from '../../../engine/upkeep.ts';
import { parseDuration } from '../../../lifecycle/duration.ts';
import { SESSION_KINDS, type SessionKind } from '../../../lifecycle/states.ts';
import type { PruneRule } from '../../../store/transactions/deletion.ts';
import { readConfig } from '../../configuration.ts';
import { parseNames } from '../../options.ts';
import { facts, print, printJson, printLine } from '../../print.ts';
import { type Settings, settingsOf } from '../../settings.ts';
import { openStoreSession, type StoreSession } from '../../store-session.ts';

interface PruneOptions {
  readonly olderThan?: string;
  readonly kind?: string;
  readonly dryRun?: boolean;
}

type Counts = Partial<Record<SessionKind, number>>;

export function define(command: Command): void {
  command
    .description('Removes sessions that ended long ago, for good. Open sessions are never touched.')
    .option('--older-than <duration>', 'those that ended longer ago: 30d, 12h (default: sessions.retention, by kind)')
    .option('--kind <kinds>', `only of these kinds: ${SESSION_KINDS.join(', ')}`)
    .option('--dry-run', 'only say how many there are')
    .addHelpText('after', HELP)
    .action((options: PruneOptions) => prune(settingsOf(command), options));
}

const HELP = `
Without --older-than it does what a running gateway does once an hour. With it, sessions of every kind go, chats too,
unless --kind names some. Events stay in the log. What another session continues, what has a reply that was not sent yet, and
what memory has not been told of yet (\`moirai memory list\`; the gateway tells it) is kept.

Examples:
  moirai sessions prune --older-than 90d --dry-run
  moirai sessions prune --kind batch,cron --older-than 7d`;

async function prune(settings: Settings, options: PruneOptions): Promise<void> {
  const rules = await rulesOf(settings, options);
  await openStoreSession(settings, async (here) => {
    const counts = options.dryRun ? await here.store.read('prunableSessions', { rules }) : await pruneAll(here, rules);
    const total = Object.values(counts).reduce((sum, n) => sum + n, 0);
    if (settings.json) return printJson({ dry_run: options.dryRun === true, removed: total, by_kind: counts });
    await printLine(options.dryRun ? `${total} sessions would be removed.` : `Removed ${total} sessions.`);
    if (total > 0) await print(facts(Object.fromEntries(Object.entries(counts).map(([kind, n]) => [`  ${kind}`, n]))));
  });
}

async function rulesOf(settings: Settings, { olderThan, kind }: PruneOptions): Promise<PruneRule[]> {
  const kinds: readonly string[] = kind === undefined ? SESSION_KINDS : parseNames('--kind', kind, SESSION_KINDS);
  const ages =
    olderThan === undefined
      ? (await readConfig(settings)).sessions.retentionMs
      : Object.fromEntries(SESSION_KINDS.map((each) => [each, parseDuration(olderThan)]));
  return pruneRules(ages).filter((rule) => kinds.includes(rule.kind));
}

/** In rounds: a session goes only after those of other kinds that continue it. */
async function pruneAll(here: StoreSession, rules: readonly PruneRule[]): Promise<Counts> {
  const engine = await here.engine();
  const counts: Counts = {};
  for (let again = true; again; ) {
    again = false;
    for (const rule of rules) {
      const removed = await engine.prune(rule);
      if (removed === 0) continue;
      counts[rule.kind] = (counts[rule.kind] ?? 0) + removed;
      again = true;
    }
  }
  return counts;
}

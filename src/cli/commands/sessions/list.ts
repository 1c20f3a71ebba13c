import type { Command } from 'commander';
import { sessionView } from '../../../engine/views.ts';
import { END_REASONS, SESSION_KINDS, SESSION_STATES } from '../../../lifecycle/states.ts';
import type { SessionFilter } from '../../../store/transactions/reading.ts';
import { DEFAULT_PAGE, parseLimit, parseList, parseNames, parseSince } from '../../options.ts';
import { print, printable, printJson, printLine, table } from '../../print.ts';
import { SESSION_HEADINGS, sessionRow } from '../../session-text.ts';
import { settingsOf } from '../../settings.ts';
import { openStoreSession } from '../../store-session.ts';

/** What people mean by "my sessions"; the machine's own kinds are shown when asked for. */
const DEFAULT_KINDS = ['chat', 'cli', 'api'];

interface ListOptions {
  readonly kind?: string;
  readonly state?: string;
  readonly platform?: string;
  readonly reason?: string;
  readonly key?: string;
  readonly user?: string;
  readonly q?: string;
  readonly since?: string;
  readonly limit?: string;
  readonly cursor?: string;
}

export function define(command: Command): void {
  command
    .description('Lists sessions, newest start first. Filters add up; a filter with several values takes any of them.')
    .option('--kind <kinds>', `${SESSION_KINDS.join(', ')}, or all (default: ${DEFAULT_KINDS.join(',')})`)
    .option('--state <states>', SESSION_STATES.join(', '))
    .option('--platform <names>', 'telegram, discord, ...')
    .option('--key <key>', 'the sessions of one conversation, of every kind')
    .option('--user <id>', "one user's sessions")
    .option('--reason <reasons>', 'why they ended: idle_expiry, reaped, ...')
    .option('--since <when>', 'started since a time (2026-08-01T12:00:00Z) or a while ago (24h)')
    .option('--q <text>', 'part of the title or the id')
    .option('--limit <n>', `at most so many (default: ${DEFAULT_PAGE}, at most 500)`)
    .option('--cursor <cursor>', 'go on where an earlier listing stopped')
    .addHelpText('after', EXAMPLES)
    .action((options: ListOptions) => list(command, options));
}

const EXAMPLES = `
Examples:
  moirai sessions list --state open
  moirai sessions list --kind all --reason reaped,batch_failed --since 24h
  moirai sessions list --key agent:main:telegram:dm:42 --json`;

async function list(command: Command, options: ListOptions): Promise<void> {
  const settings = settingsOf(command);
  const filter = filterOf(options);
  await openStoreSession(settings, async ({ store }) => {
    const { sessions, next } = await store.read('listSessions', filter);
    if (settings.json) return printJson({ data: sessions.map(sessionView), next });
    if (sessions.length === 0) return printLine(nothingFound(options));
    const now = Date.now();
    await print(
      table(
        SESSION_HEADINGS,
        sessions.map((session) => sessionRow(session, now)),
      ),
    );
    if (next !== null) await printLine(`There are more: add --cursor ${printable(next)}`);
  });
}

function nothingFound({ kind, key }: ListOptions): string {
  const byDefault = kind === undefined && key === undefined;
  return byDefault
    ? `No sessions of the kinds ${DEFAULT_KINDS.join(', ')}; --kind all shows every kind.`
    : 'No sessions.';
}

function filterOf(options: ListOptions): SessionFilter {
  const { kind, state, platform, reason, key, user, q, since, limit, cursor } = options;
  const names = (option: string, text: string | undefined, known: readonly string[]): string[] =>
    text === undefined ? [] : parseNames(option, text, known);
  return {
    kinds: kindsOf(kind, key),
    states: names('--state', state, SESSION_STATES),
    reasons: names('--reason', reason, END_REASONS),
    platforms: platform === undefined ? [] : parseList(platform),
    key: key ?? null,
    user: user ?? null,
    text: q ?? null,
    since: since === undefined ? null : parseSince(since, Date.now()),
    limit: limit === undefined ? DEFAULT_PAGE : parseLimit(limit),
    cursor: cursor ?? null,
  };
}

/** A key names a conversation of one kind already. No kinds at all means all. */
function kindsOf(kind: string | undefined, key: string | undefined): readonly string[] {
  if (kind === undefined) return key === undefined ? DEFAULT_KINDS : [];
  const kinds = parseNames('--kind', kind, [...SESSION_KINDS, 'all']);
  return kinds.includes('all') ? [] : kinds;
}

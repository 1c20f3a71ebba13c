import type { Command } from 'commander';
import { parseDuration } from '../../lifecycle/duration.ts';
import { parseList, parseNames, parseTime } from '../../lifecycle/list-filters.ts';
import { END_REASONS, SESSION_KINDS, SESSION_STATES } from '../../lifecycle/states.ts';
import { inStore } from '../command.ts';
import { LIMIT, whole } from '../options.ts';
import {
  continueSession,
  deleteSession,
  endSession,
  parkSession,
  parseReason,
  prune,
  REASONS,
  setTitle,
} from '../sessions/change-sessions.ts';
import { exportSession, FORMATS, parseFormat } from '../sessions/export-session.ts';
import { DEFAULT_KINDS, list, messages, search, show, stats } from '../sessions/read-sessions.ts';

const ID = ['<id>', 'the id, or any beginning of it that is unique'] as const;

export function define(group: Command): void {
  defineList(group);
  group
    .command('show')
    .summary('one session with its last events')
    .description('Shows one session: what it is, whom it belongs to, how it ended, and its last events.')
    .argument(...ID)
    .action(inStore(show));
  group
    .command('messages')
    .summary('the transcript')
    .description('Shows the transcript of one session, oldest message first.')
    .argument(...ID)
    .option(...LIMIT)
    .option('--cursor <cursor>', 'go on where an earlier page stopped', whole('--cursor', 0))
    .action(inStore(messages));
  group
    .command('search')
    .summary('find messages by words')
    .description('Finds messages that contain all the words, best match first.')
    .argument('<text...>', 'the words')
    .option(...LIMIT)
    .action(inStore(search));
  defineChanges(group);
  defineRemoval(group);
  group
    .command('stats')
    .summary('how many, open and ended, and why')
    .description('Counts sessions: all, open with and without a live owner, and ended by reason.')
    .addHelpText('after', '\n"open without a live owner" is the number of lost sessions. It is 0.')
    .action(inStore(stats));
}

function defineList(group: Command): void {
  group
    .command('list')
    .summary('list sessions, newest first')
    .description('Lists sessions, newest start first. Filters add up; a filter with several values takes any of them.')
    .option('--kind <kinds>', `${SESSION_KINDS.join(', ')}, or all (default: ${DEFAULT_KINDS.join(',')})`, (text) =>
      parseNames('--kind', text, [...SESSION_KINDS, 'all']),
    )
    .option('--state <states>', SESSION_STATES.join(', '), (text) => parseNames('--state', text, SESSION_STATES))
    .option('--platform <names>', 'telegram, discord, ...', (text) => parseList(text))
    .option('--key <key>', 'the sessions of one conversation, of every kind')
    .option('--user <id>', "one user's sessions")
    .option('--reason <reasons>', 'why they ended: idle_expiry, reaped, ...', (text) =>
      parseNames('--reason', text, END_REASONS),
    )
    .option('--since <when>', 'started since a time (2026-08-01T12:00:00Z) or a while ago (24h)', (text) =>
      parseTime('--since', text, Date.now()),
    )
    .option('--q <text>', 'part of the title or the id')
    .option(...LIMIT)
    .option('--cursor <cursor>', 'go on where an earlier listing stopped')
    .addHelpText('after', LIST_EXAMPLES)
    .action(inStore(list));
}

const LIST_EXAMPLES = `
Examples:
  moirai sessions list --state open
  moirai sessions list --kind all --reason reaped,batch_failed --since 24h
  moirai sessions list --key agent:main:telegram:dm:42 --json`;

function defineChanges(group: Command): void {
  group
    .command('end')
    .summary('end a session')
    .description('Ends a session. An ended session never reopens; ending it again changes nothing.')
    .argument(...ID)
    .option('--reason <reason>', `${REASONS.join(' or ')} (default: admin_close)`, parseReason)
    .action(inStore(endSession));
  group
    .command('suspend')
    .summary('park it: what is said in it waits')
    .description('Parks a session: a turn that runs is stopped, and what is said in it waits until it is released.')
    .argument(...ID)
    .addHelpText('after', '\nWhoever writes into it is told that it is parked. It does not expire meanwhile.')
    .action(inStore((here, id: string) => parkSession(here, id, 'suspend')));
  group
    .command('release')
    .summary('let a parked session go on')
    .description('Opens a parked session again. What waited in it goes on where a gateway runs.')
    .argument(...ID)
    .action(inStore((here, id: string) => parkSession(here, id, 'release')));
  group
    .command('resume')
    .summary('go on with a session in a new one')
    .description('Goes on with a session: starts a new one in its conversation that sees its transcript.')
    .argument(...ID)
    .addHelpText('after', RESUME_NOTE)
    .action(inStore((here, id: string) => continueSession(here, id, 'resume')));
  group
    .command('branch')
    .summary('try another way in a new one')
    .description('Starts a new session that sees the transcript of another, which stays as it is.')
    .argument(...ID)
    .option('--title <title>', 'its title (default: that of the other one)')
    .addHelpText('after', '\nThe open session of the conversation ends as "branched".')
    .action(inStore((here, id: string, named: { title?: string }) => continueSession(here, id, 'branch', named)));
  group
    .command('title')
    .summary('give it a title')
    .description('Gives a session that has not ended a title. An empty text takes it away.')
    .argument(...ID)
    .argument('<text...>', 'the title')
    .action(inStore(setTitle));
}

const RESUME_NOTE = `
An ended session never reopens. The open session of the conversation ends as "switched"; one that is open itself is shown
and stays as it is.`;

function defineRemoval(group: Command): void {
  group
    .command('export')
    .summary('write it out, whole')
    .description('Writes out a session with its whole transcript, and those of the sessions it continues.')
    .argument(...ID)
    .option('--format <format>', FORMATS.join(' or '), parseFormat, 'json')
    .option('--output <file>', 'write it there instead of to standard output')
    .addHelpText('after', '\nExample:\n  moirai sessions export ses_01m7fad6b6 --format md --output harbour.md')
    .action(inStore(exportSession));
  group
    .command('prune')
    .summary('remove what ended long ago')
    .description('Removes sessions that ended long ago, for good. Open sessions are never touched.')
    .option(
      '--older-than <duration>',
      'those that ended longer ago: 30d, 12h (default: sessions.retention, by kind)',
      (text) => parseDuration(text),
    )
    .option('--kind <kinds>', `only of these kinds: ${SESSION_KINDS.join(', ')}`, (text) =>
      parseNames('--kind', text, SESSION_KINDS),
    )
    .option('--dry-run', 'only say how many there are')
    .addHelpText('after', PRUNE_NOTE)
    .action(inStore(prune));
  group
    .command('delete')
    .summary('remove one session')
    .description('Removes a session with its transcript and turns, for good. An open one ends first, as "deleted".')
    .argument(...ID)
    .addHelpText('after', DELETE_NOTE)
    .action(inStore(deleteSession));
}

const PRUNE_NOTE = `
Without --older-than it does what a running gateway does once an hour. With it, sessions of every kind go, chats too,
unless --kind names some. Events stay in the log. What another session continues, what has a reply that was not sent yet, and
what memory has not been told of yet (\`moirai memory list\`; the gateway tells it) is kept.

Examples:
  moirai sessions prune --older-than 90d --dry-run
  moirai sessions prune --kind batch,cron --older-than 7d`;

const DELETE_NOTE = `
Its events stay in the log. A session whose transcript others see (they resumed or branched it) is not removed before
they are.`;

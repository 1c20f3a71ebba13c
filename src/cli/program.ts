import { isatty } from 'node:tty';
import { Command, CommanderError } from 'commander';
import { MoiraiError } from '../errors/moirai-error.ts';
import { packageVersion } from './package-version.ts';
import { complain, print } from './print.ts';
import { reportError } from './report-error.ts';
import { addCommonOptions } from './settings.ts';

/** A file under `commands/`: it says what its command takes and does, and is loaded when the command is called. */
interface CommandFile {
  define(command: Command): void;
}

type Entry = { readonly name: string; readonly summary: string } & (
  | { readonly load: () => Promise<CommandFile> }
  | { readonly commands: readonly Entry[] }
);

/** Every command there is, in the order of the help. */
const COMMANDS: readonly Entry[] = [
  { name: 'chat', summary: 'talk with the agent in this terminal', load: () => import('./commands/chat.ts') },
  {
    name: 'sessions',
    summary: 'look at sessions, search, continue, end and remove them',
    commands: [
      { name: 'list', summary: 'list sessions, newest first', load: () => import('./commands/sessions/list.ts') },
      { name: 'show', summary: 'one session with its last events', load: () => import('./commands/sessions/show.ts') },
      { name: 'messages', summary: 'the transcript', load: () => import('./commands/sessions/messages.ts') },
      { name: 'search', summary: 'find messages by words', load: () => import('./commands/sessions/search.ts') },
      { name: 'end', summary: 'end a session', load: () => import('./commands/sessions/end.ts') },
      {
        name: 'resume',
        summary: 'go on with a session in a new one',
        load: () => import('./commands/sessions/resume.ts'),
      },
      { name: 'branch', summary: 'try another way in a new one', load: () => import('./commands/sessions/branch.ts') },
      { name: 'title', summary: 'give it a title', load: () => import('./commands/sessions/title.ts') },
      { name: 'export', summary: 'write it out, whole', load: () => import('./commands/sessions/export.ts') },
      { name: 'prune', summary: 'remove what ended long ago', load: () => import('./commands/sessions/prune.ts') },
      { name: 'delete', summary: 'remove one session', load: () => import('./commands/sessions/delete.ts') },
      {
        name: 'stats',
        summary: 'how many, open and ended, and why',
        load: () => import('./commands/sessions/stats.ts'),
      },
    ],
  },
  {
    name: 'gateway',
    summary: 'run the gateway, and look after it',
    commands: [
      { name: 'run', summary: 'run it in the foreground', load: () => import('./commands/gateway/run.ts') },
      { name: 'start', summary: 'start it in the background', load: () => import('./commands/gateway/start.ts') },
      { name: 'stop', summary: 'let it finish and stop', load: () => import('./commands/gateway/stop.ts') },
      { name: 'restart', summary: 'stop it and start it again', load: () => import('./commands/gateway/restart.ts') },
      {
        name: 'status',
        summary: 'whether it runs, and how it stands',
        load: () => import('./commands/gateway/status.ts'),
      },
      { name: 'drain', summary: 'take no new messages', load: () => import('./commands/gateway/drain.ts') },
      { name: 'undrain', summary: 'take messages again', load: () => import('./commands/gateway/undrain.ts') },
      {
        name: 'install',
        summary: 'write a service for systemd or launchd',
        load: () => import('./commands/gateway/install.ts'),
      },
      { name: 'uninstall', summary: 'remove that service', load: () => import('./commands/gateway/uninstall.ts') },
    ],
  },
  {
    name: 'pairing',
    summary: 'let people on chat platforms in, and out',
    commands: [
      { name: 'list', summary: 'who waits, and who was let in', load: () => import('./commands/pairing/list.ts') },
      { name: 'approve', summary: 'let somebody in', load: () => import('./commands/pairing/approve.ts') },
      { name: 'revoke', summary: 'shut somebody out', load: () => import('./commands/pairing/revoke.ts') },
    ],
  },
  { name: 'space', summary: 'one page over several gateways', load: () => import('./commands/space.ts') },
  { name: 'send', summary: 'send a message to a conversation', load: () => import('./commands/send.ts') },
  { name: 'events', summary: 'the log of what happened', load: () => import('./commands/events.ts') },
  { name: 'run', summary: 'run any command as a session', load: () => import('./commands/run.ts') },
  {
    name: 'hooks',
    summary: 'look at hooks and webhooks, try them, deliver again',
    commands: [
      { name: 'list', summary: 'what there is, and how far it is', load: () => import('./commands/hooks/list.ts') },
      { name: 'test', summary: 'run one once', load: () => import('./commands/hooks/test.ts') },
      { name: 'replay', summary: 'deliver events once more', load: () => import('./commands/hooks/replay.ts') },
      { name: 'dead', summary: 'what was given up', load: () => import('./commands/hooks/dead.ts') },
    ],
  },
  {
    name: 'plugins',
    summary: 'look at plugins',
    commands: [
      { name: 'list', summary: 'what there is, and how far it is', load: () => import('./commands/plugins/list.ts') },
    ],
  },
  {
    name: 'memory',
    summary: 'look at what is remembered, and who remembers',
    commands: [
      { name: 'list', summary: 'who remembers, and how far they are', load: () => import('./commands/memory/list.ts') },
      { name: 'show', summary: 'what is remembered, of whom', load: () => import('./commands/memory/show.ts') },
    ],
  },
  {
    name: 'cron',
    summary: 'have things done at their time',
    commands: [
      { name: 'list', summary: 'what is scheduled', load: () => import('./commands/cron/list.ts') },
      { name: 'add', summary: 'have something done', load: () => import('./commands/cron/add.ts') },
      { name: 'remove', summary: 'take a job out', load: () => import('./commands/cron/remove.ts') },
      { name: 'pause', summary: 'let it rest', load: () => import('./commands/cron/pause.ts') },
      { name: 'resume', summary: 'let it go on', load: () => import('./commands/cron/resume.ts') },
      { name: 'run', summary: 'have it done now', load: () => import('./commands/cron/run.ts') },
    ],
  },
  {
    name: 'config',
    summary: 'look at the configuration, and try it',
    commands: [
      { name: 'check', summary: 'try it without starting', load: () => import('./commands/config/check.ts') },
      { name: 'show', summary: 'all that is in force', load: () => import('./commands/config/show.ts') },
      { name: 'path', summary: 'where it is read from', load: () => import('./commands/config/path.ts') },
    ],
  },
  { name: 'doctor', summary: 'check that everything holds', load: () => import('./commands/doctor.ts') },
  { name: 'version', summary: 'what this is', load: () => import('./commands/version.ts') },
];

/** Runs one command line, and sets the code that the process exits with. */
export async function runCommandLine(args: readonly string[]): Promise<void> {
  process.on('uncaughtException', (thrown) => process.exit(reportError(thrown, wantsJson(args))));
  try {
    await makeProgram().parseAsync(askForHelp(orChat(args)), { from: 'user' });
  } catch (thrown) {
    process.exitCode = exitCodeOf(thrown, args);
  }
}

/** Who calls `moirai` and nothing else in a terminal wants to talk. */
function orChat(args: readonly string[]): readonly string[] {
  return args.length === 0 && isatty(0) && isatty(1) ? ['chat'] : args;
}

/** `moirai help sessions list` is `moirai sessions list --help`. */
function askForHelp(args: readonly string[]): string[] {
  return args[0] === 'help' ? [...args.slice(1), '--help'] : [...args];
}

function makeProgram(): Command {
  const program = new Command('moirai')
    .description('An AI-agent gateway in which no session is ever lost.')
    .version(`moirai ${packageVersion()}`, '-V, --version', 'print the version')
    // What follows a command's name belongs to that command: `moirai run ls --json` is not ours to read.
    .enablePositionalOptions()
    .exitOverride()
    // Errors are reported below, as all errors are.
    .configureOutput({ writeOut: (text) => void print(text), writeErr: complain, outputError: () => undefined })
    .configureHelp({ subcommandTerm: (command) => command.name() });
  addCommands(program, COMMANDS);
  return program;
}

function addCommands(parent: Command, entries: readonly Entry[]): void {
  parent.helpCommand(false);
  const files = new Map<string, () => Promise<CommandFile>>();
  for (const entry of entries) {
    const command = parent.command(entry.name).summary(entry.summary);
    command.description(`${entry.summary.charAt(0).toUpperCase()}${entry.summary.slice(1)}.`);
    if ('load' in entry) files.set(entry.name, entry.load);
    else addCommands(command.enablePositionalOptions(), entry.commands);
  }
  addCommonOptions(parent);
  parent.hook('preSubcommand', async (_, command) => {
    const file = await files.get(command.name())?.();
    if (file === undefined) return;
    file.define(command);
    addCommonOptions(command);
  });
}

function exitCodeOf(thrown: unknown, args: readonly string[]): number {
  if (!(thrown instanceof CommanderError)) return reportError(thrown, wantsJson(args));
  if (thrown.exitCode === 0) return 0;
  const shown = thrown.code === 'commander.help';
  const message = thrown.message.replace(/^error: /, '').replaceAll('\n', ' ');
  const error = new MoiraiError('usage', shown ? 'a command is missing' : message);
  return reportError(error, wantsJson(args));
}

const TAKES_VALUE = ['--home', '--store', '--title'];

/** Also known when the rest of the line cannot be read. Behind `run` and its options stands somebody else's command. */
function wantsJson(args: readonly string[]): boolean {
  const words: string[] = [];
  for (const [i, arg] of args.entries()) {
    if (arg === '--json') return true;
    if (arg.startsWith('-') || TAKES_VALUE.includes(args[i - 1] ?? '')) continue;
    words.push(arg);
    if (words[0] === 'run' && words.length === 2) return false;
  }
  return false;
}

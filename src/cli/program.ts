import { isatty } from 'node:tty';
import { Command, CommanderError } from 'commander';
import { MoiraiError } from '../errors/moirai-error.ts';
import { packageVersion } from './package-version.ts';
import { complain, print } from './print.ts';
import { reportError } from './report-error.ts';
import { addCommonOptions } from './settings.ts';

/** A file under `commands/`: it declares a command, or a group with all its commands. */
interface CommandFile {
  define(command: Command): void;
}

/** Every command and every group of commands, in the order of the help. A file is loaded when it is called. */
const COMMANDS: readonly (readonly [name: string, summary: string, load: () => Promise<CommandFile>])[] = [
  ['chat', 'talk with the agent in this terminal', () => import('./commands/chat.ts')],
  ['sessions', 'look at sessions, search, continue, end and remove them', () => import('./commands/sessions.ts')],
  ['gateway', 'run the gateway, and look after it', () => import('./commands/gateway.ts')],
  ['platforms', 'connect chat platforms, and look how they stand', () => import('./commands/platforms.ts')],
  ['pairing', 'let people on chat platforms in, and out', () => import('./commands/pairing.ts')],
  ['keys', 'keys for HTTP clients, each with its own rights', () => import('./commands/keys.ts')],
  ['approvals', 'answer what agents ask for', () => import('./commands/approvals.ts')],
  ['space', 'one page over several gateways', () => import('./commands/space.ts')],
  ['send', 'send a message to a conversation', () => import('./commands/send.ts')],
  ['events', 'the log of what happened', () => import('./commands/events.ts')],
  ['run', 'run any command as a session', () => import('./commands/run.ts')],
  ['hooks', 'look at hooks and webhooks, try them, deliver again', () => import('./commands/hooks.ts')],
  ['plugins', 'look at plugins', () => import('./commands/plugins.ts')],
  ['memory', 'look at what is remembered, and who remembers', () => import('./commands/memory.ts')],
  ['cron', 'have things done at their time', () => import('./commands/cron.ts')],
  ['config', 'look at the configuration, and try it', () => import('./commands/config.ts')],
  ['backup', 'copy the store into one file, while it is in use', () => import('./commands/backup.ts')],
  ['restore', 'put a backup in the place of the store', () => import('./commands/restore.ts')],
  ['doctor', 'check that everything holds', () => import('./commands/doctor.ts')],
  ['version', 'what this is', () => import('./commands/version.ts')],
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

/** `moirai` without a command, in a terminal, is `moirai chat`. */
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
    .configureHelp({ subcommandTerm: (command) => command.name() })
    .helpCommand(false);
  for (const [name, summary] of COMMANDS) {
    program
      .command(name)
      .summary(summary)
      .description(`${summary.charAt(0).toUpperCase()}${summary.slice(1)}.`)
      .helpCommand(false)
      .enablePositionalOptions();
  }
  addCommonOptions(program);
  program.hook('preSubcommand', async (_, command) => {
    const file = await COMMANDS.find(([name]) => name === command.name())?.[2]();
    file?.define(command);
    for (const each of [command, ...command.commands]) addCommonOptions(each);
  });
  return program;
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

/** Works also when the rest of the line cannot be read. The words behind `run` and its options are another command's. */
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

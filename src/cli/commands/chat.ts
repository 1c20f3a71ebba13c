import { isatty } from 'node:tty';
import type { Command } from 'commander';
import { dieWithNpm } from '../batch/die-with-npm.ts';
import { type Settings, settingsOf } from '../settings.ts';

interface ChatOptions {
  readonly query?: string;
  readonly resume?: string;
  readonly reasoning?: boolean;
}

export function define(command: Command): void {
  command
    .description(
      'Talks with the agent in this terminal. No gateway needs to run. The session is of the kind cli and lives as long ' +
        'as the terminal: it ends as cli_close when you leave, and as reaped when this process is killed. Without a ' +
        'terminal, all of standard input is one message, and only the reply is printed.',
    )
    .option('-q, --query <text>', 'say this, print the reply, and leave; - takes standard input')
    .option('--resume <id>', 'go on from this session, in a new one that sees it')
    .option('--reasoning', 'also show what the model thinks on the way')
    .addHelpText('after', EXAMPLES)
    .action(async (options: ChatOptions) => {
      process.exitCode = await chat(settingsOf(command), options);
    });
}

const EXAMPLES = `
Examples:
  moirai chat
  moirai chat -q "what is the tallest bridge of Portugal?"
  git diff | moirai chat
  moirai chat --resume ses_01m7fad6b6`;

async function chat(settings: Settings, options: ChatOptions): Promise<number> {
  dieWithNpm();
  const { query, reasoning = false } = options;
  const resume = options.resume ?? null;
  if (query === undefined && isatty(0) && isatty(1)) {
    const { Dialogue } = await import('../chat/dialogue.ts');
    return Dialogue.hold(settings, { resume, reasoning });
  }
  const message = query === undefined || query === '-' ? await readInput() : query;
  const { sayOnce } = await import('../chat/one-shot.ts');
  return sayOnce(settings, message, resume);
}

async function readInput(): Promise<string> {
  const { text } = await import('node:stream/consumers');
  return text(process.stdin);
}

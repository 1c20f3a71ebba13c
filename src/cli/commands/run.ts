import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import type { Engine } from '../../engine/engine.ts';
import { Upkeep } from '../../engine/upkeep.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Session } from '../../lifecycle/session.ts';
import { buildKey } from '../../lifecycle/session-key.ts';
import type { EndCause, EndReason } from '../../lifecycle/states.ts';
import { processTimers } from '../../queue/timers.ts';
import { BatchCommand, type Exit, exitCodeOf } from '../batch/batch-command.ts';
import { dieWithNpm } from '../batch/die-with-npm.ts';
import { findProgram } from '../batch/find-program.ts';
import { endReliably } from '../end-session-reliably.ts';
import { complain, printable, shellQuoted, shorten } from '../print.ts';
import { reportError, warn } from '../report-error.ts';
import { type Settings, settingsOf } from '../settings.ts';
import { openStoreSession, type StoreSession } from '../store-session.ts';

const WARNING_PAUSE_MS = 30_000;
const FAILURE = 1;
const TITLE_CHARS = 100;
const KEPT_CHARS = 4096;

export function define(command: Command): void {
  command
    .description(
      'Runs any command as a session of the kind batch. It is open while the command runs, and ends as batch_complete ' +
        'or batch_failed, or as reaped when we were killed. The command has our input, our outputs and our signals, ' +
        'and dies with us. We exit as it does: with its code, with 128+n after signal n, with 127 when there is no ' +
        'such command, with 126 when it cannot be executed.',
    )
    .usage('[options] [--] <command...>')
    .argument('<command...>', 'the command and its arguments')
    .option('--title <text>', 'what to call the session (default: the command line)')
    .addHelpText('after', EXAMPLES)
    .passThroughOptions()
    .action(async (words: string[], options: { title?: string }) => {
      process.exitCode = await run(settingsOf(command), words, options.title);
    });
}

const EXAMPLES = `
Examples:
  moirai run -- make -j4 test
  moirai run --title "nightly backup" -- ./backup.sh /srv
  pg_dump shop | moirai run -- gzip -9 > shop.sql.gz`;

/** How a session of a command ends. */
interface Ending {
  readonly reason: EndReason;
  readonly cause?: EndCause;
}

async function run(
  settings: Settings,
  words: readonly string[],
  title = words.map(shellQuoted).join(' '),
): Promise<number> {
  dieWithNpm();
  const shown = shorten(printable(title), TITLE_CHARS);
  let code: number | null = null;
  try {
    const action = async (here: StoreSession): Promise<void> => {
      code = await runAsSession(here, settings, words, shown);
    };
    // With threads: while the store is busy, signals are still heard and passed on.
    await openStoreSession(settings, action, { threads: true });
  } catch (thrown) {
    if (code === null) throw thrown;
    // The command is over; the next process that opens the store settles what could not be left in order.
    warn(thrown);
  }
  return code ?? FAILURE;
}

/** The words of a command as they are kept: all of them, unless they are a book. */
function keptWords(command: readonly string[]): string[] {
  const kept: string[] = [];
  let left = KEPT_CHARS;
  for (const word of command) {
    if (left <= 0) return [...kept, '…'];
    kept.push(shorten(word, left));
    left -= word.length + 1;
  }
  return kept;
}

async function runAsSession(
  here: StoreSession,
  settings: Settings,
  words: readonly string[],
  title: string,
): Promise<number> {
  const engine = await here.engine();
  const [name = '', ...args] = words;
  const found = findProgram(name, process.env.PATH);
  if (!('file' in found)) {
    const session = await startSession(engine, title, originOf(words));
    await endSession(engine, session, { reason: 'batch_failed', cause: 'not_started' });
    reportError(new MoiraiError('command_not_started', found.fault), settings.json);
    return found.exitCode;
  }
  // A name that begins with a dash would be an option of the shell's `exec`.
  const command = await BatchCommand.prepare([name.startsWith('-') ? found.file : name, ...args]);
  try {
    const session = await startSession(engine, title, { ...originOf(words), pid: command.pid });
    return await attend(here, engine, session, command);
  } catch (thrown) {
    command.abandon();
    throw thrown;
  }
}

function originOf(words: readonly string[]): Record<string, unknown> {
  return { command: keptWords(words), cwd: process.cwd() };
}

function startSession(engine: Engine, title: string, origin: Record<string, unknown>): Promise<Session> {
  const key = buildKey({ profile: 'main', platform: 'batch', type: 'dm', chat: randomUUID() });
  return engine.start({ key, kind: 'batch', platform: 'batch', userId: null, origin, attached: true }, { title });
}

/** Lets the command run under our lease, and ends its session when it is over. */
async function attend(here: StoreSession, engine: Engine, session: Session, command: BatchCommand): Promise<number> {
  let lost = false;
  const upkeep = new Upkeep(engine, {
    heartbeatMs: here.configured.heartbeatMs,
    timers: processTimers,
    wallClock: Date.now,
    expire: false,
    failed: makeWarner(),
    lost: () => {
      lost = true;
      void command.kill();
    },
  });
  await upkeep.start();
  command.run();
  const exit = await command.exited;
  if (!lost) await endSession(engine, session, endingOf(exit));
  await upkeep.stop();
  if (!lost) return exitCodeOf(exit);
  complain(
    `moirai: this process was away for longer than its lease, so the session was given up and the command killed\n`,
  );
  await here.leave();
  await here.settle(); // Under a new instance: the old one's session ends as reaped now, not with the next command.
  return FAILURE;
}

function endingOf(exit: Exit): Ending {
  if ('signal' in exit) return { reason: 'batch_failed', cause: 'signal' };
  return exit.code === 0 ? { reason: 'batch_complete' } : { reason: 'batch_failed', cause: 'exit' };
}

/** Ends the session; whatever happens, the command's exit code is not held back. */
function endSession(engine: Engine, session: Session, ending: Ending): Promise<void> {
  return endReliably(`session ${session.id}`, async () => {
    const { session: ended, already } = await engine.end(session.id, { ...ending, trigger: 'process' });
    const byOthers = already && ended.endReason !== ending.reason;
    if (byOthers) complain(`moirai: the session had been ended before: ${ended.endReason}\n`);
  });
}

/** Troubles that pass by themselves are mentioned, but not every time: the terminal is the command's. */
function makeWarner(): (error: MoiraiError) => void {
  let quietUntil = 0;
  return (error) => {
    if (performance.now() < quietUntil) return;
    quietUntil = performance.now() + WARNING_PAUSE_MS;
    warn(error);
  };
}

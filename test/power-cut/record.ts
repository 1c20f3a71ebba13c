import { spawnSync } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync, realpathSync } from 'node:fs';
import { join } from 'node:path';
import { readLog } from './log.ts';
import { seededRandom } from './random.ts';
import { ACKS_FILE, Replay } from './replay.ts';

const SOURCE = join(import.meta.dirname, 'recorder.c');

/** Why nothing can be recorded on this machine, or undefined when it can. */
export function whyNoRecorder(): string | undefined {
  if (process.platform !== 'linux') return `LD_PRELOAD recording needs Linux, this is ${process.platform}`;
  const { error } = spawnSync(compiler(), ['--version']);
  return error === undefined ? undefined : `there is no C compiler (${compiler()})`;
}

/** Compiles recorder.c into `directory` and returns the library's path. */
export function buildRecorder(directory: string): string {
  const library = join(directory, 'recorder.so');
  const result = spawnSync(compiler(), ['-shared', '-fPIC', '-O2', '-o', library, SOURCE, '-ldl', '-pthread'], {
    encoding: 'utf8',
  });
  if (result.status !== 0) throw new Error(`recorder.c does not compile:\n${result.stderr}`);
  return library;
}

/** A finished recording: the log, and the directory as the process left it. */
export interface Recording {
  log: string;
  directory: string;
}

/**
 * Runs Node with `argv` (made from the directory to work in) under the recorder, in a new directory below `scratch`.
 * Throws unless the log, replayed to its end, gives the very files the process left: a write that the recorder missed
 * would make every verdict worthless.
 */
export function record(scratch: string, argv: (directory: string) => string[]): Recording {
  const library = buildRecorder(scratch);
  const log = join(scratch, 'operations.log');
  mkdirSync(join(scratch, 'recorded'));
  const directory = realpathSync(join(scratch, 'recorded'));
  const result = spawnSync(process.execPath, argv(directory), {
    encoding: 'utf8',
    env: {
      ...process.env,
      LD_PRELOAD: library,
      MOIRAI_RECORD_DIR: directory,
      MOIRAI_RECORD_LOG: log,
      // io_uring would hand libuv's writes to the kernel without a call that we see.
      UV_USE_IO_URING: '0',
    },
  });
  if (result.status !== 0) throw new Error(`the recorded process failed (${result.status}):\n${result.stderr}`);
  const missed = compareWithEnd(log, directory);
  if (missed.length > 0) throw new Error(`the recorder missed changes to ${missed.join(', ')}`);
  return { log, directory };
}

/** The files in which the end of the log and the directory differ. */
function compareWithEnd(log: string, directory: string): string[] {
  const operations = readLog(log);
  const replay = new Replay(operations);
  replay.advance(operations.length);
  const image = replay.image('kept', seededRandom(0));
  const real = readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(directory.length + 1))
    .filter((path) => path !== ACKS_FILE && !path.endsWith('-shm'));
  return [...new Set([...real, ...image.keys()])].filter((path) => {
    const replayed = image.get(path);
    return !real.includes(path) || replayed === undefined || !replayed.equals(readFileSync(join(directory, path)));
  });
}

function compiler(): string {
  return process.env.CC ?? 'cc';
}

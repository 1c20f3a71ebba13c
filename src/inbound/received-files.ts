import { createHash } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Logger } from '../log/logger.ts';
import type { IncomingFile } from '../platforms/platform.ts';
import type { ReceivedFile } from './message-text.ts';
import type { Stickers } from './stickers.ts';

export interface FilesDeps {
  /** The agent's tools see nothing outside of it. */
  readonly workspace: string;
  readonly log: Logger;
  readonly stickers: Stickers;
}

const FOLDER = 'received';
const MAX_BYTES = 20 * 1024 * 1024;
const MAX_FILES = 10;
const FETCH_MS = 60_000;

/**
 * Fetches what came with a message into the workspace, under names that are ours: the same file again is the same file.
 * What cannot be had is told to the agent, and loses no message.
 */
export async function receiveFiles(
  platform: string,
  files: readonly IncomingFile[],
  deps: FilesDeps,
): Promise<ReceivedFile[]> {
  const taken = files.slice(0, MAX_FILES).map((file) => receiveFile(platform, file, deps));
  const left = files.slice(MAX_FILES).map((file) => ({ file, path: null, problem: 'too many at once' }));
  return [...(await Promise.all(taken)), ...left];
}

async function receiveFile(platform: string, file: IncomingFile, deps: FilesDeps): Promise<ReceivedFile> {
  const { workspace, log, stickers } = deps;
  if (file.kind === 'sticker') {
    return { file, path: null, problem: null, shows: await stickers.describe(platform, file) };
  }
  if (file.bytes !== null && file.bytes > MAX_BYTES) return { file, path: null, problem: 'larger than 20 MB' };
  try {
    const bytes = await file.open(MAX_BYTES, AbortSignal.timeout(FETCH_MS));
    const path = join(FOLDER, `${platform}-${nameOf(file)}`);
    await mkdir(join(workspace, FOLDER), { recursive: true, mode: 0o700 });
    const unfinished = join(workspace, `${path}.part`);
    await writeFile(unfinished, bytes, { mode: 0o600 }).catch(async (error: unknown) => {
      await rm(unfinished, { force: true });
      throw error;
    });
    await rename(unfinished, join(workspace, path));
    return { file, path, problem: null };
  } catch (error) {
    log.warn('a file that came with a message was not received', { platform, error });
    return { file, path: null, problem: 'it could not be fetched' };
  }
}

/** Nothing of a stranger's file name but its ending. */
function nameOf({ id, name, kind }: IncomingFile): string {
  const ending = /^\.[a-z0-9]{1,8}$/i.exec(extname(name ?? ''))?.[0].toLowerCase() ?? '';
  return `${kind}-${createHash('sha256').update(id).digest('hex').slice(0, 16)}${ending}`;
}

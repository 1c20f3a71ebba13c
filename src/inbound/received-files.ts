import { createHash, randomUUID } from 'node:crypto';
import { mkdir, rename, rm, writeFile } from 'node:fs/promises';
import { extname, join } from 'node:path';
import type { Session } from '../lifecycle/session.ts';
import type { Logger } from '../log/logger.ts';
import { makeRoom } from '../people/bounded-folder.ts';
import type { IncomingFile, Platform } from '../platforms/platform.ts';
import type { Store } from '../store/port.ts';
import type { TurnFile } from '../store/transactions/turn-files.ts';
import { fileText, type ReceivedFile } from './message-text.ts';
import type { Stickers } from './stickers.ts';

export interface ReceivedFilesDeps {
  readonly store: Store;
  readonly log: Logger;
  readonly stickers: Stickers;
  /** The folder in which the agent of a session works: its tools see nothing outside of it. */
  readonly workspaceOf: (session: Session) => string;
  /** What the received files of one folder may take; the oldest make room. */
  readonly maxReceivedBytes: number;
  readonly platform: (name: string) => Platform | null;
}

const FOLDER = 'received';
const MAX_BYTES = 20 * 1024 * 1024;
const MAX_FILES = 10;
const FETCH_MS = 60_000;

/** The files of a message as they are kept with it: nothing of them is fetched before its turn. */
export function turnFilesOf(platform: string, files: readonly IncomingFile[]): TurnFile[] {
  return files.map((file) => ({ platform, line: fileText({ file, path: null, problem: null }), file: { ...file } }));
}

/** Fetches in a turn what came with its message. What cannot be had is told to the agent. */
export class ReceivedFiles {
  readonly #deps: ReceivedFilesDeps;

  constructor(deps: ReceivedFilesDeps) {
    this.#deps = deps;
  }

  /** The text of a message, with what became of its files where it only said that they are there. */
  async textWithFiles(session: Session, turnId: string, text: string, signal: AbortSignal): Promise<string> {
    const files = await this.#deps.store.read('turnFiles', { turnId });
    if (files.length === 0) return text;
    const workspace = this.#deps.workspaceOf(session);
    const received = await Promise.all(
      files.map((file, i) =>
        i < MAX_FILES ? this.#receive(file, workspace, signal) : leftOut(file, 'too many at once'),
      ),
    );
    signal.throwIfAborted();
    return files.reduce((whole, { line }, i) => withLine(whole, line, fileText(received[i]!)), text);
  }

  /** Under a name that is ours: the same file again is the same file. */
  async #receive(kept: TurnFile, workspace: string, signal: AbortSignal): Promise<ReceivedFile> {
    const { log, stickers } = this.#deps;
    const { platform: name } = kept;
    const file = fileIn(kept);
    if (file.bytes !== null && file.bytes > MAX_BYTES) return leftOut(kept, 'larger than 20 MB');
    const platform = this.#deps.platform(name);
    if (platform?.openFile === undefined) return leftOut(kept, 'its platform is not connected');
    const open = (most: number, ms: number): Promise<Uint8Array> =>
      platform.openFile?.(file.ref, most, AbortSignal.any([signal, AbortSignal.timeout(ms)])) ?? Promise.reject();
    if (file.kind === 'sticker') {
      return { file, path: null, problem: null, shows: await stickers.describe(name, file, open) };
    }
    try {
      const path = join(FOLDER, `${name}-${nameOf(file)}`);
      await this.#keep(workspace, path, await open(MAX_BYTES, FETCH_MS));
      return { file, path, problem: null };
    } catch (error) {
      signal.throwIfAborted();
      log.warn('a file that came with a message was not received', { platform: name, error });
      return leftOut(kept, 'it could not be fetched');
    }
  }

  async #keep(workspace: string, path: string, bytes: Uint8Array): Promise<void> {
    await mkdir(join(workspace, FOLDER), { recursive: true, mode: 0o700 });
    // The same file may come twice in one album, and is fetched twice at the same time.
    const unfinished = join(workspace, `${path}.${randomUUID()}.part`);
    await writeFile(unfinished, bytes, { mode: 0o600 }).catch(async (error: unknown) => {
      await rm(unfinished, { force: true });
      throw error;
    });
    await rename(unfinished, join(workspace, path));
    await makeRoom(join(workspace, FOLDER), this.#deps.maxReceivedBytes);
  }
}

/** As its platform named it; a row that cannot be read names nothing. */
function fileIn({ file }: TurnFile): IncomingFile {
  const nothing = { kind: 'document', id: '', name: null, mime: null, bytes: null, hint: null, ref: '' };
  return { ...nothing, ...file } as unknown as IncomingFile;
}

function leftOut(kept: TurnFile, problem: string): ReceivedFile {
  return { file: fileIn(kept), path: null, problem };
}

/** In the place of the line that stood for it; before everything where a plugin took that line away. */
function withLine(text: string, line: string, received: string): string {
  const at = text.indexOf(line);
  return at < 0 ? `${received}\n${text}` : `${text.slice(0, at)}${received}${text.slice(at + line.length)}`;
}

/** Nothing of a stranger's file name but its ending. */
function nameOf({ id, name, kind }: IncomingFile): string {
  const ending = /^\.[a-z0-9]{1,8}$/i.exec(extname(name ?? ''))?.[0].toLowerCase() ?? '';
  return `${kind}-${createHash('sha256').update(id).digest('hex').slice(0, 16)}${ending}`;
}

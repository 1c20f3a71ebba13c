import { type FSWatcher, watch } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Logger } from '../../log/logger.ts';
import type { Timers } from '../../queue/timers.ts';
import type { Manifest } from './manifest.ts';

/** A folder that can be used. */
export type Usable<M extends Manifest, More> = More & {
  readonly state: 'ready' | 'disabled';
  readonly name: string;
  readonly folder: string;
  readonly manifest: M;
  /** Another one after its code or its manifest changed. */
  readonly fingerprint: string;
};

/** A folder that cannot, and why. */
export interface Bad {
  readonly state: 'bad';
  readonly name: string;
  readonly folder: string;
  readonly problem: string;
}

export type Found<M extends Manifest, More> = Usable<M, More> | Bad;

/** What is to be found: hooks, or plugins. */
export interface ExtensionKind<M extends Manifest, More> {
  /** `hook` or `plugin`, for the log. */
  readonly word: string;
  readonly manifest: string;
  /** Throws what is wrong with the manifest. */
  read(folder: string): Promise<M>;
  /** The rest of what is needed to run it. Throws what is missing. */
  locate(folder: string, manifest: M): Promise<More>;
}

/** Every extension below a folder, in the order of the folders' names; what is wrong with one is said of that one. */
export async function discover<M extends Manifest, More>(
  root: string,
  kind: ExtensionKind<M, More>,
): Promise<Found<M, More>[]> {
  const found: Found<M, More>[] = [];
  const entries = await readdir(root).catch(() => []); // No folder, no extensions.
  for (const entry of entries.filter((name) => !name.startsWith('.')).toSorted()) {
    const extension = await examine(join(root, entry), kind);
    if (extension === null) continue;
    const twin = found.find(({ name, state }) => name === extension.name && state !== 'bad');
    const taken = extension.state !== 'bad' && twin !== undefined;
    const problem = `${basename(twin?.folder ?? '')} has the name "${extension.name}" already`;
    found.push(taken ? { state: 'bad', name: entry, folder: extension.folder, problem } : extension);
  }
  return found;
}

/** Null for what is no folder. */
async function examine<M extends Manifest, More>(folder: string, kind: ExtensionKind<M, More>) {
  try {
    if (!(await stat(folder)).isDirectory()) return null;
    // Before anything is read: what changes meanwhile is seen as a change the next time.
    const fingerprint = await fingerprintOf(folder);
    const manifest = await kind.read(folder);
    const state: 'ready' | 'disabled' = manifest.enabled ? 'ready' : 'disabled';
    const more = await kind.locate(folder, manifest);
    return { ...more, state, name: manifest.name, folder, manifest, fingerprint };
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    const missing = code === 'ENOENT' ? `there is no ${kind.manifest}` : `it cannot be read: ${code ?? String(thrown)}`;
    const problem = thrown instanceof MoiraiError ? thrown.message : missing;
    return { state: 'bad' as const, name: basename(folder), folder, problem };
  }
}

/** What an extension writes beside itself (its notes, its cache) is no change of it. */
const CODE = new Set(['.ts', '.mts', '.cts', '.js', '.mjs', '.cjs', '.py', '.sh']);
const FILES = ['HOOK.yaml', 'plugin.yaml', 'package.json', 'handler'];
const DEEPEST = 3;

async function fingerprintOf(folder: string, depth = 0): Promise<string> {
  const parts: string[] = [];
  for (const entry of (await readdir(folder, { withFileTypes: true })).toSorted((a, b) => (a.name < b.name ? -1 : 1))) {
    const { name } = entry;
    if (name.startsWith('.') || name === 'node_modules' || name === '__pycache__') continue;
    const path = join(folder, name);
    if (entry.isDirectory()) {
      if (depth < DEEPEST) parts.push(await fingerprintOf(path, depth + 1));
    } else if (CODE.has(extname(name)) || FILES.includes(name)) {
      const { ino, size, mtimeMs } = await stat(path);
      parts.push([path, ino, size, mtimeMs].join(' '));
    }
  }
  return parts.join('\n');
}

const DEBOUNCE_MS = 200;
/** Some file systems tell nothing, and a folder that is not there yet cannot tell. */
const POLL_MS = 5000;

export interface ExtensionFolderDeps<M extends Manifest, More> {
  readonly root: string;
  readonly kind: ExtensionKind<M, More>;
  readonly timers: Timers;
  readonly log: Logger;
  /** Makes of what was found what there is. */
  readonly apply: (found: readonly Found<M, More>[]) => Promise<void>;
}

/** Keeps an eye on a folder of extensions: looks soon after something changed, and every few seconds in any case. */
export class ExtensionFolder<M extends Manifest, More> {
  readonly #deps: ExtensionFolderDeps<M, More>;
  readonly #watchers = new Map<string, FSWatcher>();
  #reported: ReadonlySet<string> = new Set();
  #looking: Promise<void> = Promise.resolve();
  #waiting = false;
  #closed = false;
  #cancelPoll: () => void = () => undefined;
  #cancelDebounce: (() => void) | null = null;

  constructor(deps: ExtensionFolderDeps<M, More>) {
    this.#deps = deps;
    this.#poll();
  }

  /** Looks at the folder; one look at a time, and never more than one waiting. */
  look(): Promise<void> {
    if (this.#waiting) return this.#looking;
    this.#waiting = true;
    this.#looking = this.#looking.then(async () => {
      this.#waiting = false;
      if (!this.#closed) await this.#look();
    });
    return this.#looking;
  }

  /** Resolves when no look is under way. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#follow([]);
    this.#cancelPoll();
    this.#cancelDebounce?.();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { root, kind, apply, log } = this.#deps;
    try {
      const found = await discover(root, kind);
      this.#follow([root, ...found.map(({ folder }) => folder)]);
      this.#report(found.filter((extension): extension is Bad => extension.state === 'bad'));
      await apply(found);
    } catch (error) {
      log.error(`looking for ${kind.word}s failed; trying again`, { error: MoiraiError.wrap(error) });
    }
  }

  /** Says once what is wrong, and again when it is something else. */
  #report(bad: readonly Bad[]): void {
    const { kind, log } = this.#deps;
    const faults = bad.map(({ name, problem }) => ({ [kind.word]: name, problem }));
    for (const fault of faults)
      if (!this.#reported.has(JSON.stringify(fault))) log.error(`${kind.word} refused`, fault);
    this.#reported = new Set(faults.map((fault) => JSON.stringify(fault)));
  }

  /** Watches these folders and no others. */
  #follow(folders: readonly string[]): void {
    for (const [folder, watcher] of this.#watchers) {
      if (folders.includes(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    for (const folder of folders) if (!this.#watchers.has(folder)) this.#watch(folder);
  }

  #watch(folder: string): void {
    if (this.#closed) return;
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#soon());
      watcher.on('error', () => {
        watcher.close();
        this.#watchers.delete(folder);
      });
      this.#watchers.set(folder, watcher);
    } catch {
      // It is not there, or there are too many watchers: the poll sees its changes, only later.
    }
  }

  #soon(): void {
    this.#cancelDebounce ??= this.#deps.timers.after(DEBOUNCE_MS, () => {
      this.#cancelDebounce = null;
      void this.look();
    });
  }

  #poll(): void {
    this.#cancelPoll = this.#deps.timers.after(POLL_MS, () => {
      void this.look();
      this.#poll();
    });
  }
}

import { type FSWatcher, watch } from 'node:fs';
import { readdir, stat } from 'node:fs/promises';
import { basename, extname, join } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Logger } from '../../log/logger.ts';
import type { Manifest } from './manifest.ts';
import type { ExtensionOptions } from './subscriptions.ts';

/** What is in the folder of an extension. */
interface Files {
  readonly manifest: Manifest;
}

/** A folder that can be used. */
export type Usable<F extends Files> = F & {
  readonly state: 'ready' | 'disabled';
  readonly name: string;
  readonly folder: string;
  /** Another one after its code or its manifest changed. */
  readonly fingerprint: string;
};

/** A folder that cannot, and why. */
interface Bad {
  readonly state: 'bad';
  readonly name: string;
  readonly folder: string;
  readonly problem: string;
}

export type Found<F extends Files> = Usable<F> | Bad;

/** What is to be found: hooks, or plugins. */
export interface ExtensionKind<F extends Files> {
  /** `hook` or `plugin`: for the log, and with an s the name of their folder. */
  readonly word: string;
  /** The name of the manifest. */
  readonly manifest: string;
  /** Throws what is wrong with the manifest, or missing in the folder. */
  read(folder: string): Promise<F>;
}

/** The folder of the home that all extensions of a kind are in. */
export function folderOf(home: string, { word }: { readonly word: string }): string {
  return join(home, `${word}s`);
}

/** Every extension of a home, in the order of the folders' names; what is wrong with one is said of that one. */
export async function discover<F extends Files>(home: string, kind: ExtensionKind<F>): Promise<Found<F>[]> {
  const found: Found<F>[] = [];
  const root = folderOf(home, kind);
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
async function examine<F extends Files>(folder: string, kind: ExtensionKind<F>): Promise<Found<F> | null> {
  try {
    if (!(await stat(folder)).isDirectory()) return null;
    // Before anything is read: what changes meanwhile is seen as a change the next time.
    const fingerprint = await fingerprintOf(folder);
    const files = await kind.read(folder);
    const { name, enabled } = files.manifest;
    return { ...files, state: enabled ? 'ready' : 'disabled', name, folder, fingerprint };
  } catch (thrown) {
    const { code } = thrown as NodeJS.ErrnoException;
    const missing = code === 'ENOENT' ? `there is no ${kind.manifest}` : `it cannot be read: ${code ?? String(thrown)}`;
    const problem = thrown instanceof MoiraiError ? thrown.message : missing;
    return { state: 'bad', name: basename(folder), folder, problem };
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

/** Says once what is wrong with which extension, and again when it is something else. */
export function faultReporter(word: string, log: Logger) {
  let reported: ReadonlySet<string> = new Set();
  return (faults: readonly { readonly name: string; readonly problem: string }[]): void => {
    const before = reported;
    reported = new Set(faults.map(({ name, problem }) => `${name}: ${problem}`));
    for (const { name, problem } of faults) {
      if (!before.has(`${name}: ${problem}`)) log.error(`${word} refused`, { [word]: name, problem });
    }
  };
}

const DEBOUNCE_MS = 200;
/** Some file systems tell nothing, and a folder that is not there yet cannot tell. */
const POLL_MS = 5000;

/** Keeps an eye on a folder of extensions: looks soon after something changed, and every few seconds in any case. */
export class ExtensionFolder<F extends Files> {
  readonly #kind: ExtensionKind<F>;
  readonly #options: ExtensionOptions;
  readonly #apply: (found: readonly Found<F>[]) => Promise<void>;
  readonly #report: ReturnType<typeof faultReporter>;
  readonly #watchers = new Map<string, FSWatcher>();
  #looking: Promise<void> = Promise.resolve();
  #waiting = false;
  #closed = false;
  /** When the next look is due, on the clock of the timers. */
  #due = Number.POSITIVE_INFINITY;
  #cancelNext: () => void = () => undefined;

  /** `apply` acts on what was found. */
  constructor(kind: ExtensionKind<F>, options: ExtensionOptions, apply: (found: readonly Found<F>[]) => Promise<void>) {
    this.#kind = kind;
    this.#options = options;
    this.#apply = apply;
    this.#report = faultReporter(kind.word, options.log);
    this.#lookIn(POLL_MS);
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
    this.#cancelNext();
    await this.#looking;
  }

  async #look(): Promise<void> {
    const { home, log } = this.#options;
    try {
      const found = await discover(home, this.#kind);
      this.#follow([folderOf(home, this.#kind), ...found.map(({ folder }) => folder)]);
      this.#report(found.filter((extension) => extension.state === 'bad'));
      await this.#apply(found);
    } catch (error) {
      log.error(`looking for ${this.#kind.word}s failed; trying again`, { error: MoiraiError.wrap(error) });
    }
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
      const watcher = watch(folder, { persistent: false }, () => this.#lookIn(DEBOUNCE_MS));
      watcher.on('error', () => {
        watcher.close();
        this.#watchers.delete(folder);
      });
      this.#watchers.set(folder, watcher);
    } catch {
      // It is not there, or there are too many watchers: the poll sees its changes, only later.
    }
  }

  /** Looks after so long, unless a look is due before. */
  #lookIn(ms: number): void {
    const { timers } = this.#options.host;
    const due = timers.elapsed() + ms;
    if (due >= this.#due) return;
    this.#due = due;
    this.#cancelNext();
    this.#cancelNext = timers.after(ms, () => {
      this.#due = Number.POSITIVE_INFINITY;
      void this.look();
      this.#lookIn(POLL_MS);
    });
  }
}

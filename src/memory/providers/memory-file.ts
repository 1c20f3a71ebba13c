import { type Stats, statSync } from 'node:fs';
import { mkdir, open, readFile, rename, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { MoiraiError } from '../../errors/moirai-error.ts';

/** Changes of one file follow each other, from wherever in this process they come. */
const changes = new Map<string, Promise<unknown>>();

/** A list of entries that a model and a person can both read and change: a line each, with a dash before it. */
export class MemoryFile {
  readonly path: string;
  readonly #maxChars: number;

  constructor(path: string, maxChars: number) {
    this.path = path;
    this.#maxChars = maxChars;
  }

  /** What it says, cut where it is longer than it may be; empty when there is no such file. */
  async text(): Promise<string> {
    return (await unchangedOrRead(this.path)).trim().slice(0, this.#maxChars).toWellFormed();
  }

  /** What it says, line by line and without the dashes. */
  async lines(): Promise<string[]> {
    const lines = (await this.text()).split('\n').map((line) => line.replace(/^- /, '').trim());
    return lines.filter((line) => line !== '');
  }

  add(entry: string): Promise<void> {
    return this.#change((lines) => {
      const line = toLine(entry);
      return lines.includes(line) ? lines : [...lines, line];
    });
  }

  /** Replaces the one entry that has these words in it. */
  replace(words: string, entry: string): Promise<void> {
    return this.#change((lines) => lines.with(this.#find(lines, words), toLine(entry)));
  }

  remove(words: string): Promise<void> {
    return this.#change((lines) => lines.toSpliced(this.#find(lines, words), 1));
  }

  #find(lines: readonly string[], words: string): number {
    const found = lines.flatMap((line, i) => (line.startsWith('- ') && line.includes(words.trim()) ? [i] : []));
    const [first] = found;
    if (words.trim() !== '' && first !== undefined && found.length === 1) return first;
    const problem = found.length > 1 ? 'more than one entry has' : 'no entry has';
    throw new MoiraiError(
      'memory_entry',
      `${problem} "${words}" in it; ${basename(this.path)} says:\n${lines.join('\n')}`,
    );
  }

  async #change(make: (lines: string[]) => string[]): Promise<void> {
    const before = changes.get(this.path) ?? Promise.resolve();
    const change = before.catch(() => undefined).then(() => this.#changeNow(make));
    changes.set(this.path, change);
    try {
      await change;
    } finally {
      if (changes.get(this.path) === change) changes.delete(this.path);
    }
  }

  async #changeNow(make: (lines: string[]) => string[]): Promise<void> {
    const old = (await readText(this.path)).trimEnd();
    const text = make(old === '' ? [] : old.split('\n')).join('\n');
    // What is too long already may be shortened step by step.
    if (text.length > this.#maxChars && text.length >= old.length) {
      throw new MoiraiError(
        'memory_full',
        `${basename(this.path)} would have ${text.length} of at most ${this.#maxChars} characters; it says:\n${old}`,
      );
    }
    if (text !== old) await writeAtomically(this.path, text === '' ? '' : `${text}\n`);
  }
}

/** One line, whatever was given: an entry cannot pass for several. */
function toLine(entry: string): string {
  const words = entry.replace(/[\s\p{Cc}]+/gu, ' ').trim();
  if (words === '') throw new MoiraiError('bad_input', 'an entry needs a text');
  return `- ${words}`.toWellFormed();
}

interface Remembered {
  /** What the file system said of the file when it was read. */
  readonly version: string;
  readonly text: string;
}

/** Every session that begins asks for files that hardly ever change. The least recently read is forgotten first. */
const texts = new Map<string, Remembered>();
const MOST_TEXTS = 1000;
const LONGEST_REMEMBERED = 16_384;
/** A file that was changed a moment ago may be changed again without a trace: clocks of file systems are coarse. */
const SETTLED_MS = 2000;

/** The text of a file, read only when it is another one than last time. A look costs less than to wait for a thread. */
async function unchangedOrRead(path: string): Promise<string> {
  const stats = look(path);
  if (stats === undefined) return '';
  const version = `${stats.ino} ${stats.size} ${stats.mtimeMs}`;
  const known = texts.get(path);
  texts.delete(path);
  const text = known?.version === version ? known.text : await readText(path);
  if (Date.now() - stats.mtimeMs <= SETTLED_MS || text.length > LONGEST_REMEMBERED) return text;
  if (texts.size >= MOST_TEXTS) texts.delete(texts.keys().next().value ?? '');
  texts.set(path, { version, text });
  return text;
}

function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (thrown) {
    throw MoiraiError.wrap(thrown, 'memory_unusable');
  }
}

async function readText(path: string): Promise<string> {
  try {
    return await readFile(path, 'utf8');
  } catch (thrown) {
    if ((thrown as NodeJS.ErrnoException).code === 'ENOENT') return '';
    throw MoiraiError.wrap(thrown, 'memory_unusable');
  }
}

/** A reader finds the old text or the new one, also after a kill or a power cut in the middle. */
async function writeAtomically(path: string, text: string): Promise<void> {
  const folder = dirname(path);
  const draft = join(folder, `.${basename(path)}.${process.pid}.tmp`);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await writeDurably(draft, text);
    await rename(draft, path);
    await syncFolder(folder);
  } catch (thrown) {
    await rm(draft, { force: true });
    throw MoiraiError.wrap(thrown, 'memory_unusable');
  }
}

async function writeDurably(path: string, text: string): Promise<void> {
  await using file = await open(path, 'w', 0o600);
  await file.writeFile(text);
  await file.sync();
}

/** The new name is only certain to be there once the folder is on the disk. */
async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r');
  await folder.sync();
}

import { dirname } from 'node:path';
import { DiskFile } from './disk-file.ts';
import type { Operation } from './log.ts';
import { between, type Random } from './random.ts';

/** The file through which a workload announces what it has acknowledged. It is a channel, not part of the disk. */
export const ACKS_FILE = 'acks.log';

/**
 * What becomes of writes that no completed sync covers: all `kept` (as after kill -9), all `lost`, or a `random` part
 * of them, sector by sector.
 */
export const LOSS_MODELS = ['kept', 'lost', 'random'] as const;
export type LossModel = (typeof LOSS_MODELS)[number];

/** Files by path. The buffers are views, valid until the replay advances. */
export type Image = Map<string, Buffer>;

/** Creating, removing or renaming a file. */
interface NameChange {
  index: number;
  removed?: string;
  added?: { path: string; file: DiskFile };
}

/** Walks a log forward and rebuilds, wherever it stands, what the disk would hold had the power been cut there. */
export class Replay {
  private readonly operations: readonly Operation[];
  private next = 0;
  private readonly files = new Map<number, DiskFile>();
  private readonly syncs = new Map<bigint, { start: number; file?: DiskFile; directory?: string }>();
  private acksFile: number | undefined;
  private acks = '';

  /**
   * Names are journalled in order by every file system we would run on, so what is durable of them is a prefix.
   * `durableNames` is its length.
   */
  private readonly names: NameChange[] = [];
  private durableNames = 0;

  constructor(operations: readonly Operation[]) {
    this.operations = operations;
  }

  /** Plays on until the first `point` operations have happened. Points must not fall. */
  advance(point: number): void {
    if (point < this.next) throw new Error(`cannot go back from operation ${this.next} to ${point}`);
    for (; this.next < point; this.next++) {
      const operation = this.operations[this.next];
      if (operation === undefined) throw new Error(`the log ends before operation ${point}`);
      this.play(this.next, operation);
    }
  }

  /** The tokens acknowledged so far. */
  acked(): string[] {
    return this.acks.split('\n').slice(0, -1);
  }

  image(model: LossModel, random: Random): Image {
    const surviving = {
      kept: () => this.names.length,
      lost: () => this.durableNames,
      random: () => between(random, this.durableNames, this.names.length),
    }[model]();
    const image: Image = new Map();
    for (const [path, file] of this.namesAfter(surviving)) {
      if (model === 'random') image.set(path, file.partlyKept(random));
      else image.set(path, model === 'kept' ? file.kept() : file.lost());
    }
    return image;
  }

  private play(index: number, operation: Operation): void {
    switch (operation.kind) {
      case 'create': {
        if (operation.path === ACKS_FILE) {
          this.acksFile = operation.file;
          return;
        }
        // A new file even when the inode number was seen before: file systems use them again.
        const file = new DiskFile();
        this.files.set(operation.file, file);
        this.names.push({ index, added: { path: operation.path, file } });
        return;
      }
      case 'remove':
        this.names.push({ index, removed: operation.path });
        return;
      case 'rename': {
        const added = { path: operation.to, file: this.file(operation.file) };
        this.names.push({ index, removed: operation.from, added });
        return;
      }
      case 'write':
        if (operation.file === this.acksFile) this.acks += operation.data.toString();
        else this.file(operation.file).change({ index, ...operation });
        return;
      case 'truncate':
        this.file(operation.file).change({ index, ...operation });
        return;
      case 'sync-start':
        this.syncs.set(operation.sync, { start: index, file: this.file(operation.file) });
        return;
      case 'directory-sync-start':
        this.syncs.set(operation.sync, { start: index, directory: operation.directory });
        return;
      case 'sync-finish':
        this.finishSync(operation.sync, operation.succeeded);
        return;
    }
  }

  /** A sync that failed, or had not returned at the crash, promises nothing. */
  private finishSync(id: bigint, succeeded: boolean): void {
    const sync = this.syncs.get(id);
    this.syncs.delete(id);
    if (sync === undefined || !succeeded) return;
    sync.file?.synced(sync.start);
    // Syncing a file makes its own new name durable too, on ext4, XFS and Btrfs alike.
    const last = this.names.findLastIndex(
      ({ index, added, removed }) =>
        index < sync.start &&
        (sync.file === undefined
          ? [added?.path, removed].some((path) => path !== undefined && directoryOf(path) === sync.directory)
          : added?.file === sync.file),
    );
    this.durableNames = Math.max(this.durableNames, last + 1);
  }

  private namesAfter(count: number): Map<string, DiskFile> {
    const files = new Map<string, DiskFile>();
    for (const { removed, added } of this.names.slice(0, count)) {
      if (removed !== undefined) files.delete(removed);
      if (added !== undefined) files.set(added.path, added.file);
    }
    return files;
  }

  private file(inode: number): DiskFile {
    const file = this.files.get(inode);
    // Without its creation we would not know what the file held: the recording must begin with an empty directory.
    if (file === undefined) throw new Error(`inode ${inode} was changed but its creation was not recorded`);
    return file;
  }
}

function directoryOf(path: string): string {
  const directory = dirname(path);
  return directory === '.' ? '' : directory;
}

import { type FSWatcher, watch } from 'node:fs';
import type { Timers } from '../../queue/timers.ts';

const DEBOUNCE_MS = 200;
/** Some file systems tell nothing, and a folder that is not there yet cannot tell. */
const POLL_MS = 5000;

/** Calls when something in these folders may have changed: soon after it did, and every few seconds in any case. */
export class FolderWatch {
  readonly #changed: () => void;
  readonly #timers: Timers;
  readonly #watchers = new Map<string, FSWatcher>();
  #cancelPoll: () => void = () => undefined;
  #cancelDebounce: (() => void) | null = null;
  #closed = false;

  constructor(timers: Timers, changed: () => void) {
    this.#timers = timers;
    this.#changed = changed;
    this.#poll();
  }

  /** Watches these folders and no others. */
  follow(folders: readonly string[]): void {
    for (const [folder, watcher] of this.#watchers) {
      if (folders.includes(folder)) continue;
      watcher.close();
      this.#watchers.delete(folder);
    }
    for (const folder of folders) if (!this.#watchers.has(folder)) this.#watch(folder);
  }

  close(): void {
    this.#closed = true;
    this.follow([]);
    this.#cancelPoll();
    this.#cancelDebounce?.();
  }

  #watch(folder: string): void {
    if (this.#closed) return;
    const lost = (): void => {
      this.#watchers.get(folder)?.close();
      this.#watchers.delete(folder);
    };
    try {
      const watcher = watch(folder, { persistent: false }, () => this.#soon());
      watcher.on('error', lost);
      this.#watchers.set(folder, watcher);
    } catch {
      // It is not there, or there are too many watchers: the poll sees its changes, only later.
    }
  }

  #soon(): void {
    this.#cancelDebounce ??= this.#timers.after(DEBOUNCE_MS, () => {
      this.#cancelDebounce = null;
      this.#changed();
    });
  }

  #poll(): void {
    this.#cancelPoll = this.#timers.after(POLL_MS, () => {
      this.#changed();
      this.#poll();
    });
  }
}

import { closeSync, openSync, writeSync } from 'node:fs';

/** Writes a file until there is no more room, to the last byte. */
export function fillDisk(path: string): void {
  const file = openSync(path, 'a');
  for (let size = 65_536; size >= 1; ) {
    try {
      if (writeSync(file, Buffer.alloc(size)) < size) size = Math.floor(size / 2);
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error;
      size = Math.floor(size / 2);
    }
  }
  closeSync(file);
}

import { readFileSync } from 'node:fs';

/** One recorded operation. `file` is an inode number, paths are relative to the recorded directory. */
export type Operation =
  | { kind: 'create'; file: number; path: string }
  | { kind: 'remove'; path: string }
  | { kind: 'rename'; file: number; from: string; to: string }
  | { kind: 'write'; file: number; offset: number; data: Buffer }
  | { kind: 'truncate'; file: number; size: number }
  | { kind: 'sync-start'; file: number; sync: bigint }
  | { kind: 'directory-sync-start'; directory: string; sync: bigint }
  | { kind: 'sync-finish'; sync: bigint; succeeded: boolean };

const HEADER_BYTES = 32;

/** Reads a log written by recorder.c. Throws on a record that is cut short or of unknown kind. */
export function readLog(path: string): Operation[] {
  const bytes = readFileSync(path);
  const operations: Operation[] = [];
  let at = 0;
  while (at < bytes.length) {
    const end = at + HEADER_BYTES + bytes.readUInt32LE(at + 4);
    if (end > bytes.length) throw new Error(`${path}: the record at byte ${at} is cut short`);
    operations.push(parseRecord(bytes.subarray(at, end)));
    at = end;
  }
  return operations;
}

function parseRecord(record: Buffer): Operation {
  const file = Number(record.readBigUInt64LE(8));
  const value = Number(record.readBigInt64LE(16));
  const sync = record.readBigUInt64LE(24);
  const payload = record.subarray(HEADER_BYTES);
  // The numbers are `enum kind` of recorder.c.
  switch (record.readUInt32LE(0)) {
    case 1:
      return { kind: 'create', file, path: payload.toString() };
    case 2:
      return { kind: 'remove', path: payload.toString() };
    case 3: {
      const border = payload.indexOf(0);
      return {
        kind: 'rename',
        file,
        from: payload.subarray(0, border).toString(),
        to: payload.subarray(border + 1).toString(),
      };
    }
    case 4:
      return { kind: 'write', file, offset: value, data: payload };
    case 5:
      return { kind: 'truncate', file, size: value };
    case 6:
      return { kind: 'sync-start', file, sync };
    case 7:
      return { kind: 'directory-sync-start', directory: payload.toString(), sync };
    case 8:
      return { kind: 'sync-finish', sync, succeeded: value === 0 };
    default:
      throw new Error(`unknown record kind ${record.readUInt32LE(0)}`);
  }
}

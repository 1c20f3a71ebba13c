import { describe, expect, test } from 'vitest';
import type { Operation } from './log.ts';
import { seededRandom } from './random.ts';
import { type LossModel, Replay } from './replay.ts';

const create: Operation = { kind: 'create', file: 1, path: 'f' };
const write = (offset: number, text: string, file = 1): Operation => ({
  kind: 'write',
  file,
  offset,
  data: Buffer.from(text),
});
const truncate = (size: number): Operation => ({ kind: 'truncate', file: 1, size });
const syncStart = (sync = 1n): Operation => ({ kind: 'sync-start', file: 1, sync });
const syncFinish = (sync = 1n, succeeded = true): Operation => ({ kind: 'sync-finish', sync, succeeded });

/** The files after all of `operations`, then a power cut. */
function cut(operations: Operation[], model: LossModel, seed = 0): Record<string, string> {
  const replay = new Replay(operations);
  replay.advance(operations.length);
  const image = replay.image(model, seededRandom(seed));
  return Object.fromEntries([...image].map(([path, bytes]) => [path, bytes.toString()]));
}

/** Every outcome that the random model gives over many seeds. */
function outcomes(operations: Operation[], show: (files: Record<string, string>) => string): string[] {
  const seen = Array.from({ length: 500 }, (_, seed) => show(cut(operations, 'random', seed)));
  return [...new Set(seen)].sort();
}

describe('what a sync covers', () => {
  test('writes before it survive, later ones are lost', () => {
    const operations = [create, write(0, 'safe'), syncStart(), syncFinish(), write(4, 'risk')];
    expect(cut(operations, 'lost')).toEqual({ f: 'safe' });
    expect(cut(operations, 'kept')).toEqual({ f: 'saferisk' });
  });

  test('a sync that had not returned promises nothing', () => {
    expect(cut([create, write(0, 'x'), syncStart()], 'lost')).toEqual({});
  });

  test('a sync that failed promises nothing', () => {
    expect(cut([create, write(0, 'x'), syncStart(), syncFinish(1n, false)], 'lost')).toEqual({});
  });

  test('a write made while the sync ran is not covered', () => {
    expect(cut([create, write(0, 'a'), syncStart(), write(1, 'b'), syncFinish()], 'lost')).toEqual({ f: 'a' });
  });

  test('of two syncs at once, each covers what was written before its own start', () => {
    const operations = [create, write(0, 'a'), syncStart(1n), write(1, 'b'), syncStart(2n), write(2, 'c')];
    expect(cut([...operations, syncFinish(2n), syncFinish(1n)], 'lost')).toEqual({ f: 'ab' });
    expect(cut([...operations, syncFinish(1n)], 'lost')).toEqual({ f: 'a' });
  });
});

describe('names', () => {
  const remove: Operation = { kind: 'remove', path: 'f' };
  const rename: Operation = { kind: 'rename', file: 1, from: 'f', to: 'g' };
  const syncedFile = [create, write(0, 'x'), syncStart(), syncFinish()];
  const directorySync: Operation[] = [{ kind: 'directory-sync-start', directory: '', sync: 9n }, syncFinish(9n)];

  test('a removal is lost unless the directory was synced', () => {
    expect(cut([...syncedFile, remove], 'lost')).toEqual({ f: 'x' });
    expect(cut([...syncedFile, remove, ...directorySync], 'lost')).toEqual({});
    expect(cut([...syncedFile, remove], 'kept')).toEqual({});
  });

  test('a rename is lost unless the directory was synced', () => {
    expect(cut([...syncedFile, rename], 'lost')).toEqual({ f: 'x' });
    expect(cut([...syncedFile, rename, ...directorySync], 'lost')).toEqual({ g: 'x' });
  });

  test('an inode number used again is a new file', () => {
    expect(cut([...syncedFile, remove, create], 'kept')).toEqual({ f: '' });
  });
});

describe('the random model', () => {
  const sectors = (letter: string, count: number): string => letter.repeat(512 * count);
  const base = [create, write(0, sectors('a', 2)), syncStart(), syncFinish()];

  test('tears a write between sectors and never within one', () => {
    const firstOfEach = outcomes([...base, write(0, sectors('b', 2))], ({ f = '' }) => {
      expect(f).toMatch(/^(a{512}|b{512})(a{512}|b{512})$/);
      return `${f[0]}${f[512]}`;
    });
    expect(firstOfEach).toEqual(['aa', 'ab', 'ba', 'bb']);
  });

  test('leaves in a sector any version that was in it since the sync', () => {
    const operations = [...base, write(0, sectors('b', 1)), write(0, sectors('c', 1))];
    expect(outcomes(operations, ({ f = '' }) => f.slice(0, 1))).toEqual(['a', 'b', 'c']);
  });

  test('a small write brings its whole sector as it then was', () => {
    const operations = [...base, write(0, 'b'), write(1, 'c')];
    expect(outcomes(operations, ({ f = '' }) => f.slice(0, 2))).toEqual(['aa', 'ba', 'bc']);
  });

  test('an extension may be lost, may survive, and may survive without its data', () => {
    const show = ({ f = '' }) => `${f.length}${f.length > 1024 ? (f[1024] === '\0' ? ' zeros' : ' data') : ''}`;
    expect(outcomes([...base, write(1024, sectors('b', 1))], show)).toEqual(['1024', '1536 data', '1536 zeros']);
  });

  test('what was written after a truncation is lost with the truncation', () => {
    const operations = [...base, truncate(0), write(0, sectors('b', 1))];
    expect(outcomes(operations, ({ f = '' }) => `${f.length}${f[0] ?? ''}`)).toEqual(['0', '1024a', '512\0', '512b']);
  });
});

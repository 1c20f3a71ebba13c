import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readLog } from './log.ts';
import { record, whyNoRecorder } from './record.ts';

const missing = whyNoRecorder();

describe.skipIf(missing !== undefined)(`the recorder${missing === undefined ? '' : ` (SKIPPED: ${missing})`}`, () => {
  let scratch: string;
  beforeEach(() => {
    scratch = mkdtempSync(join(tmpdir(), 'moirai-recorder-'));
  });
  afterEach(() => {
    rmSync(scratch, { recursive: true });
  });

  /** Runs `script`, which finds node:fs as `fs`, in the recorded directory. */
  const recordScript = (script: string) => {
    const prelude = `import * as fs from 'node:fs'; process.chdir(process.argv[1]);`;
    const argv = ['--input-type=module', '--eval', prelude + script];
    return readLog(record(scratch, (directory) => [...argv, directory]).log);
  };

  // `record` itself compares the replayed end with the real directory and throws when they differ.
  test('sees every way in which Node changes a file', () => {
    const operations = recordScript(`
      const fd = fs.openSync('a', 'w+')
      fs.writeSync(fd, 'one')
      fs.writeSync(fd, 'two', 100)
      fs.writevSync(fd, [Buffer.from('three'), Buffer.from('four')])
      fs.writevSync(fd, [Buffer.from('five'), Buffer.from('six')], 600)
      await new Promise((resolve) => fs.write(fd, 'seven', 2000, resolve))
      fs.ftruncateSync(fd, 1990)
      fs.ftruncateSync(fd, 3000)
      fs.writeFileSync('b', 'old')
      fs.writeFileSync('b', 'new')
      fs.appendFileSync('b', ' and more')
      fs.truncateSync('b', 5)
      fs.renameSync('a', 'c')
      fs.writeFileSync('gone', 'x')
      fs.unlinkSync('gone')
      fs.mkdirSync('below')
      await fs.promises.writeFile('below/d', 'deep')
    `);
    expect(operations.map(({ kind }) => kind)).toContain('rename');
    expect(operations.map(({ kind }) => kind)).toContain('remove');
  });

  test('records where a sync starts and where it finishes, of a file and of its directory', () => {
    const operations = recordScript(`
      const fd = fs.openSync('a', 'w')
      fs.writeSync(fd, 'x')
      fs.fsyncSync(fd)
      fs.fdatasyncSync(fd)
      fs.fsyncSync(fs.openSync('.', 'r'))
    `);
    expect(operations.map(({ kind }) => kind)).toEqual([
      'create',
      'write',
      'sync-start',
      'sync-finish',
      'sync-start',
      'sync-finish',
      'directory-sync-start',
      'sync-finish',
    ]);
  });

  test('keeps one order for threads and processes that write at the same time', () => {
    const operations = recordScript(`
      import { Worker } from 'node:worker_threads'
      import { spawn } from 'node:child_process'
      const writer = (name) => \`
        const fs = process.getBuiltinModule('node:fs')
        const own = fs.openSync('\${name}', 'w'), shared = fs.openSync('shared', 'a')
        for (let i = 0; i < 300; i++) { fs.writeSync(own, 'x'.repeat(i)); fs.writeSync(shared, '\${name}' + i + ';') }\`
      fs.writeFileSync('shared', '')
      await Promise.all([
        ...['thread-1', 'thread-2'].map((name) => new Promise((resolve) =>
          new Worker(writer(name), { eval: true }).on('exit', resolve))),
        ...['process-1', 'process-2'].map((name) => new Promise((resolve) =>
          spawn(process.execPath, ['--eval', writer(name)]).on('exit', resolve))),
      ])
    `);
    // 299 non-empty own writes and 300 shared ones from each of the four.
    expect(operations.filter(({ kind }) => kind === 'write')).toHaveLength(4 * (299 + 300));
  });

  test('fails the recording when a change came through a door it does not watch', () => {
    expect(() => recordScript(`fs.writeFileSync('a', 'x'); fs.linkSync('a', 'b')`)).toThrow(/missed changes to b/);
  });
});

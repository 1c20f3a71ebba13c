import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const SOURCE = join(import.meta.dirname, 'disk-faults.c');
const compiler = process.env.CC ?? 'cc';

/** Why no disk can be made to fail on this machine, or undefined when it can. */
export function whyNoDiskFaults(): string | undefined {
  if (process.platform !== 'linux') return `LD_PRELOAD needs Linux, this is ${process.platform}`;
  const { error } = spawnSync(compiler, ['--version']);
  return error === undefined ? undefined : `there is no C compiler (${compiler})`;
}

/** The disk of the processes that are started with its `environment`. */
export class FaultyDisk {
  readonly #folder = mkdtempSync(join(tmpdir(), 'moirai-disk-'));
  readonly #control = join(this.#folder, 'faults');
  readonly environment: Readonly<Record<string, string>>;

  constructor() {
    const library = join(this.#folder, 'disk-faults.so');
    const built = spawnSync(compiler, ['-shared', '-fPIC', '-O2', '-o', library, SOURCE, '-ldl'], { encoding: 'utf8' });
    if (built.status !== 0) throw new TypeError(`disk-faults.c does not compile:\n${built.stderr}`);
    // io_uring would hand writes to the kernel without a call that the library sees.
    this.environment = { LD_PRELOAD: library, MOIRAI_DISK_FAULTS: this.#control, UV_USE_IO_URING: '0' };
  }

  /** `full`: nothing can be written. `sync`: what was written cannot be synced. */
  fail(how: 'full' | 'sync'): void {
    writeFileSync(this.#control, how);
  }

  recover(): void {
    rmSync(this.#control, { force: true });
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

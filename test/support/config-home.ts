import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect } from 'vitest';
import { stringify } from 'yaml';
import type { Config } from '../../src/config/config.ts';
import { loadConfig } from '../../src/config/load-config.ts';
import { problemsOf } from '../../src/config/problem.ts';
import { MoiraiError } from '../../src/errors/moirai-error.ts';

type Environment = Readonly<Record<string, string>>;

/** A home of its own, whose configuration is written and loaded. */
export class ConfigHome {
  readonly path = mkdtempSync(join(tmpdir(), 'moirai-config-'));

  write(file: string, content: string | Buffer): void {
    writeFileSync(join(this.path, file), content);
  }

  /** Loads this as `config.yaml`. */
  load(yaml: string | object = '', env: Environment = {}): Config {
    this.write('config.yaml', typeof yaml === 'string' ? yaml : stringify(yaml));
    return loadConfig({ home: this.path, env });
  }

  /** Why this is refused; it must be. */
  refusal(yaml: string | object, env: Environment = {}): MoiraiError {
    try {
      this.load(yaml, env);
    } catch (thrown) {
      if (thrown instanceof MoiraiError) return thrown;
      throw thrown;
    }
    throw new MoiraiError('internal', 'the configuration was accepted');
  }

  /** The paths and messages of all problems. */
  problems(yaml: string | object, env: Environment = {}): string[] {
    const error = this.refusal(yaml, env);
    expect(error.code).toBe('config_invalid');
    return problemsOf(error).map(({ path, message }) => `${path}: ${message}`);
  }

  remove(): void {
    rmSync(this.path, { recursive: true, force: true });
  }
}

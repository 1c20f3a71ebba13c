import { join } from 'node:path';

/** The files of a home that configure it; either may be missing. */
export interface ConfigPaths {
  readonly config: string;
  readonly env: string;
}

export function configPaths(home: string): ConfigPaths {
  return { config: join(home, 'config.yaml'), env: join(home, '.env') };
}

import { join } from 'node:path';

/** The files of a home that configure it; either may be missing. */
export function configPaths(home: string) {
  return { config: join(home, 'config.yaml'), env: join(home, '.env') };
}

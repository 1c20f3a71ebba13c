import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';

export interface OpenCost {
  readonly ms: number;
  readonly residentMb: number;
}

/** How long a fresh process takes to open a store and to find its next deadline, and what it then holds in memory. */
export async function measureOpen(url: string): Promise<OpenCost> {
  const child = join(import.meta.dirname, 'open-child.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [child, url]);
  return JSON.parse(stdout) as OpenCost;
}

import { openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import { ACKS_FILE } from './replay.ts';

export type Synchronous = 'FULL' | 'NORMAL';

export interface WorkloadOptions {
  synchronous: Synchronous;
  seed: number;
  commits: number;
}

/** Something that commits and acknowledges, and can tell from what a crash left whether an acknowledgement was a lie. */
export interface Workload {
  /** Opens a store in `directory`, which is empty. */
  open(directory: string, options: WorkloadOptions): Promise<void>;
  /** Works to the end and closes the store. Calls `ack` with a token, no line break in it, after each commit returned. */
  run(ack: (token: string) => void): Promise<void>;
  /**
   * Opens what a crash left in `directory`, possibly nothing, and returns one sentence per violation: every token in
   * `acked` that is not there, every trace of damage. `directory` is a throw-away copy.
   */
  verify(directory: string, acked: readonly string[]): Promise<string[]>;
}

/** Loaded when asked for: a workload on raw SQLite must run while Moirai's store does not compile. */
const WORKLOADS: Record<string, () => Promise<Workload>> = {
  raw: async () => (await import('./raw-workload.ts')).rawWorkload(),
  store: async () => (await import('./store-workload.ts')).storeWorkload(),
};

export async function loadWorkload(name: string): Promise<Workload> {
  const load = WORKLOADS[name];
  if (load === undefined) throw new Error(`unknown workload ${name}; known: ${Object.keys(WORKLOADS).join(', ')}`);
  return load();
}

/** The recorded process: `workload.ts <name> <directory> <options as JSON>`. */
async function runRecorded(name = '', directory = '', options = '{}'): Promise<void> {
  const acks = openSync(join(directory, ACKS_FILE), 'a');
  const workload = await loadWorkload(name);
  await workload.open(directory, JSON.parse(options) as WorkloadOptions);
  await workload.run((token) => writeSync(acks, `${token}\n`));
}

if (import.meta.main) await runRecorded(...process.argv.slice(2));

import fc from 'fast-check';
import { modelCommands } from './model-commands.ts';
import { compareLogs, drain } from './model-delivery.ts';
import { Model } from './model-state.ts';
import { MODEL_RULES, type Real } from './model-step.ts';
import { SqliteFiles } from './stores.ts';
import type { OpenedStore } from './world.ts';

const HISTORY_LENGTH = 120;
const START = Date.UTC(2026, 2, 7, 3);

export interface ModelOptions {
  /** How many commands to run, in as many histories as it takes. */
  readonly commands: number;
  readonly seed: number;
  readonly open?: (time: { now(): number; lease(): number }) => Promise<OpenedStore>;
  readonly tell?: (commands: number) => void;
}

export interface ModelResult {
  readonly commands: number;
  readonly histories: number;
  /** The shortest history found that breaks a promise, in words; null when all was as the model says. */
  readonly failure: string | null;
}

/** Drives the real store and the model through random histories and compares them after every step. */
export async function runModel(options: ModelOptions): Promise<ModelResult> {
  const files = options.open === undefined ? new SqliteFiles() : null;
  const open = options.open ?? files?.open;
  if (open === undefined) throw new TypeError('no store to open');
  let commands = 0;
  let histories = 0;
  let told = 0;
  const property = fc.asyncProperty(
    fc.commands<Model, Real, false>(modelCommands(), {
      maxCommands: HISTORY_LENGTH,
      size: 'max',
    }),
    async (history) => {
      const model = new Model(START);
      const opened = await open({ now: () => model.now, lease: () => model.lease });
      opened.store.useRules(MODEL_RULES);
      const real: Real = {
        ...{ store: opened.store, dump: opened.dump, instances: [], sessionIds: [], next: 0 },
        ...{ deliveries: new Map(), settled: new Set(), jobs: [], ticks: new Set(), ran: 0 },
      };
      try {
        await fc.asyncModelRun(() => ({ model, real }), history);
        // At the end the whole log is compared, and every subscriber has heard it all, in order.
        await drain(model, real);
        await compareLogs(model, real);
      } finally {
        commands += real.ran;
        histories++;
        await opened.close();
      }
      if (options.tell !== undefined && commands - told >= 100_000) {
        told = commands;
        options.tell(commands);
      }
    },
  );
  try {
    let failure: string | null = null;
    for (let round = 0; commands < options.commands && failure === null; round++) {
      const numRuns = Math.min(100, Math.ceil((options.commands - commands) / (HISTORY_LENGTH / 2)));
      const details = await fc.check(property, { numRuns, seed: options.seed + round, endOnFailure: false });
      if (details.failed) failure = `${fc.defaultReportMessage(details)}\n${String(details.errorInstance)}`;
    }
    return { commands, histories, failure };
  } finally {
    files?.remove();
  }
}

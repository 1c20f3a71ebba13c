import type { AgentRunner } from '../agent/runner.ts';
import type { JobService } from '../cron/job-service.ts';
import type { Engine } from '../engine/engine.ts';
import type { SessionMemory } from '../memory/session-memory.ts';
import type { Approvals } from '../people/approvals.ts';
import type { Children } from '../turns/children.ts';
import type { CommandAnswer, CommandCall, CommandFacts, SlashCommand } from '../turns/command.ts';
import type { Transcripts } from '../turns/transcripts.ts';
import type { Turns } from '../turns/turns.ts';

/** What commands work with. */
export interface CommandDeps {
  readonly engine: Engine;
  readonly turns: Turns;
  readonly runner: AgentRunner;
  readonly approvals: Approvals;
  readonly transcripts: Transcripts;
  readonly memory: SessionMemory;
  readonly children: Children;
  readonly jobs: JobService;
  /** Of a million tokens read and written; null when it is not known. */
  readonly prices: { readonly input: number; readonly output: number } | null;
  /** Commands that plugins bring. */
  readonly more: () => readonly SlashCommand[];
  /** Restarts the gateway, unless its configuration is wrong (false); null where no gateway runs. */
  readonly restart: (() => Promise<boolean>) | null;
}

/** A command of ours, as it is declared. */
export interface CommandSpec extends CommandFacts {
  run(call: CommandCall, deps: CommandDeps): Promise<CommandAnswer>;
}

/** Records that the command ran, in the session it ran in. */
export async function record(call: CommandCall, deps: CommandDeps): Promise<void> {
  if (call.session === null) return;
  await deps.engine.note(call.session.id, { command: call.name, args: call.args });
}

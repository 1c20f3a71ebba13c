import type { AgentRunner } from '../../agent/runner.ts';
import type { JobService } from '../../cron/job-service.ts';
import type { Engine } from '../../engine/engine.ts';
import type { Session } from '../../lifecycle/session.ts';
import type { ConversationRef } from '../../store/transactions/conversations.ts';
import type { Answerer, Approvals } from '../approvals.ts';
import type { Children } from '../children.ts';
import type { InboundMessage, ReceiveResult } from '../conversations.ts';
import type { GatewayMemory } from '../memory.ts';
import type { Transcripts } from '../transcripts.ts';
import type { Turns } from '../turns.ts';

/** What commands work with. */
export interface CommandDeps {
  readonly engine: Engine;
  readonly turns: Turns;
  readonly runner: AgentRunner;
  readonly approvals: Approvals;
  readonly transcripts: Transcripts;
  readonly memory: GatewayMemory;
  readonly children: Children;
  readonly jobs: JobService;
  /** Says something in the name of whoever gave the command. */
  readonly receive: (message: InboundMessage) => Promise<ReceiveResult>;
  /** Of a million tokens read and written; null when it is not known. */
  readonly prices: { readonly input: number; readonly output: number } | null;
  /** Commands that plugins bring. */
  readonly more: () => readonly SlashCommandSpec[];
  /** Asks this process to restart; null where that is not up to the people who talk to it. */
  readonly restart: (() => void) | null;
}

/** One use of a command. */
export interface CommandCall {
  readonly name: string;
  /** Behind the name, trimmed. */
  readonly args: string;
  readonly conversation: ConversationRef;
  /** The open session of the conversation. */
  readonly session: Session | null;
  readonly originRef: string | null;
  /** Who gives it, where several could; null where it can be only one. */
  readonly by: Answerer;
}

/** What a command says; or what it set going. */
export type CommandAnswer = string | ReceiveResult;

export interface SlashCommandSpec {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** Behind the name, as help shows it. */
  readonly takes?: string;
  readonly summary: string;
  /** It changes what later messages find: those wait until it is done, and it waits for what came before. */
  readonly ordered?: true;
  /** Concerns more than the conversation it is given in. */
  readonly operator?: true;
  run(call: CommandCall, deps: CommandDeps): Promise<CommandAnswer>;
}

/** A command and what is behind it; null for what is no command: `/etc/hosts is wrong`. */
export function parseCommand(text: string): { name: string; args: string } | null {
  const [, name, args = ''] = /^\/([a-z][a-z0-9_-]*)(?:@\S+)?(?:\s+([\s\S]*))?$/i.exec(text.trim()) ?? [];
  return name === undefined ? null : { name: name.toLowerCase(), args: args.trim() };
}

/** Records that the command ran, in the session it ran in. */
export async function record(call: CommandCall, deps: CommandDeps): Promise<void> {
  if (call.session === null) return;
  await deps.engine.note(call.session.id, { command: call.name, args: call.args });
}

import type { Logger } from '../../log/logger.ts';
import type { Message } from '../../store/transactions/messages.ts';
import type { AgentTool, Asker } from './tool.ts';
import type { WorkspaceOf } from './workspace.ts';

/** How `fetch_url` finds addresses. */
export interface WebAccess {
  /** All addresses of a host name; the system's resolver unless given. */
  readonly resolve?: (host: string) => Promise<readonly string[]>;
  /** For tests alone: loopback is a place like any other. */
  readonly allowLoopback?: boolean;
}

/** What the tools ask of the rest of the gateway. A tool whose port is missing is not offered to the model. */
export interface ToolPorts {
  /** Where tools work for an asker; the configured folder unless given. */
  readonly workspaceOf?: WorkspaceOf;
  /** Messages of past sessions that this asker may see, best match first. */
  readonly searchSessions?: (text: string, asker: Asker, limit: number) => Promise<readonly Message[]>;
  /** Keeps a fact beyond the session. */
  readonly remember?: (fact: string, asker: Asker) => Promise<void>;
  /** Sends to a target such as `telegram:42`; says what became of it. */
  readonly sendMessage?: (target: string, text: string, asker: Asker) => Promise<string>;
  /** Sends a file of the workspace, by its real path, with a text under it; says what became of it. */
  readonly sendFile?: (target: string, file: FileToSend, asker: Asker) => Promise<string>;
  /** Runs a task in a child session and returns its answer. */
  readonly delegate?: (task: string, asker: Asker, signal: AbortSignal) => Promise<string>;
  /** Has something done later, in the conversation of the asker. */
  readonly schedule?: SchedulePort;
  /** What others offer: memory, plugins. Read again each turn; a built-in tool keeps its name against one of theirs. */
  readonly more?: () => readonly AgentTool[];
  /** The gateway's environment; commands get only its harmless part. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  readonly web?: WebAccess;
}

export interface FileToSend {
  readonly path: string;
  readonly text: string;
}

/** Each says what became of it. */
export interface SchedulePort {
  add(job: NewSchedule, asker: Asker): Promise<string>;
  list(asker: Asker): Promise<string>;
  remove(job: string, asker: Asker): Promise<string>;
}

export interface NewSchedule {
  readonly schedule: string;
  readonly task: string;
  readonly name?: string | undefined;
  readonly timezone?: string | undefined;
}

/** Receives what goes wrong beside a turn: a fixed sentence, and what varies in the fields. */
export type Log = Pick<Logger, 'warn'>;

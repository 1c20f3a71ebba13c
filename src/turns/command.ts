import { MoiraiError } from '../errors/moirai-error.ts';
import type { Session } from '../lifecycle/session.ts';
import type { Answerer } from '../people/access.ts';
import type { ConversationRef } from '../store/transactions/conversations.ts';
import type { ReceiveResult } from './conversations.ts';
import type { BusyMode } from './turn-deps.ts';

/** One use of a command. */
export interface CommandCall {
  readonly name: string;
  /** Behind the name, trimmed. */
  readonly args: string;
  readonly conversation: ConversationRef;
  /** The open session of the conversation. */
  readonly session: Session | null;
  /** Who gives it. */
  readonly by: Answerer;
  /** Sends a message of the person who gives the command; never a command itself. */
  readonly send: (text: string, mode: BusyMode) => Promise<ReceiveResult>;
}

/** What a command says; or what it set going. */
export type CommandAnswer = string | ReceiveResult;

export interface CommandFacts {
  readonly name: string;
  readonly aliases?: readonly string[];
  /** Behind the name, as help shows it. */
  readonly takes?: string;
  readonly summary: string;
  /** It changes what later messages find: those wait until it is done, and it waits for what came before. */
  readonly ordered?: true;
  /** It starts a turn: a gateway that takes nothing new refuses it. */
  readonly startsTurn?: true;
  /** Concerns more than the conversation it is given in. */
  readonly operator?: true;
}

/** A slash command, ready to be used. */
export interface SlashCommand extends CommandFacts {
  run(call: CommandCall): Promise<CommandAnswer>;
}

/** A command and what is behind it; null for what is no command: `/etc/hosts is wrong`. */
export function parseCommand(text: string): { name: string; args: string } | null {
  const [, name, args = ''] = /^\/([a-z][a-z0-9_-]*)(?:@\S+)?(?:\s+([\s\S]*))?$/i.exec(text.trim()) ?? [];
  return name === undefined ? null : { name: name.toLowerCase(), args: args.trim() };
}

/** Throws `unknown_command`. */
export function findCommand(name: string, commands: readonly SlashCommand[]): SlashCommand {
  const found = commands.find((command) => command.name === name || command.aliases?.includes(name));
  if (found === undefined) throw new MoiraiError('unknown_command', `there is no command /${name}`);
  return found;
}

/** Whether a command changes what later messages find; one that does not exist changes nothing. */
export function isOrdered(name: string, commands: readonly SlashCommand[]): boolean {
  return commands.some((command) => command.ordered && (command.name === name || command.aliases?.includes(name)));
}

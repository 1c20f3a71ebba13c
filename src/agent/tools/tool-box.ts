import type { AgentConfig, McpServerConfig } from '../../config/config.ts';
import { delegateTool } from './delegate.ts';
import { fetchUrlTool } from './fetch-url.ts';
import { listFilesTool } from './list-files.ts';
import { McpServers } from './mcp-servers.ts';
import type { Log, ToolPorts } from './ports.ts';
import { readFileTool } from './read-file.ts';
import { rememberTool } from './remember.ts';
import { CommandRunner } from './run-command.ts';
import { scheduleTool } from './schedule.ts';
import { searchSessionsTool } from './search-sessions.ts';
import { sendMessageTool } from './send-message.ts';
import type { AgentTool } from './tool.ts';
import { writeFileTool } from './write-file.ts';

export interface ToolBoxSettings {
  readonly agent: Pick<AgentConfig, 'workspace' | 'allowCommands'>;
  readonly mcp: { readonly servers: Readonly<Record<string, McpServerConfig>> };
  readonly ports: ToolPorts;
  readonly log: Log;
}

/** Every tool there is, and what they hold open. */
export class ToolBox {
  readonly #own: readonly AgentTool[];
  readonly #commands: CommandRunner;
  readonly #mcp: McpServers;
  readonly #more: () => readonly AgentTool[];
  #offered: ReadonlyMap<string, AgentTool> = new Map();

  constructor({ agent, mcp, ports, log }: ToolBoxSettings) {
    const { workspace, allowCommands } = agent;
    this.#commands = new CommandRunner({ workspace, allowCommands, environment: ports.environment ?? {} });
    this.#mcp = new McpServers(mcp.servers, log);
    this.#more = ports.more ?? (() => []);
    this.#own = [
      ...[readFileTool(workspace), writeFileTool(workspace), listFilesTool(workspace)],
      ...[this.#commands.tool, fetchUrlTool(ports.web ?? {})],
      ...toolsOfPorts(ports),
    ];
  }

  /**
   * By name, in an order that never depends on which server answered first: the list is part of what is cached. While the
   * tools are the same, so is the map: what was made of it can be kept.
   */
  async tools(): Promise<ReadonlyMap<string, AgentTool>> {
    const all = new Map([...(await this.#mcp.tools()), ...this.#more(), ...this.#own].map((tool) => [tool.name, tool]));
    const sorted = [...all.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
    const before = [...this.#offered.values()];
    const same = before.length === sorted.length && before.every((tool, i) => tool === sorted[i]);
    if (!same) this.#offered = new Map(sorted.map((tool) => [tool.name, tool]));
    return this.#offered;
  }

  forget(sessionId: string): Promise<void> {
    return this.#commands.forget(sessionId);
  }

  async close(): Promise<void> {
    await Promise.all([this.#commands.close(), this.#mcp.close()]);
  }
}

function toolsOfPorts({ searchSessions, remember, sendMessage, delegate, schedule }: ToolPorts): AgentTool[] {
  return [
    ...(searchSessions ? [searchSessionsTool(searchSessions)] : []),
    ...(remember ? [rememberTool(remember)] : []),
    ...(sendMessage ? [sendMessageTool(sendMessage)] : []),
    ...(delegate ? [delegateTool(delegate)] : []),
    ...(schedule ? [scheduleTool(schedule)] : []),
  ];
}

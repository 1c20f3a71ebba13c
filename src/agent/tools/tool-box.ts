import type { AgentConfig, Config } from '../../config/config.ts';
import { fetchUrlTool } from './fetch-url.ts';
import { listFilesTool, readFileTool, writeFileTool } from './file-tools.ts';
import { McpServer } from './mcp-server.ts';
import { portTools } from './port-tools.ts';
import type { Log, ToolPorts } from './ports.ts';
import { CommandRunner } from './run-command.ts';
import type { SandboxSettings } from './sandbox.ts';
import type { AgentTool, ToolSet } from './tool.ts';

export interface ToolBoxSettings {
  readonly agent: SandboxSettings & Pick<AgentConfig, 'workspace' | 'allowCommands'>;
  readonly mcp: Config['mcp'];
  readonly ports: ToolPorts;
  readonly log: Log;
}

/** Every tool there is, and what they hold open. */
export class ToolBox {
  readonly #own: readonly AgentTool[];
  readonly #commands: CommandRunner;
  readonly #mcp: readonly McpServer[];
  readonly #more: () => readonly AgentTool[];
  #offered: ToolSet = new Map();

  constructor({ agent, mcp, ports, log }: ToolBoxSettings) {
    const { workspace } = agent;
    const workspaceOf = ports.workspaceOf ?? (async () => workspace.folder);
    this.#commands = new CommandRunner({ ...agent, workspaceOf, environment: ports.environment ?? {} });
    this.#mcp = Object.entries(mcp.servers).map(([name, server]) => new McpServer(name, server, log));
    this.#more = ports.more ?? (() => []);
    this.#own = [
      readFileTool(workspaceOf),
      writeFileTool(workspaceOf),
      listFilesTool(workspaceOf),
      this.#commands.tool,
      fetchUrlTool(ports.web ?? {}),
      ...portTools(ports, workspaceOf),
    ];
  }

  /**
   * By name, in an order that never depends on which server answered first: the list is part of what is cached. While the
   * tools are the same, so is the map: what was made of it can be kept.
   */
  async tools(): Promise<ToolSet> {
    const ofServers = await Promise.all(this.#mcp.map((server) => server.tools()));
    const all = new Map([...ofServers.flat(), ...this.#more(), ...this.#own].map((tool) => [tool.name, tool]));
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
    await Promise.all([this.#commands, ...this.#mcp].map((held) => held.close()));
  }
}

import { createRunner } from '../../agent/create-runner.ts';
import type { AgentRunner } from '../../agent/runner.ts';
import type { ToolPorts } from '../../agent/tools/ports.ts';
import type { Config } from '../../config/config.ts';
import type { Logger } from '../../log/logger.ts';

export function makeRunner({ model, agent, mcp }: Config, ports: ToolPorts, log: Logger): AgentRunner {
  return createRunner({ model, agent, mcp }, ports, log);
}

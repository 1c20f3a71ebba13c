import { sandboxProblem } from '../agent/tools/sandbox.ts';
import type { Config } from '../config/config.ts';

/** What is valid in a configuration and may mean something else than its writer thinks, as whole sentences. */
export async function configNotes({ agent }: Config): Promise<readonly string[]> {
  const bare = agent.allowCommands.filter((pattern) => /^\S+$/.test(pattern.trim()));
  const commands = bare.map(
    (name) =>
      `agent.allow_commands: "${name}" allows that command without any arguments; "${name} ..." allows arguments too, and "${name} **" options as well.`,
  );
  return agent.sandbox === 'off' ? commands : [...commands, await sandboxNote(agent)];
}

async function sandboxNote(agent: Config['agent']): Promise<string> {
  const problem = await sandboxProblem(agent);
  if (problem !== null) return `agent.sandbox: ${problem}. No command is run until it works, or until it is off.`;
  return `agent.sandbox: ${agent.sandbox} works here, ${agent.sandboxNetwork ? 'with' : 'without'} the network.`;
}

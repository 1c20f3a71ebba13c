import type { Config } from '../config/config.ts';

/** What is valid in a configuration and may mean something else than its writer thinks, as whole sentences. */
export function configNotes({ agent }: Config): readonly string[] {
  const bare = agent.allowCommands.filter((pattern) => /^\S+$/.test(pattern.trim()));
  return bare.map(
    (name) =>
      `agent.allow_commands: "${name}" allows that command without any arguments; "${name} ..." allows arguments too, and "${name} **" options as well.`,
  );
}

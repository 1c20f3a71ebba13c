import { CommandRunner } from '../../../src/agent/tools/run-command.ts';

/** A process that runs one command as the agent does, to be killed in the middle of it. */
const [, , workspace = '', command = '', sandbox = 'off'] = process.argv;
const { signal } = new AbortController();
const { tool } = new CommandRunner({
  workspaceOf: async () => workspace,
  allowCommands: [],
  environment: {},
  sandbox: sandbox === 'bubblewrap' ? sandbox : 'off',
  sandboxNetwork: false,
});
await tool.run({ command }, { sessionId: 's1', turnId: 't1', platform: 'cli', userId: null, signal });

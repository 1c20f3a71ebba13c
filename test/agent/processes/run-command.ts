import { CommandRunner } from '../../../src/agent/tools/run-command.ts';

/** A process that runs one command as the agent does, to be killed in the middle of it. */
const [, , workspace = '', command = ''] = process.argv;
const { signal } = new AbortController();
const { tool } = new CommandRunner({ workspaceOf: async () => workspace, allowCommands: [], environment: {} });
await tool.run({ command }, { sessionId: 's1', turnId: 't1', platform: 'cli', userId: null, signal });

import type { AgentTool } from '../agent/tools/tool.ts';
import type { Engine } from '../engine/engine.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { Session } from '../lifecycle/session.ts';
import type { MemoryManager } from './memory-manager.ts';
import type { MemoryTool } from './provider.ts';
import { scopeOf } from './scope.ts';

/** What the model may do with its memory. On whose behalf is the session's to say, never the model's. */
export function memoryTools(memory: MemoryManager, engine: Engine): readonly AgentTool[] {
  return memory.tools.map((tool) => agentTool(tool, (sessionId) => rememberedSession(memory, engine, sessionId)));
}

function agentTool(
  { name, description, inputSchema, run }: MemoryTool,
  find: (sessionId: string) => Promise<Session>,
): AgentTool {
  return {
    ...{ name, description, inputSchema, parallelSafe: false },
    dangerous: () => null,
    run: async (args, { sessionId, signal }) => {
      return run(args, { scope: scopeOf(await find(sessionId)), sessionId, signal });
    },
  };
}

/** The session that asks. Tools are offered to all of them, since the list of tools is part of what is cached. */
export async function rememberedSession(memory: MemoryManager, engine: Engine, sessionId: string): Promise<Session> {
  const session = await engine.store.read('findSession', { idOrPrefix: sessionId });
  if (memory.wants(session)) return session;
  throw new MoiraiError('tool_failed', `nothing is remembered for conversations of the kind ${session.kind}`);
}

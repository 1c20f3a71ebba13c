import type { MemorySession } from '../memory/provider.ts';
import type { CommandCall } from '../turns/command.ts';
import { toldOfMemory } from '../turns/transcripts.ts';
import { type CommandDeps, type CommandSpec, record } from './command.ts';

export const MEMORY_COMMAND: CommandSpec = {
  name: 'memory',
  takes: '[TEXT]',
  summary: 'show what is remembered here, or what a text would bring back',
  async run(call, deps) {
    await record(call, deps);
    const { names } = deps.memory;
    if (names.length === 0) return 'Nothing is remembered here beyond a session.';
    const whose = call.session ?? strangerOf(call);
    if (call.args === '') return `Memory: ${names.join(', ')}\n${await toldHere(whose, call, deps)}`;
    return (await deps.memory.prefetch(call.args, whose)) ?? 'That brings nothing back.';
  },
};

/** Whoever has no session yet: memory belongs to the person, or to the conversation. */
function strangerOf({ conversation: { key, kind, platform, userId } }: CommandCall): MemorySession {
  return { id: '', key, kind, platform, userId };
}

async function toldHere(whose: MemorySession, { session }: CommandCall, deps: CommandDeps): Promise<string> {
  const known = await deps.memory.known(whose);
  if (session === null) return known ?? NOTHING;
  const told = toldOfMemory(await deps.transcripts.of(session), session.id);
  const isOld = told !== undefined && told !== known;
  return `${known ?? NOTHING}${isOld ? '\n(This session began with something else; /new begins one with this.)' : ''}`;
}

const NOTHING = 'Nothing is told at the start of a session here.';

/** The contract of memory, under the names that authors of plugins know it by. */
export type {
  EndedSession as MemoryEndedSession,
  FinishedTurn as MemoryFinishedTurn,
  MemoryProvider as PluginMemoryProvider,
  MemoryScope,
  MemoryTool as PluginMemoryTool,
  SessionSwitch as MemorySessionSwitch,
  TurnStart as MemoryTurn,
} from '../../memory/provider.ts';

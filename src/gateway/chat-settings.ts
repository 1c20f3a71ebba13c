import type { Config } from '../config/config.ts';

/** What a chat platform is told about people and groups. */
export interface ChatSettings {
  readonly allow: readonly string[];
  /** In groups only what is said to the agent is heard. */
  readonly requireMention: boolean;
  /** Words that count as its name. */
  readonly wakeWords: readonly string[];
}

/** A platform of a plugin has no settings of its own here. */
const DEFAULTS: ChatSettings = { allow: [], requireMention: true, wakeWords: [] };

export function chatSettings({ platforms }: Pick<Config, 'platforms'>, name: string): ChatSettings {
  const settings = Object.entries(platforms).find(([each]) => each === name)?.[1];
  return settings !== undefined && 'allow' in settings ? settings : DEFAULTS;
}

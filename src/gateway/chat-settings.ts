import type { ChatConfig, Config } from '../config/config.ts';

/** What a chat platform is told about people and groups; a platform of a plugin has nothing of its own. */
export function chatSettings({ platforms }: Pick<Config, 'platforms'>, name: string): Omit<ChatConfig, 'enabled'> {
  if (name === 'telegram' || name === 'discord' || name === 'slack') return platforms[name];
  return { allow: [], requireMention: true, wakeWords: [] };
}

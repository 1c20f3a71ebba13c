import type { DisplayConfig, DisplaySettings } from '../config/config.ts';
import { splitPlatformName } from '../lifecycle/session-key.ts';
import type { Abilities } from '../platforms/platform.ts';

/** What people on a platform see of a turn, with nothing left open. */
export type Display = { readonly [Key in keyof DisplaySettings]: NonNullable<DisplaySettings[Key]> };

/** The most particular word counts: the platform's setting, the general one, what the platform can do, no. */
export function displayFor(config: DisplayConfig, platform: string, abilities: Abilities): Display {
  const particular = config.platforms[platform] ?? config.platforms[splitPlatformName(platform).platform];
  const configured = <Key extends keyof DisplaySettings>(key: Key): DisplaySettings[Key] =>
    particular?.[key] ?? config[key];
  const canGrow = abilities.edit || abilities.streams === true;
  return {
    // What a platform cannot do, no setting makes it do.
    streaming: canGrow && (configured('streaming') ?? true),
    typing: abilities.typing && (configured('typing') ?? true),
    reactions: abilities.reactions && (configured('reactions') ?? false),
    toolProgress: canGrow ? (configured('toolProgress') ?? 'off') : 'off',
    footer: configured('footer') ?? false,
  };
}

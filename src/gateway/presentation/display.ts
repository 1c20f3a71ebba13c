import type { DisplayConfig, DisplaySettings } from '../../config/config.ts';
import type { Abilities } from '../../platforms/platform.ts';

/** What people on a platform see of a turn, with nothing left open. */
export type Display = { readonly [Key in keyof DisplaySettings]: NonNullable<DisplaySettings[Key]> };

/** The most particular word counts: the platform's setting, the general one, what the platform can do, no. */
export function displayFor(config: DisplayConfig, platform: string, abilities: Abilities): Display {
  const particular = config.platforms[platform];
  const said = <Key extends keyof DisplaySettings>(key: Key): DisplaySettings[Key] => particular?.[key] ?? config[key];
  return {
    // What a platform cannot do, no setting makes it do.
    streaming: abilities.edit && (said('streaming') ?? true),
    typing: abilities.typing && (said('typing') ?? true),
    reactions: abilities.reactions && (said('reactions') ?? false),
    toolProgress: abilities.edit ? (said('toolProgress') ?? 'off') : 'off',
    footer: said('footer') ?? false,
  };
}

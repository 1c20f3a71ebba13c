import type { Abilities, Place, Platform } from './platform.ts';
import type { Measure } from './split-text.ts';

/** What a platform can do at a place. */
export function abilitiesAt(platform: Platform, place: Place): Abilities {
  return platform.abilitiesAt?.(place) ?? platform.abilities;
}

/** How texts are split for a place: by what they count there once they are rendered. */
export function measureAt(platform: Platform, place: Place): Measure {
  const { maxText, counts, markdown } = abilitiesAt(platform, place);
  const { measure } = platform;
  return { maxText, counts, markdown, ...(measure === undefined ? {} : { rendered: measure.bind(platform) }) };
}

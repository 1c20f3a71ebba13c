import type { HATS } from './sheet.ts';

/** What people of a platform wear. */
export interface Attire {
  readonly cloak: readonly [light: string, middle: string, dark: string];
  readonly hat: (typeof HATS)[number];
}

const SKY: Attire['cloak'] = ['#8fd0ff', '#3f9be8', '#2367ad'];
const LEAF: Attire['cloak'] = ['#9fe0a0', '#4fae68', '#2d7547'];
const VIOLET: Attire['cloak'] = ['#c4a8ff', '#8f6fd6', '#5f459c'];
const OCHRE: Attire['cloak'] = ['#f5cf85', '#d0943c', '#8f5f22'];
const INDIGO: Attire['cloak'] = ['#a9b3ff', '#6472e0', '#414aa6'];
const ROSE: Attire['cloak'] = ['#ffb0cf', '#dc6499', '#9a3d69'];
const TEAL: Attire['cloak'] = ['#8fe3da', '#36a9a0', '#21726f'];
const BRICK: Attire['cloak'] = ['#ffb39c', '#d76a4c', '#98412c'];

export const ATTIRES: readonly Attire[] = [
  { cloak: SKY, hat: 'plume' },
  { cloak: LEAF, hat: 'visor' },
  { cloak: VIOLET, hat: 'antenna' },
  { cloak: OCHRE, hat: 'clock' },
  { cloak: INDIGO, hat: 'bow' },
  { cloak: ROSE, hat: 'none' },
  { cloak: TEAL, hat: 'plume' },
  { cloak: BRICK, hat: 'none' },
];

const KNOWN: Readonly<Record<string, number>> = { telegram: 0, cli: 1, api: 2, cron: 3, discord: 4, slack: 5, web: 6 };

/** FNV-1a over the first letters: the same today and tomorrow, on every machine. */
export function hash(text: string): number {
  let sum = 0x811c9dc5;
  for (let at = 0; at < text.length && at < 64; at++) sum = Math.imul(sum ^ text.charCodeAt(at), 0x01000193);
  return sum >>> 0;
}

/** The place in `ATTIRES` of what a platform wears. */
export const variantOf = (platform: string): number =>
  Object.hasOwn(KNOWN, platform) ? (KNOWN[platform] as number) : hash(platform) % ATTIRES.length;

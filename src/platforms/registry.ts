import { createHash } from 'node:crypto';
import { type FieldValues, type Section, section, type ValueOf } from '../settings/declaration.ts';
import { readSettings } from '../settings/read-settings.ts';
import { enabled, type people } from './chat-settings.ts';
import type { DeclaredPlatform, PlatformDescriptor } from './descriptor.ts';
import { discord, slack, webhook } from './not-served.ts';
import type { Platform, PlatformRuntime } from './platform.ts';
import { telegram } from './telegram/descriptor.ts';

/** The platforms that this version serves. A new one is its own folder and its line here. */
const SERVED = [telegram] as const;

const NOT_SERVED = [discord, slack, webhook] as const;

/** What stands under `platforms` in the configuration. */
export const platformSettings = section({
  ...settingsByName([...SERVED, ...NOT_SERVED]),
  web: section({ enabled: { ...enabled, help: 'the web chat and the dashboard, at the port of the gateway' } }),
});

export type PlatformsConfig = ValueOf<typeof platformSettings>;

/** A platform that is to be there, not loaded yet. */
export interface ConfiguredPlatform {
  readonly name: string;
  /** Names what only one process may use at a time, without telling it. */
  readonly credential: string;
  make(runtime: PlatformRuntime): Promise<Platform>;
}

interface WithPlatforms {
  readonly platforms: PlatformsConfig;
}

/** Those that are enabled and have what they need. Nothing of a platform that is off is ever loaded. */
export function configuredPlatforms({ platforms }: WithPlatforms): ConfiguredPlatform[] {
  return SERVED.filter((each) => isConfigured(each, platforms)).map((descriptor: PlatformDescriptor) => {
    const settings = settingsOf(descriptor, platforms);
    const digest = createHash('sha256').update(descriptor.credential(settings)).digest('hex');
    return {
      name: descriptor.name,
      credential: `${descriptor.name}:${digest.slice(0, 32)}`,
      make: (runtime) => descriptor.make(settings, runtime),
    };
  });
}

/** A platform that somebody configured and that does not serve anybody. */
export interface IdlePlatform {
  readonly name: string;
  readonly why: string;
  readonly hint: string;
}

/** Those that this version does not serve, and those that lack their token. One that is turned off is none of them. */
export function notServed({ platforms }: WithPlatforms): IdlePlatform[] {
  const lacking = SERVED.filter((each) => isGiven(each, platforms) && !isConfigured(each, platforms)).map(
    ({ name }) => {
      const hint = `Give platforms.${name}.token, or set platforms.${name}.enabled to false.`;
      return { name, why: 'configured without a token, so it is off', hint };
    },
  );
  const unknown = NOT_SERVED.filter((each) => isGiven(each, platforms)).map(({ name }) => {
    return { name, why: 'configured, not served by this version', hint: `Set platforms.${name}.enabled to false.` };
  });
  return [...lacking, ...unknown];
}

/** Whether anything was set for a platform that is not turned off. */
function isGiven({ name, settings }: DeclaredPlatform<string, Section>, platforms: PlatformsConfig): boolean {
  const given = platforms[name as keyof PlatformsConfig];
  const unset = readSettings(settings, {}, { home: '', variable: () => null }).value;
  return given.enabled && JSON.stringify(given) !== JSON.stringify(unset);
}

/** Every name that the configuration knows. */
export const PLATFORM_NAMES: readonly string[] = Object.keys(platformSettings.fields);

/** The settings of a chat platform about people and groups. */
export type ChatSettings = FieldValues<typeof people>;

/** Of a platform that the configuration does not know: one that a plugin brings. */
const DEFAULTS: ChatSettings = { allow: [], requireMention: true, wakeWords: [] };

export function chatSettings({ platforms }: WithPlatforms, name: string): ChatSettings {
  const settings = Object.entries(platforms).find(([each]) => each === name)?.[1];
  return settings !== undefined && 'allow' in settings ? settings : DEFAULTS;
}

function isConfigured(platform: PlatformDescriptor, platforms: PlatformsConfig): boolean {
  return platform.isConfigured(settingsOf(platform, platforms));
}

/** Of whatever type the platform's own settings are. */
function settingsOf({ name }: DeclaredPlatform, platforms: PlatformsConfig): never {
  return platforms[name as keyof PlatformsConfig] as never;
}

function settingsByName<D extends { readonly name: string; readonly settings: unknown }>(descriptors: readonly D[]) {
  return Object.fromEntries(descriptors.map(({ name, settings }) => [name, settings])) as {
    readonly [Each in D as Each['name']]: Each['settings'];
  };
}

import { createHash } from 'node:crypto';
import { MoiraiError } from '../errors/moirai-error.ts';
import { platformName, splitPlatformName } from '../lifecycle/session-key.ts';
import { type Section, section, setting, type ValueOf } from '../settings/declaration.ts';
import { flag } from '../settings/kinds.ts';
import { readSettings } from '../settings/read-settings.ts';
import { type CommonValues, hasOwnCredential, settingsOfAccount } from './chat-settings.ts';
import type { PlatformDescriptor, PlatformSetup } from './descriptor.ts';
import type { Platform, PlatformRuntime } from './platform.ts';
import { secretVariable } from './secret-variable.ts';
import { SERVED } from './served.ts';

const allPlatforms = section({
  ...settingsByName(SERVED),
  web: section({ enabled: setting(flag, true, 'the web chat and the dashboard, at the port of the gateway') }),
});

type AllPlatforms = typeof allPlatforms;
/** Named, because a type that is written out wherever it is used becomes too long for the compiler. */
export interface PlatformSettings extends AllPlatforms {}

/** What stands under `platforms` in the configuration. */
export const platformSettings: PlatformSettings = allPlatforms;

export type PlatformsConfig = ValueOf<PlatformSettings>;

/** An account of a platform that is to be there, not loaded yet. */
export interface ConfiguredPlatform {
  /** `telegram`, or `telegram@work` for an account that has a name. */
  readonly name: string;
  /** Names what only one process may use at a time, without telling it; null where there is nothing of that kind. */
  readonly credential: string | null;
  make(runtime: PlatformRuntime): Promise<Platform>;
}

interface WithPlatforms {
  readonly platforms: PlatformsConfig;
  /** What paths among the settings were read from. */
  readonly home: string;
}

/** Those that are enabled and have what they need. Nothing of a platform that is off is ever loaded. */
export function configuredPlatforms(config: WithPlatforms): ConfiguredPlatform[] {
  return wholeAccounts(config).flatMap((account) => (account.sameAs === null ? account : []));
}

/** Those that lack nothing; `sameAs` names the one before it that uses the same credential. */
function wholeAccounts(config: WithPlatforms): (ConfiguredPlatform & { readonly sameAs: string | null })[] {
  const users = new Map<string, string>();
  return accountsOf(config).flatMap(({ descriptor, account, settings }) => {
    if (!isOn(settings) || descriptor.missing(settings).length > 0) return [];
    const secret = descriptor.credential(settings);
    const credential = secret === null ? null : `${descriptor.name}:${digestOf(secret)}`;
    const name = nameOf(descriptor, account);
    const sameAs = credential === null ? null : (users.get(credential) ?? null);
    if (credential !== null && sameAs === null) users.set(credential, name);
    return { name, credential, sameAs, make: (runtime: PlatformRuntime) => descriptor.make(settings, runtime) };
  });
}

function digestOf(secret: string): string {
  return createHash('sha256').update(secret).digest('hex').slice(0, 32);
}

/** A platform that somebody configured and that does not serve anybody. */
export interface IdlePlatform {
  readonly name: string;
  readonly why: string;
  readonly hint: string;
}

/** Those that were configured and lack what they need, or have what another one uses. One that is turned off is none of them. */
export function notServed(config: WithPlatforms): IdlePlatform[] {
  const twice = wholeAccounts(config).flatMap(({ name, sameAs }) =>
    sameAs === null
      ? []
      : { name, why: `has the same credential as ${sameAs}, so it is off`, hint: 'Remove one of them.' },
  );
  return [...lacking(config), ...twice];
}

function lacking(config: WithPlatforms): IdlePlatform[] {
  return accountsOf(config).flatMap(({ descriptor, account, settings, given }) => {
    const missing = descriptor.missing(settings);
    if (!given || !isOn(settings) || missing.length === 0) return [];
    const path = `platforms.${descriptor.name}${account === null ? '' : `.accounts.${account}`}`;
    const keys = missing.map((key) => `${path}.${key}`).join(' and ');
    return {
      name: nameOf(descriptor, account),
      why: `configured without ${missing.join(' and ')}, so it is off`,
      hint: `Give ${keys}, or set ${path}.enabled to false.`,
    };
  });
}

interface Account {
  readonly descriptor: PlatformDescriptor;
  readonly account: string | null;
  /** Of whatever type the platform's own settings are. */
  readonly settings: never;
  /** Something was set for it. */
  readonly given: boolean;
}

/** Every account that could be there: of each platform the one without a name, and those that have one. */
function accountsOf({ platforms, home }: WithPlatforms): Account[] {
  return SERVED.flatMap((descriptor): Account[] => {
    const { settings: declared, name } = descriptor;
    const values = platforms[name];
    const names = Object.keys('accounts' in values ? values.accounts : {});
    const unset = readSettings(declared, {}, { home, variable: () => null }).value;
    const isGiven = JSON.stringify({ ...values, accounts: {} }) !== JSON.stringify({ ...unset, accounts: {} });
    return [null, ...names].map((account) => ({
      descriptor,
      account,
      settings: settingsOfAccount(declared, values, account) as never,
      // Where there are others, what is set for the platform may be meant for them.
      given: account !== null || (isGiven && (names.length === 0 || hasOwnCredential(declared, values))),
    }));
  });
}

function isOn(settings: { readonly enabled: boolean }): boolean {
  return settings.enabled;
}

function nameOf({ name: platform }: PlatformDescriptor, account: string | null): string {
  return platformName({ platform, ...(account === null ? {} : { account }) });
}

/** Every name that the configuration knows. */
export const PLATFORM_NAMES: readonly string[] = Object.keys(platformSettings.fields);

/** A platform that can be added, and how. */
export interface AddablePlatform extends PlatformSetup {
  readonly name: string;
  readonly label: string;
  /** What else can be set. */
  readonly keys: readonly string[];
  /** Where a secret is kept that stands under a key; null for what is no secret. */
  secretVariable(key: string): string | null;
}

export const ADDABLE_PLATFORMS: readonly AddablePlatform[] = SERVED.map(({ name, label, setup, settings }) => ({
  name,
  label,
  keys: Object.keys(settings.fields).filter((key) => key !== 'accounts'),
  secretVariable: (key) => secretVariable(name, settings, key),
  ...setup,
}));

/**
 * An account of a platform with settings as they would stand in the file of a home, to be tried before they are written.
 * Throws `bad_input` with all that is wrong with them.
 */
export function makeUntried(name: string, written: object, home: string, runtime: PlatformRuntime): Promise<Platform> {
  const descriptor: PlatformDescriptor<string, Section> | undefined = SERVED.find((each) => each.name === name);
  if (descriptor === undefined) throw new MoiraiError('platform_unknown', `there is no platform ${name}`);
  const { value, issues } = readSettings(descriptor.settings, written, { home, variable: () => null });
  const problems = issues.map(({ path, fault }) => `${path.join('.')} is ${fault}`);
  const settings = (issues.length === 0 ? settingsOfAccount(descriptor.settings, value, null) : {}) as never;
  if (issues.length === 0) problems.push(...descriptor.missing(settings).map((key) => `${key} is missing`));
  if (problems.length > 0) throw new MoiraiError('bad_input', problems.join('; '));
  return descriptor.make(settings, runtime);
}

/** The settings of a chat platform about people and groups. */
export type ChatSettings = Pick<CommonValues, 'allow' | 'requireMention' | 'wakeWords'>;

/** Of a platform that the configuration does not know: one that a plugin brings. */
const DEFAULTS: ChatSettings = { allow: [], requireMention: true, wakeWords: [] };

/** Of a platform or an account of one, by its name. */
export function chatSettings({ platforms }: Pick<WithPlatforms, 'platforms'>, name: string): ChatSettings {
  const { platform, account } = splitPlatformName(name);
  const descriptor = SERVED.find((each) => each.name === platform);
  if (descriptor === undefined) return DEFAULTS;
  const settings = settingsOfAccount(descriptor.settings, platforms[descriptor.name], account ?? null);
  return { ...DEFAULTS, ...settings };
}

function settingsByName<D extends { readonly name: string; readonly settings: unknown }>(descriptors: readonly D[]) {
  return Object.fromEntries(descriptors.map(({ name, settings }) => [name, settings])) as {
    readonly [Each in D as Each['name']]: Each['settings'];
  };
}

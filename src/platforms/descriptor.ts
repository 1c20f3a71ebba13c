import type { ValueOf } from '../settings/declaration.ts';
import type { Abilities, Platform, PlatformRuntime } from './platform.ts';

/**
 * A platform that this version serves: all that others know of it before it runs. Whatever it is made of is loaded by
 * `make`, so that a platform that is off costs nothing.
 */
export interface PlatformDescriptor<Name extends string = string, Settings = unknown, Values = never> {
  readonly name: Name;
  /** As people write it. */
  readonly label: string;
  /** What stands under `platforms.<name>`. Which of it is secret, and which variables give it, the settings say. */
  readonly settings: Settings;
  readonly abilities: Abilities;
  /** The keys that it cannot do without and that are not given. */
  missing(settings: Values): readonly string[];
  /** The secret that only one process may use at a time; null where several may receive beside each other. */
  credential(settings: Values): string | null;
  make(settings: Values, runtime: PlatformRuntime): Promise<Platform>;
  /** How somebody gets what it needs, for `moirai platforms add`. */
  readonly setup: PlatformSetup;
}

export interface PlatformSetup {
  /** What to click where, in order, before anything is asked. */
  readonly steps: readonly string[];
  /** What is asked then. */
  readonly asks: readonly PlatformQuestion[];
  /** What is left to do once it works. */
  readonly afterwards: readonly string[];
}

export interface PlatformQuestion {
  /** The key under `platforms.<name>`, with dots for those inside others. */
  readonly key: string;
  readonly question: string;
  /** Typed without being shown, and kept in the file of secrets under the variable, not in the configuration. */
  readonly secret?: { readonly variable: string };
  /** May be left empty. */
  readonly optional?: true;
  /** Whether it is asked at all, by the answers so far; always unless said. */
  readonly when?: (answers: ReadonlyMap<string, string>) => boolean;
}

/** A descriptor with the types of its settings; those of further accounts are none of its business. */
export function describePlatform<const Name extends string, S>(
  descriptor: PlatformDescriptor<Name, S, Omit<ValueOf<S>, 'accounts'>>,
) {
  return descriptor;
}

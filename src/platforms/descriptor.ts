import type { ValueOf } from '../settings/declaration.ts';
import type { Abilities, Platform, PlatformRuntime } from './platform.ts';

/** A platform as the configuration knows it; without its types, one of any platform. */
export interface DeclaredPlatform<Name extends string = string, Settings = unknown> {
  readonly name: Name;
  /** What stands under `platforms.<name>`. Which of it is secret, and which variables give it, the settings say. */
  readonly settings: Settings;
}

/**
 * A platform that this version serves: all that others know of it before it runs. Whatever it is made of is loaded by
 * `make`, so that a platform that is off costs nothing.
 */
export interface PlatformDescriptor<Name extends string = string, Settings = unknown, Values = never>
  extends DeclaredPlatform<Name, Settings> {
  /** Whether it is enabled and has what it needs. */
  isConfigured(settings: Values): boolean;
  readonly abilities: Abilities;
  /** The secret that only one process may use at a time. */
  credential(settings: Values): string;
  make(settings: Values, runtime: PlatformRuntime): Promise<Platform>;
}

/** A descriptor with the types of its settings. */
export function describePlatform<const Name extends string, S>(descriptor: PlatformDescriptor<Name, S, ValueOf<S>>) {
  return descriptor;
}

/** The same for a platform whose settings are known although nothing serves it. */
export function declarePlatform<const Name extends string, S>(declared: DeclaredPlatform<Name, S>) {
  return declared;
}

import type { Engine } from '../engine/engine.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { Logger } from '../log/logger.ts';
import type { Inbox, Place, Platform, PlatformRuntime, PlatformState } from '../platforms/platform.ts';
import type { ConfiguredPlatform } from '../platforms/registry.ts';
import type { Timers } from '../queue/timers.ts';
import type { CredentialHolder } from './credential-store.ts';

export interface PlatformManagerDeps {
  readonly engine: Engine;
  readonly timers: Timers;
  readonly log: Logger;
  readonly configured: readonly ConfiguredPlatform[];
  /** Those of plugins: already made, and without a credential that we know of. */
  readonly brought: () => readonly Platform[];
  readonly inboxOf: (platform: Platform, changed: () => void) => Inbox;
  /** One can be used: what waited for it can be sent. */
  readonly ready: (platform: Platform) => void;
}

export interface PlatformStatus extends PlatformState {
  /** With its account: `telegram`, `telegram@work`. */
  readonly name: string;
}

/** How often a credential that somebody else holds is asked for again. */
const STANDBY_MS = 2000;
const RETRY_MS = 30_000;
const COMMANDS_MS = 30_000;
const PLACES_MS = 60_000;

/** The chat platforms of a gateway. Each comes up by itself; one that does not keeps nobody else from it. */
export class PlatformManager {
  readonly #deps: PlatformManagerDeps;
  readonly #platforms: readonly ManagedPlatform[];
  /** Platforms of plugins that we listen to. */
  readonly #fromPlugins = new WeakSet<Platform>();
  #listening = false;

  constructor(deps: PlatformManagerDeps) {
    this.#deps = deps;
    this.#platforms = deps.configured.map((configured) => new ManagedPlatform(configured, deps));
  }

  /** Does not wait for any of them. */
  start(): void {
    for (const managed of this.#platforms) managed.start();
    this.#listening = true;
    this.refresh();
  }

  /** Listens to the platforms of plugins that are new. */
  refresh(): void {
    if (!this.#listening) return;
    for (const platform of this.#deps.brought()) {
      if (this.#fromPlugins.has(platform)) continue;
      this.#fromPlugins.add(platform);
      const changed = (): void => undefined;
      platform.start(this.#deps.inboxOf(platform, changed)).then(
        () => this.#deps.ready(platform),
        (error: unknown) => this.#deps.log.warn('a platform did not come up', { platform: platform.name, error }),
      );
    }
  }

  /** Those that can send. */
  get open(): readonly Platform[] {
    return [
      ...this.#platforms.flatMap(({ platform }) => (platform === null ? [] : [platform])),
      ...this.#deps.brought(),
    ];
  }

  get names(): readonly string[] {
    return [...this.#platforms, ...this.#deps.brought()].map(({ name }) => name);
  }

  find(name: string): Platform | null {
    return this.open.find((platform) => platform.name === name) ?? null;
  }

  status(): PlatformStatus[] {
    return [...this.#platforms, ...this.#deps.brought()].map(({ name, state }) => ({ name, ...state }));
  }

  /** Tells the clients of a platform which commands there are. */
  offerCommands(platform: Platform, commands: readonly { name: string; summary: string }[]): void {
    platform.offerCommands?.(commands, AbortSignal.timeout(COMMANDS_MS)).catch((error: unknown) => {
      this.#deps.log.warn('the commands were not made known', { platform: platform.name, error });
    });
  }

  /** Hands on the places that a platform knows. */
  async listPlaces(platform: Platform, listed: (places: readonly Place[]) => Promise<void>): Promise<void> {
    try {
      const places = (await platform.listPlaces?.(AbortSignal.timeout(PLACES_MS))) ?? [];
      await listed(places);
    } catch (error) {
      this.#deps.log.warn('the places of a platform were not listed', { platform: platform.name, error });
    }
  }

  /** Takes nothing more in. What they hold stays open: replies still leave. */
  async stopReceiving(): Promise<void> {
    this.#listening = false;
    const broughtByPlugins = this.#deps.brought().filter((platform) => this.#fromPlugins.has(platform));
    await Promise.all([...this.#platforms, ...broughtByPlugins].map((managed) => managed.stop()));
  }

  /** Lets the next one have the credentials. */
  async leave(): Promise<void> {
    await Promise.all(this.#platforms.map((managed) => managed.release()));
  }
}

/** One platform: its credential, and itself once the credential is ours. */
class ManagedPlatform {
  readonly name: string;
  platform: Platform | null = null;
  readonly #configured: ConfiguredPlatform;
  readonly #deps: PlatformManagerDeps;
  #away: PlatformState = { phase: 'stopped', problem: null, lastSuccessAt: null };
  #held = false;
  #stopped = false;
  #cancel: () => void = () => undefined;
  #coming: Promise<void> = Promise.resolve();
  #reported = '';

  constructor(configured: ConfiguredPlatform, deps: PlatformManagerDeps) {
    this.name = configured.name;
    this.#configured = configured;
    this.#deps = deps;
  }

  get state(): PlatformState {
    return this.platform?.state ?? this.#away;
  }

  start(): void {
    this.#coming = this.#come();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#coming;
    await this.platform?.stop();
  }

  async release(): Promise<void> {
    const { credential } = this.#configured;
    if (!this.#held || credential === null) return;
    const { instance, store } = this.#deps.engine;
    await store.write('releaseCredential', { instance, credential });
  }

  async #come(): Promise<void> {
    if (this.#stopped) return;
    const { engine, log } = this.#deps;
    try {
      const { credential } = this.#configured;
      if (credential !== null) {
        const holder = await engine.store.write('takeCredential', { context: engine.commandContext(), credential });
        if (holder !== null) return this.#standBy(holder);
      }
      this.#held = true;
      await this.#open();
    } catch (thrown) {
      const error = MoiraiError.wrap(thrown);
      const { message: problem } = error;
      if (error.code === 'bad_input') {
        log.error('a platform cannot come up with these settings', { platform: this.name, error });
        this.#away = { phase: 'failed', problem, lastSuccessAt: null };
        this.#say('failed', problem);
        return;
      }
      log.error('a platform did not come up; trying again', { platform: this.name, error });
      this.#wait({ phase: 'degraded', problem, lastSuccessAt: null }, RETRY_MS);
    }
  }

  async #open(): Promise<void> {
    const { log, inboxOf } = this.#deps;
    const platform = await this.#configured.make(this.#runtime());
    this.platform = platform;
    await platform.start(inboxOf(platform, () => this.#changed(platform)));
    log.info('platform started', { platform: this.name });
  }

  #standBy({ name, host, pid, instance }: CredentialHolder): void {
    const who = `${name ?? instance} (process ${pid} on ${host})`;
    const problem = `another gateway uses the same credential: ${who}; this one takes over when it is gone`;
    if (this.#away.phase !== 'standby') this.#deps.log.warn('a platform stands by', { platform: this.name, problem });
    this.#say('standby', problem);
    this.#wait({ phase: 'standby', problem, lastSuccessAt: null }, STANDBY_MS);
  }

  #wait(state: PlatformState, ms: number): void {
    this.#away = state;
    if (this.#stopped) return;
    this.#cancel = this.#deps.timers.after(ms, () => this.start());
  }

  #changed(platform: Platform): void {
    const { phase, problem } = platform.state;
    this.#say(phase, problem);
    if (phase === 'connected') this.#deps.ready(platform);
  }

  /** Each change once: a server that is away is not told about every second. */
  #say(phase: string, problem: string | null): void {
    const line = `${phase}: ${problem ?? ''}`;
    if (line === this.#reported) return;
    this.#reported = line;
    // What is wrong the platform has said in its own words.
    this.#deps.log.info('platform changed', { platform: this.name, phase });
    this.#announce(phase, problem);
  }

  /** For those who read the log. What cannot be written now is in the next change, and in `/ready` all the time. */
  #announce(phase: string, problem: string | null): void {
    const { engine, log } = this.#deps;
    const { lastSuccessAt } = this.state;
    const last_success_at = lastSuccessAt === null ? null : new Date(lastSuccessAt).toISOString();
    const fields = { name: this.name, phase, problem, last_success_at };
    engine.announce({ type: 'gateway:platform', fields }).catch((error: unknown) => {
      log.warn('how a platform stands was not written', { platform: this.name, error });
    });
  }

  #runtime(): PlatformRuntime {
    const { timers, log, engine } = this.#deps;
    const { store } = engine;
    const platform = this.name;
    return {
      name: platform,
      keep: (name, value) =>
        store.write('keepPlatformState', { context: engine.commandContext(), platform, name, value }),
      recall: (name) => store.read('platformState', { platform, name }),
      now: Date.now,
      random: Math.random,
      after: (ms, callback) => timers.after(ms, callback),
      warn: (message, fields) => log.warn(message, { platform: this.name, ...fields }),
    };
  }
}

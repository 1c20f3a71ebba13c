import { randomBytes } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { Engine } from '../engine/engine.ts';
import { describeThisProcess } from '../engine/host.ts';
import { type Ids, timeSortedIds } from '../engine/ids.ts';
import { findDead } from '../engine/instance.ts';
import { openStore } from '../store/open-store.ts';
import type { Store } from '../store/port.ts';
import type { Reaped } from '../store/transactions/reaping.ts';
import { type StoreSettings, storeSettingsOf } from './configuration.ts';
import { packageVersion } from './package-version.ts';
import { makeHome, type Settings } from './settings.ts';

/**
 * One command's time in the store. It begins with what the dead left, so that what the command shows is true; it takes
 * part under an instance of its own only once something is to be written; and it leaves nothing behind.
 */
export class StoreSession {
  readonly store: Store;
  readonly settings: Settings;
  readonly configured: StoreSettings;
  readonly ids: Ids = timeSortedIds(Date.now, () => randomBytes(4).readUInt32LE() / 2 ** 32);
  readonly #host = describeThisProcess();
  #engine: Promise<Engine> | null = null;

  private constructor(store: Store, settings: Settings, configured: StoreSettings) {
    this.store = store;
    this.settings = settings;
    this.configured = configured;
  }

  /** Opens the store. `threads` is for a command that stays: it must hear signals while the store is busy. */
  static async begin(settings: Settings, options: { threads?: boolean } = {}): Promise<StoreSession> {
    makeHome(settings.home);
    const configured = await storeSettingsOf(settings);
    const inline = options.threads !== true;
    const store = await openStore(configured.url, settings.home, configured.rules, { inline });
    return new StoreSession(store, settings, configured);
  }

  /** Settles what dead processes left; null when there was nothing. Only looks, as long as there is nothing. */
  async settle(): Promise<Reaped | null> {
    const dead = await findDead(this.store, this.#host, null);
    if (dead === null) return null;
    const tookPart = this.#engine !== null;
    const engine = await this.engine();
    const reaped = await reapAll(engine, () => findDead(this.store, this.#host, engine.instance));
    // A command that only reads may stay for hours without a heartbeat: it must not be listed as a live instance.
    if (!tookPart) await this.leave();
    return reaped;
  }

  /** The part this process takes, from the first call on. */
  engine(): Promise<Engine> {
    this.#engine ??= Engine.boot({
      store: this.store,
      ids: this.ids,
      instance: { id: this.ids.command().replace(/^cmd/, 'ins'), name: null, version: packageVersion(), ...this.#host },
      leaseTtlMs: this.configured.leaseTtlMs,
    });
    return this.#engine;
  }

  /** Takes no part any longer; the store stays open. */
  async leave(): Promise<void> {
    const engine = await this.#engine?.catch(() => null); // It never booted: there is nothing to give back.
    this.#engine = null;
    await engine?.stop();
  }

  async end(): Promise<void> {
    try {
      await this.leave();
    } finally {
      await this.store.close();
    }
  }
}

/** Does something in the store, behind what the dead left, and leaves in order. */
export async function openStoreSession<T>(
  settings: Settings,
  action: (session: StoreSession) => Promise<T>,
  options: { threads?: boolean } = {},
): Promise<T> {
  const here = await StoreSession.begin(settings, options);
  try {
    await here.settle();
    return await action(here);
  } finally {
    await here.end();
  }
}

/**
 * Reaps until nothing is left. What a process held when it was killed may be held a moment longer: by a server that has not
 * noticed yet, or by another reaper at work.
 */
async function reapAll(engine: Engine, findMore: () => Promise<string[] | null>): Promise<Reaped> {
  let reaped = await engine.reap();
  for (let tries = SETTLE_TRIES; tries > 0 && (await findMore()) !== null; tries--) {
    await sleep(SETTLE_WAIT_MS);
    const more = await engine.reap();
    reaped = {
      lost: [...reaped.lost, ...more.lost],
      reaped: [...reaped.reaped, ...more.reaped],
      interrupted: [...reaped.interrupted, ...more.interrupted],
      released: [...reaped.released, ...more.released],
      more: more.more,
    };
  }
  return reaped;
}

const SETTLE_TRIES = 10;
const SETTLE_WAIT_MS = 50;

import { setTimeout as sleep } from 'node:timers/promises';
import type { Scheduler } from '../../src/cron/scheduler.ts';
import { Engine } from '../../src/engine/engine.ts';
import { describeThisProcess } from '../../src/engine/host.ts';
import { timeSortedIds } from '../../src/engine/ids.ts';
import { isLeaseLost } from '../../src/engine/instance.ts';
import { Upkeep } from '../../src/engine/upkeep.ts';
import { hasCode, MoiraiError } from '../../src/errors/moirai-error.ts';
import { Dispatcher, type NewSubscriber } from '../../src/events/dispatcher.ts';
import type { Outbox } from '../../src/outbound/outbox.ts';
import { processTimers } from '../../src/queue/timers.ts';
import type { Store } from '../../src/store/port.ts';
import { type JournalLine, type LineFile, type SentReply, sentFile } from './journal.ts';
import { HEARTBEAT_MS, LEASE_TTL_MS, type WorkerTask } from './settings.ts';
import type { Faults } from './subscribers.ts';
import { makeOutbox, makeScheduler } from './work.ts';

interface Office {
  readonly engine: Engine;
  readonly upkeep: Upkeep;
  readonly dispatcher: Dispatcher;
  readonly outbox: Outbox;
  readonly scheduler: Scheduler;
}

/** What a process does to take part: an engine with its upkeep and its dispatcher, and a new one when the lease is lost. */
export class Tenure {
  readonly store: Store;
  /** Engines of this process whose lease is lost for ever. */
  readonly lost: Engine[] = [];
  readonly #task: WorkerTask;
  readonly #journal: LineFile<JournalLine>;
  readonly #subscribers: readonly NewSubscriber[];
  readonly #faults: Faults;
  readonly #sent: LineFile<SentReply>;
  readonly #ids = timeSortedIds(Date.now, Math.random);
  readonly #leavings = new Set<Promise<void>>();
  #office: Office | null = null;
  #boots = 0;
  #renewing: Promise<void> | null = null;

  private constructor(
    store: Store,
    task: WorkerTask,
    journal: LineFile<JournalLine>,
    subscribers: readonly NewSubscriber[],
    faults: Faults,
  ) {
    this.store = store;
    this.#faults = faults;
    this.#sent = sentFile(task.directory, task.worker, task.incarnation);
    this.#task = task;
    this.#journal = journal;
    this.#subscribers = subscribers;
  }

  static async begin(
    store: Store,
    task: WorkerTask,
    journal: LineFile<JournalLine>,
    subscribers: readonly NewSubscriber[],
    faults: Faults,
  ): Promise<Tenure> {
    const tenure = new Tenure(store, task, journal, subscribers, faults);
    await tenure.#enterOffice();
    return tenure;
  }

  /** The engine of the present instance. While a successor boots it is the lost one, which is refused everything. */
  get engine(): Engine {
    if (this.#office === null) throw new TypeError('nobody is in office');
    return this.#office.engine;
  }

  /** An engine turned out to be over: resolves when its successor is in office. */
  async renew(lost: Engine): Promise<void> {
    if (this.#office?.engine !== lost) return;
    this.#renewing ??= this.#succeed().finally(() => {
      this.#renewing = null;
    });
    await this.#renewing;
  }

  /** Leaves in order. */
  async stop(): Promise<void> {
    await this.#renewing;
    await Promise.all(this.#leavings);
    if (this.#office === null) return;
    const { dispatcher, upkeep, engine, outbox, scheduler } = this.#office;
    await scheduler.pause();
    await scheduler.idle(10_000);
    await outbox.stop();
    await dispatcher.stop();
    await upkeep.stop();
    this.#journal.write({ line: 'stopping', instance: engine.instance });
    await engine.stop();
  }

  /** True for what is nobody's fault: a lease that ran out, or a server that was crashed on purpose. */
  excuses(thrown: unknown): boolean {
    if (isLeaseLost(thrown)) return true;
    return this.#task.serverCrashes && hasCode(thrown, 'store_unreachable', 'store_outcome_unknown');
  }

  async #succeed(): Promise<void> {
    if (this.#office !== null) this.#leave(this.#office);
    await this.#enterOffice();
  }

  /** The successor does not wait for handlers that hang. */
  #leave(office: Office): void {
    const left = this.#close(office).finally(() => this.#leavings.delete(left));
    this.#leavings.add(left);
  }

  async #close({ dispatcher, upkeep, engine, outbox, scheduler }: Office): Promise<void> {
    await Promise.all([dispatcher.stop(), upkeep.stop(), outbox.stop(), scheduler.pause()]);
    // A write may find the lease run out that a heartbeat under way renews: only a last heartbeat tells for sure.
    try {
      await engine.beat();
    } catch (thrown) {
      if (isLeaseLost(thrown)) this.lost.push(engine);
      else if (!this.excuses(thrown)) throw thrown;
    }
  }

  async #enterOffice(): Promise<void> {
    for (;;) {
      try {
        this.#office = await this.#boot();
        return;
      } catch (thrown) {
        if (!this.excuses(thrown)) throw thrown;
        await sleep(50);
      }
    }
  }

  async #boot(): Promise<Office> {
    const { worker, incarnation } = this.#task;
    const id = `ins_${worker}_${incarnation}_${++this.#boots}`;
    this.#journal.write({ line: 'booted', instance: id });
    const engine = await Engine.boot({
      store: this.store,
      ids: this.#ids,
      instance: { id, name: null, version: 'torture', ...describeThisProcess() },
      leaseTtlMs: LEASE_TTL_MS,
    });
    const failed = (error: MoiraiError): void => this.#failed(engine, error);
    const upkeep = new Upkeep(engine, {
      ...{ heartbeatMs: HEARTBEAT_MS, timers: processTimers, wallClock: Date.now, expire: true, failed },
      lost: () => this.#lost(engine),
    });
    const dispatcher = new Dispatcher({ ...engine.queueDeps(failed), store: this.store });
    const outbox = makeOutbox(engine, Math.random, this.#faults, this.#sent);
    const wrong = (what: string): void => this.#journal.write({ line: 'wrong', what });
    const scheduler = makeScheduler(engine, Math.random, wrong);
    const office = { engine, upkeep, dispatcher, outbox, scheduler };
    try {
      await upkeep.start();
      outbox.refresh();
      scheduler.start();
      for (const subscriber of this.#subscribers) await dispatcher.subscribe(subscriber);
      await engine.announce({ type: 'gateway:startup', fields: { platforms: [], reason: null } });
    } catch (thrown) {
      this.#leave(office);
      throw thrown;
    }
    return office;
  }

  /** An engine that is lost while it boots is not in office yet; it fails to boot, and whoever boots it hears of it. */
  #lost(engine: Engine): void {
    void this.renew(engine);
  }

  #failed(engine: Engine, error: MoiraiError): void {
    if (isLeaseLost(error)) this.#lost(engine);
    else if (!this.excuses(error)) {
      this.#journal.write({ line: 'wrong', what: `in the background: ${error.code}: ${error.message}` });
    }
  }
}

/** Any thrown value in one line. */
export function describeError(thrown: unknown): string {
  const error = MoiraiError.wrap(thrown);
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : '';
  return `${error.code}: ${error.message}${cause}`;
}

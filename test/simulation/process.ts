import { Scheduler } from '../../src/cron/scheduler.ts';
import { Engine } from '../../src/engine/engine.ts';
import type { Hold } from '../../src/engine/holdings.ts';
import { timeSortedIds } from '../../src/engine/ids.ts';
import { Upkeep } from '../../src/engine/upkeep.ts';
import { MoiraiError } from '../../src/errors/moirai-error.ts';
import { Dispatcher } from '../../src/events/dispatcher.ts';
import type { MoiraiEvent } from '../../src/lifecycle/events.ts';
import type { SessionWithTurns } from '../../src/lifecycle/session.ts';
import type { EndReason, SessionKind } from '../../src/lifecycle/states.ts';
import type { Logger } from '../../src/log/logger.ts';
import { ArrivedReplies } from '../../src/outbound/arrived-replies.ts';
import { Outbox } from '../../src/outbound/outbox.ts';
import { SendFailure } from '../../src/platforms/platform.ts';
import type { Timers } from '../../src/queue/timers.ts';
import type { ConversationRef } from '../../src/store/transactions/conversations.ts';
import type { DeliveryToMake } from '../../src/store/transactions/deliveries.ts';
import { FaultyStore, type Trouble } from './faulty-store.ts';
import type { World } from './world.ts';

export const LEASE_MS = 2000;
const HEARTBEAT_MS = 500;
export const SUBSCRIBERS = ['steady', 'flaky'] as const;
/** What the races of a distributed workload answer; everything else is a defect. */
const EXPECTED = new Set([
  'lease_lost',
  'fenced',
  'illegal_move',
  'session_ended',
  'session_not_found',
  'turn_not_found',
  'subscriber_timeout',
  'subscriber_failed',
]);

/** One simulated process: the real engine, upkeep and dispatcher, and a workload that uses them at random. */
export class SimProcess {
  readonly name: string;
  readonly #world: World;
  readonly #store: FaultyStore;
  readonly #timers: Timers;
  #engine: Engine | null = null;
  /** The instance that it is, or boots as. */
  #instance = '';
  #upkeep: Upkeep | null = null;
  #dispatcher: Dispatcher | null = null;
  #outbox: Outbox | null = null;
  #scheduler: Scheduler | null = null;
  #alive = true;
  #resumed: Promise<void> = Promise.resolve();
  #resume: () => void = () => undefined;
  paused = false;
  readonly #attached = new Set<string>();
  /** Outlives its leases, as in a gateway that begins again in its process. */
  readonly #arrived = new ArrivedReplies();

  constructor(world: World, name: string) {
    this.#world = world;
    this.name = name;
    const gate = (): Promise<void> => this.#resumed;
    this.#store = new FaultyStore(world.store, world.time, world.random, world.mix, gate, (verb, args, value) =>
      world.history.applied(verb, args, value),
    );
    this.#timers = { elapsed: world.time.elapsed, after: (ms, callback) => this.#after(ms, callback) };
    void this.#boot();
    this.#work();
    this.#pickUp();
  }

  /** Dies on the spot: no timer fires, no answer arrives, whatever it was doing is never finished. */
  kill(): void {
    this.#alive = false;
    this.#store.crashed = true;
    this.#world.dead.add(this.#engine?.instance ?? '');
  }

  pause(): void {
    if (this.paused) return;
    this.paused = true;
    this.#resumed = new Promise((done) => {
      this.#resume = done;
    });
  }

  /** The store goes wrong for this process alone, which lives on. */
  set trouble(trouble: Trouble | null) {
    this.#store.trouble = trouble;
  }

  wakeUp(): void {
    this.paused = false;
    this.#resume();
  }

  #after(ms: number, callback: () => void): () => void {
    let cancelled = false;
    const cancel = this.#world.time.after(ms, () => {
      void this.#resumed.then(() => {
        if (this.#alive && !cancelled) callback();
      });
    });
    return () => {
      cancelled = true;
      cancel();
    };
  }

  async #boot(): Promise<void> {
    const { random, time } = this.#world;
    const id = this.#world.newInstance();
    this.#instance = id;
    const failed = (error: MoiraiError): void => this.#tolerate(error);
    try {
      const engine = await Engine.boot({
        store: this.#store,
        ids: timeSortedIds(time.now, random.next),
        instance: {
          ...{ id, name: this.name, version: 'sim', host: 'sim', bootId: 'boot', pidSpace: 'sim', pid: 1 },
          pidStarted: id,
        },
        leaseTtlMs: LEASE_MS,
        provenDead: (other) => this.#world.sameHost && this.#world.dead.has(other.id),
        retry: { timers: this.#timers, random: random.next, failed },
      });
      this.#engine = engine;
      const timers = this.#timers;
      this.#upkeep = new Upkeep(engine, {
        ...{ heartbeatMs: HEARTBEAT_MS, reapMs: 1000, timers, wallClock: time.now, failed, expire: true },
        lost: () => void this.#reboot(id),
      });
      const dispatcher = new Dispatcher({ ...engine.queueDeps(failed), store: this.#store });
      this.#dispatcher = dispatcher;
      const outbox = this.#makeOutbox(engine);
      const scheduler = this.#makeScheduler(engine);
      this.#outbox = outbox;
      this.#scheduler = scheduler;
      await this.#upkeep.start();
      outbox.refresh();
      scheduler.start();
      for (const name of SUBSCRIBERS) {
        await dispatcher.subscribe({
          name,
          events: name === 'steady' ? ['*'] : ['session:*', 'instance:lost'],
          handle: (event) => this.#handle(name, event),
          timeoutMs: 300,
          maxAttempts: 1000,
          concurrency: 4,
          from: 'start',
        });
      }
    } catch (thrown) {
      this.#tolerate(thrown);
      this.#after(200, () => void this.#reboot(id));
    }
  }

  /** The lease ran out, or the boot failed: a new instance takes this one's place in the same process. */
  async #reboot(instance: string): Promise<void> {
    if (this.#instance !== instance) return;
    const parts = [this.#upkeep, this.#dispatcher, this.#outbox];
    void this.#scheduler?.pause();
    if (this.#engine !== null) this.#world.dead.add(this.#engine.instance);
    this.#engine = null;
    this.#upkeep = null;
    this.#dispatcher = null;
    this.#outbox = null;
    this.#scheduler = null;
    this.#attached.clear();
    for (const part of parts) void part?.stop();
    await this.#boot();
  }

  async #handle(subscriber: (typeof SUBSCRIBERS)[number], event: MoiraiEvent): Promise<void> {
    const { random, time, history } = this.#world;
    if (subscriber === 'flaky' && this.#world.faults) {
      if (random.chance(0.15)) throw new TypeError('the subscriber does not feel like it');
      if (random.chance(0.05)) await new Promise(() => undefined);
    }
    if (random.chance(0.1)) await time.sleep(random.between(1, 50));
    // A dead process's subscriber receives nothing more.
    if (this.#alive) history.delivered(subscriber, event);
  }

  #tolerate(thrown: unknown): void {
    const error = MoiraiError.wrap(thrown);
    if (error.message.startsWith('simulated:')) return;
    if (!EXPECTED.has(error.code)) this.#world.history.violation(`${this.name}: ${error.code}: ${error.stack}`);
  }

  #work(): void {
    const { random } = this.#world;
    this.#after(random.between(20, 700), () => {
      const engine = this.#engine;
      if (engine !== null && this.#world.working) void this.#act(engine).catch((thrown) => this.#tolerate(thrown));
      this.#work();
    });
  }

  async #act(engine: Engine): Promise<void> {
    const { random } = this.#world;
    const conversation = this.#conversation();
    const dice = random.next();
    if (dice < 0.5) return this.#converse(engine, conversation);
    if (dice < 0.58) {
      await engine.reset(conversation, { slash: { command: 'new', args: '' } });
      return;
    }
    if (dice < 0.75) return this.#runAttached(engine);
    const sessionId = this.#world.history.anySession(random);
    if (sessionId === null) return;
    if (dice < 0.79) await engine.end(sessionId, { reason: random.pick(ENDINGS), trigger: 'api' });
    else if (dice < 0.805) await engine.suspend(sessionId);
    else if (dice < 0.82) await engine.release(sessionId);
    else if (dice < 0.86) await engine.touch(sessionId, random.pick(['user', 'system'] as const));
    else if (dice < 0.9) await engine.note(sessionId, { command: 'status', args: '' });
    else if (dice < 0.93) await engine.setTitle(sessionId, `title ${random.between(1, 9)}`);
    else if (dice < 0.97) {
      await engine.continueFrom(sessionId, random.pick(['resume', 'branch'] as const), { trigger: 'api' });
    } else await engine.background(sessionId, random.between(0, 1));
  }

  /** A message comes; whoever may, runs its turn. The same message may be delivered twice. */
  async #converse(engine: Engine, conversation: ConversationRef): Promise<void> {
    const { random, history } = this.#world;
    const originRef = history.messageRef(random);
    const by = random.chance(0.9) ? ('user' as const) : ('system' as const);
    const received = await engine.receive({ conversation, text: `message ${originRef}`, originRef, by });
    history.acknowledged(originRef);
    if (received.begun) {
      await this.#runTurn(engine, { sessionId: received.session.id, epoch: received.session.epoch }, received.turn.id);
    }
  }

  async #runTurn(engine: Engine, hold: Hold, turnId: string): Promise<void> {
    const { random, time } = this.#world;
    await time.sleep(random.chance(0.1) ? random.between(1000, 3500) : random.between(5, 400));
    await this.#resumed;
    if (!this.#alive) return;
    if (random.chance(0.1)) {
      const reason = random.pick(['restart', 'shutdown'] as const);
      await engine.interrupt(hold, reason);
      return;
    }
    if (random.chance(0.2)) {
      await engine.append(hold, [{ role: 'assistant', text: 'thinking', turnId }]);
    }
    const outcome = random.chance(0.9) ? 'done' : 'failed';
    const loaded = await engine.finish(hold, turnId, {
      ...{ outcome, response: 'answer', model: 'm', usage: { input: 1, output: 1 } },
      messages: [
        { role: 'user', text: 'question', turnId },
        { role: 'assistant', text: 'answer', turnId },
      ],
      deliveries: this.#replyIn(turnId),
    });
    await this.#next(engine, loaded);
  }

  /** A reply in one to three parts. */
  #replyIn(turnId: string): DeliveryToMake[] {
    const parts = this.#world.random.between(1, 3);
    return Array.from({ length: parts }, (_, i) => {
      const id = `${turnId}:${i}:${this.#world.newReply()}`;
      return { id, platform: SENDER, target: {}, text: id };
    });
  }

  #makeOutbox(engine: Engine): Outbox {
    const { random } = this.#world;
    return new Outbox({
      ...{ engine, log: SILENT, random: random.next, arrived: this.#arrived },
      observer: { tried: () => undefined, sent: () => undefined },
      senders: () => [{ name: SENDER, send: ({ text }) => this.#send(text) }],
    });
  }

  /** The platform is down now and then, refuses now and then, does not answer now and then, and takes its time. */
  async #send(text: string): Promise<null> {
    const { random, time, history } = this.#world;
    if (random.chance(0.3)) await time.sleep(random.between(1, 300));
    await this.#resumed;
    if (this.#world.faults && random.chance(0.1)) throw new SendFailure('simulated: down', 50, 'transient');
    if (this.#world.faults && random.chance(0.05)) throw new TypeError('simulated: a defect of the platform');
    if (this.#alive) history.sent(text);
    if (this.#world.faults && random.chance(0.05)) throw new SendFailure('simulated: no answer', 50, 'uncertain');
    return null;
  }

  #makeScheduler(engine: Engine): Scheduler {
    const { random } = this.#world;
    return new Scheduler({
      ...{ engine, log: SILENT, random: random.next, timers: this.#timers },
      mayRun: async () => true,
      promptOf: (job) => job.prompt,
      run: ({ session, turn }) => this.#runJob(engine, session.id, turn.id),
      skipped: async () => undefined,
      passedOver: async () => undefined,
    });
  }

  /** The turn of a run is done like any other that waits; its session ends when it is over. */
  async #runJob(engine: Engine, sessionId: string, turnId: string): Promise<void> {
    const { time } = this.#world;
    for (;;) {
      await time.sleep(300);
      await this.#resumed;
      if (!this.#alive || this.#engine !== engine) return;
      const turn = await engine.store.read('getTurn', { turnId }).catch(() => undefined);
      if (turn === null || turn?.state === 'over') break;
    }
    await engine.settle((context) => engine.end(sessionId, { reason: 'cron_complete', trigger: 'process' }, context));
  }

  async #next(engine: Engine, loaded: SessionWithTurns): Promise<void> {
    const turn = loaded.turns[0];
    if (turn === undefined || loaded.session.state === 'ended') return;
    const begun = await engine.begin(loaded.session.id, turn.id);
    await this.#runTurn(engine, { sessionId: begun.session.id, epoch: begun.session.epoch }, turn.id);
  }

  /** What a gateway does at its start and now and then: carry on with what waits and what was cut. */
  #pickUp(): void {
    this.#after(this.#world.random.between(800, 1600), () => {
      const engine = this.#engine;
      if (engine !== null) void this.#carryOn(engine).catch((thrown) => this.#tolerate(thrown));
      this.#pickUp();
    });
  }

  async #carryOn(engine: Engine): Promise<void> {
    const turns = await engine.store.read('unfinishedTurns', { limit: 20 });
    for (const turn of turns) {
      if (turn.state === 'running') continue;
      try {
        if ((await engine.rollOver(turn.sessionId)) !== null) continue;
        const loaded = await engine.begin(turn.sessionId, turn.id);
        const hold = { sessionId: loaded.session.id, epoch: loaded.session.epoch };
        void this.#runTurn(engine, hold, turn.id).catch((thrown) => this.#tolerate(thrown));
      } catch (thrown) {
        this.#tolerate(thrown);
      }
    }
    if (this.#world.working) return;
    await this.#releaseParked(engine);
    for (const { sessionId } of engine.holds) {
      const session = await engine.store.read('getSession', { sessionId });
      if (session !== null && session.background > 0) await engine.background(sessionId, 0);
    }
  }

  /** At the end of the day the operator lets everything go on. */
  async #releaseParked(engine: Engine): Promise<void> {
    const filter = { ...NO_FILTER, states: ['suspended'] };
    const { sessions } = await engine.store.read('listSessions', filter);
    for (const { id } of sessions) await engine.release(id).catch((thrown) => this.#tolerate(thrown));
  }

  /** A session that belongs to this process, with a child now and then. */
  async #runAttached(engine: Engine): Promise<void> {
    const { random, time } = this.#world;
    const kind = random.pick(['batch', 'cli'] as const);
    const session = await engine.start(this.#attachedConversation(kind));
    this.#attached.add(session.id);
    if (random.chance(0.3)) {
      // Whether the child starts or not, the parent's own end is owed.
      await engine
        .start(this.#attachedConversation('child'), { parentId: session.id, lineage: 'spawn' })
        .catch((thrown) => this.#tolerate(thrown));
    }
    await time.sleep(random.between(50, 2500));
    await this.#resumed;
    if (!this.#alive || !this.#attached.has(session.id)) return;
    const reason = kind === 'cli' ? 'cli_close' : random.pick(['batch_complete', 'batch_failed'] as const);
    const facts = { reason, trigger: 'process', epoch: session.epoch } as const;
    await engine.settle((context) => engine.end(session.id, facts, context));
  }

  #conversation(): ConversationRef {
    const chat = this.#world.random.between(1, 5);
    const key = `agent:main:telegram:dm:${chat}`;
    return { key, kind: 'chat', platform: 'telegram', userId: `u${chat}`, origin: { chat }, attached: false };
  }

  #attachedConversation(kind: SessionKind): ConversationRef {
    const key = `agent:main:${kind}:dm:${this.#world.random.between(1, 1e12)}`;
    return { key, kind, platform: kind, userId: null, origin: null, attached: true };
  }
}

/** Through which all replies leave. */
export const SENDER = 'telegram';
const quiet = (): undefined => undefined;
const SILENT: Logger = { debug: quiet, info: quiet, warn: quiet, error: quiet, child: () => SILENT };

const NO_FILTER = {
  ...{ kinds: [], reasons: [], platforms: [], key: null, user: null, text: null, since: null, limit: 500 },
  cursor: null,
};

const ENDINGS: readonly EndReason[] = ['api_close', 'admin_close', 'deleted', 'webhook_complete'];

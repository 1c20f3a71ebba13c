import { type ChildProcess, fork } from 'node:child_process';
import { closeSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Fault } from './plan.ts';
import type { FromWorker, ToWorker, WorkerTask } from './settings.ts';

const WORKER = new URL('./worker.ts', import.meta.url);
const BOOT_MS = 3000;
const READY_MS = 60_000;
const STOP_MS = 30_000;

interface Place {
  readonly worker: number;
  incarnation: number;
  process: WorkerProcess | null;
  /** The restart that is under way, if any. */
  restart: Promise<void>;
}

export interface FleetOptions {
  readonly task: Omit<WorkerTask, 'worker' | 'incarnation' | 'sweeper'>;
  readonly workers: number;
  /** Something happened that nobody asked for. */
  readonly wrong: (what: string) => void;
}

/** The processes under torture: starts them, kills them, pauses them, and starts them again. */
export class Fleet {
  readonly kills = { killed: 0, paused: 0 };
  readonly #options: FleetOptions;
  readonly #places: Place[];
  readonly #pauses = new Set<Promise<void>>();
  readonly #all = new Set<WorkerProcess>();
  #over = false;

  constructor(options: FleetOptions) {
    this.#options = options;
    this.#places = Array.from({ length: options.workers }, (_, worker) => {
      return { worker, incarnation: 0, process: null, restart: Promise.resolve() };
    });
  }

  start(): void {
    for (const place of this.#places) this.#spawn(place);
  }

  async suffer(fault: Exclude<Fault, { fault: 'server' }>): Promise<void> {
    if (fault.fault === 'all') {
      await Promise.all(this.#places.map((place) => this.#kill(place, fault.restartMs)));
      return;
    }
    const place = this.#places[fault.worker];
    if (place === undefined) return;
    if (fault.fault === 'pause') {
      const pause = this.#pause(place, fault).finally(() => this.#pauses.delete(pause));
      this.#pauses.add(pause);
      return;
    }
    // On a slow machine a process would die again and again before it did anything; the young ones are for that.
    await place.restart;
    await place.process?.heard('ready', BOOT_MS);
    await this.#kill(place, fault.fault === 'young' ? 0 : fault.restartMs);
    if (fault.fault !== 'young') return;
    await place.restart;
    await sleep(fault.ageMs);
    await this.#kill(place, fault.restartMs);
  }

  /** Faults are over: everybody is up and awake, has stopped working, and settles what is left. */
  async drain(): Promise<void> {
    await Promise.all(this.#pauses);
    await Promise.all(this.#places.map((place) => place.restart));
    await Promise.all(this.#living().map((living) => living.mustSay('ready', READY_MS)));
    for (const living of this.#living()) living.tell({ say: 'drain' });
    await Promise.all(this.#living().map((living) => living.mustSay('quiet', READY_MS)));
  }

  async stop(): Promise<void> {
    await Promise.all(this.#living().map((living) => living.stop()));
  }

  /** One more process, which only settles and delivers what the others left; runs until `settled` resolves. */
  async sweep(settled: () => Promise<void>): Promise<void> {
    const task = { ...this.#options.task, worker: this.#places.length, incarnation: 1, sweeper: true };
    const sweeper = this.#start(task);
    await sweeper.mustSay('quiet', READY_MS);
    await settled();
    await sweeper.stop();
  }

  /** Leaves no process behind, whatever happened. */
  async killAll(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#places.map((place) => place.restart));
    await Promise.all([...this.#all].map((one) => one.kill()));
  }

  #living(): WorkerProcess[] {
    return this.#places.flatMap(({ process }) => (process === null ? [] : [process]));
  }

  #spawn(place: Place): void {
    if (this.#over) return;
    place.incarnation++;
    place.process = this.#start({
      ...this.#options.task,
      worker: place.worker,
      incarnation: place.incarnation,
      sweeper: false,
    });
  }

  #start(task: WorkerTask): WorkerProcess {
    const started = new WorkerProcess(task, this.#options.wrong);
    this.#all.add(started);
    return started;
  }

  /** Kills who is in this place (and nobody else, if a victim is named), and starts another. */
  async #kill(place: Place, restartMs: number, victim?: WorkerProcess): Promise<void> {
    // One after the other: who is dead already is killed as soon as it lives again.
    const killing = place.restart.then(async () => {
      if (victim !== undefined && place.process !== victim) return false;
      if (place.process !== null) {
        await place.process.kill();
        this.#all.delete(place.process);
      }
      place.process = null;
      this.kills.killed++;
      return true;
    });
    place.restart = killing.then(async (killed) => {
      if (!killed) return;
      await sleep(restartMs);
      this.#spawn(place);
    });
    await killing;
  }

  async #pause(place: Place, fault: Extract<Fault, { fault: 'pause' }>): Promise<void> {
    await place.restart;
    const victim = place.process;
    if (victim === null) return;
    victim.signal('SIGSTOP');
    this.kills.paused++;
    await sleep(fault.forMs);
    // It may have been killed in its sleep; its successor is awake.
    if (place.process !== victim) return;
    if (fault.then === 'continue') victim.signal('SIGCONT');
    else await this.#kill(place, fault.restartMs, victim);
  }
}

/** One child process, and what it said. */
class WorkerProcess {
  readonly #child: ChildProcess;
  readonly #exited: Promise<void>;
  readonly #heard = new Map<FromWorker['say'], PromiseWithResolvers<void>>();
  readonly #wrong: (what: string) => void;
  readonly #name: string;
  #expected = false;

  constructor(task: WorkerTask, wrong: (what: string) => void) {
    this.#wrong = wrong;
    this.#name = `worker ${task.worker}, life ${task.incarnation}`;
    const errors = join(task.directory, `stderr-${task.worker}-${task.incarnation}.txt`);
    const fd = openSync(errors, 'a');
    this.#child = fork(WORKER, [JSON.stringify(task)], {
      execArgv: [],
      stdio: ['ignore', 'ignore', fd, 'ipc'],
      // Most of a short life is spent on compiling; the next one need not do it again.
      env: { ...process.env, NODE_OPTIONS: '', NODE_COMPILE_CACHE: join(task.directory, 'compiled') },
    });
    closeSync(fd);
    this.#child.on('message', ({ say }: FromWorker) => this.#said(say).resolve());
    this.#child.on('error', (error) => wrong(`${this.#name}: ${error.message}`)); // e.g. a message to the dead
    this.#exited = new Promise((exited) =>
      this.#child.once('exit', (code, signal) => {
        if (!this.#expected) {
          wrong(`${this.#name} died by itself (${signal ?? code}): ${readFileSync(errors, 'utf8').slice(-2000)}`);
        } else if (signal === null && code !== 0) {
          wrong(`${this.#name} did not end by itself after it had stopped`);
        }
        exited();
      }),
    );
  }

  signal(name: 'SIGSTOP' | 'SIGCONT'): void {
    this.#child.kill(name);
  }

  tell(order: ToWorker): void {
    if (this.#child.connected) this.#child.send(order);
  }

  /** Resolves when it said so, or is dead; false when it took longer than that. */
  async heard(what: FromWorker['say'], withinMs: number): Promise<boolean> {
    const said = Promise.race([this.#said(what).promise, this.#exited]).then(() => true);
    return Promise.race([said, sleep(withinMs, false, { ref: false })]);
  }

  /** The same, where being late is wrong. */
  async mustSay(what: FromWorker['say'], withinMs: number): Promise<void> {
    if (await this.heard(what, withinMs)) return;
    this.#wrong(`${this.#name} was not ${what} within ${withinMs / 1000} s`);
  }

  /** SIGKILL; nothing when it is dead already. */
  async kill(): Promise<void> {
    this.#expected = true;
    this.#child.kill('SIGKILL');
    await this.#exited;
  }

  async stop(): Promise<void> {
    this.#expected = true;
    this.tell({ say: 'stop' });
    const late = Symbol('late');
    const first = await Promise.race([this.#exited, sleep(STOP_MS, late, { ref: false })]);
    if (first !== late) return;
    this.#wrong(`${this.#name} did not stop within ${STOP_MS / 1000} s`);
    await this.kill();
  }

  #said(say: FromWorker['say']): PromiseWithResolvers<void> {
    const known = this.#heard.get(say) ?? Promise.withResolvers<void>();
    this.#heard.set(say, known);
    return known;
  }
}

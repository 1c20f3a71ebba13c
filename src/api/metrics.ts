import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import { Counter, Gauge, Registry } from 'prom-client';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { ApiParts } from './api.ts';

const FRESH_MS = 1000;
const RESOLUTION_MS = 20;
const STRAYS_MS = 1000;
/** Counting takes longer the more there is: then it rests for ten times as long, within reason. */
const REST_FACTOR = 10;
const MOST_REST_MS = 10_000;

/**
 * The figures for Prometheus, computed on request, once for all requests within a second or, where counting takes long,
 * within more. A part that cannot be computed is left out: figures matter most when something does not work.
 */
export class Metrics {
  readonly contentType = Registry.PROMETHEUS_CONTENT_TYPE;
  readonly #parts: ApiParts;
  readonly #registry = new Registry();
  readonly #gauges = new Map<string, Gauge<string>>();
  readonly #cpu = new Counter({
    name: 'process_cpu_seconds_total',
    help: 'Processor time used',
    registers: [this.#registry],
  });
  readonly #delays = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  #rendered: Promise<string> | null = null;
  #freshUntil = 0;

  constructor(parts: ApiParts) {
    this.#parts = parts;
    this.#delays.enable();
    parts.closing.addEventListener('abort', () => this.#delays.disable());
  }

  render(): Promise<string> {
    if (this.#rendered === null || performance.now() >= this.#freshUntil) {
      // No second count starts while one is under way.
      this.#freshUntil = Number.POSITIVE_INFINITY;
      this.#rendered = this.#compute();
    }
    return this.#rendered;
  }

  async #compute(): Promise<string> {
    const began = performance.now();
    const readings = [
      this.#sessions(),
      this.#subscribers(),
      this.#deliveries(),
      this.#strays(),
      this.#gateway(),
      this.#process(),
    ];
    for (const reading of await Promise.allSettled(readings)) {
      if (reading.status === 'fulfilled') continue;
      this.#parts.log.warn('some figures could not be computed', { error: MoiraiError.wrap(reading.reason) });
    }
    const now = performance.now();
    this.#freshUntil = now + Math.max(FRESH_MS, Math.min((now - began) * REST_FACTOR, MOST_REST_MS));
    const figures = await this.#parts.backend.figures?.render();
    return `${await this.#registry.metrics()}${figures ?? ''}`;
  }

  async #sessions(): Promise<void> {
    const { open, openOwned, openUnowned, ended } = await this.#parts.engine.store.read('stats', {});
    this.#set('moirai_sessions_open', 'Sessions that have not ended', open);
    this.#set('moirai_sessions_open_owned', 'Open sessions that somebody alive answers for', openOwned);
    this.#set('moirai_sessions_open_unowned', 'Open sessions that nobody alive answers for: must be 0', openUnowned);
    this.#setEach('moirai_sessions_ended', 'Sessions that have ended, by reason', 'reason', Object.entries(ended));
  }

  async #subscribers(): Promise<void> {
    const all = await this.#parts.engine.store.read('listSubscribers', {});
    const each = (name: string, help: string, value: (one: (typeof all)[number]) => number): void =>
      this.#setEach(
        name,
        help,
        'subscriber',
        all.map((one) => [one.name, value(one)]),
      );
    each('moirai_subscriber_lag', 'Events not delivered yet', (one) => one.lag);
    each('moirai_subscriber_dead_letters', 'Events given up', (one) => one.deadLetters);
    each('moirai_subscriber_failures', 'Failed attempts at what is pending', (one) => one.failures);
    each('moirai_subscriber_lanes', 'Conversations with events not delivered yet', (one) => one.lanes);
    each('moirai_subscriber_oldest_seconds', 'Age of the oldest event not delivered yet', ({ oldestPendingAt }) => {
      return oldestPendingAt === null ? 0 : Math.max(0, Date.now() - oldestPendingAt) / 1000;
    });
  }

  async #deliveries(): Promise<void> {
    const waiting = Object.entries(await this.#parts.engine.store.read('countDeliveries', {}));
    this.#setEach('moirai_deliveries_waiting', 'Replies that have not arrived yet', 'platform', waiting);
    const oldestMs = (await this.#parts.engine.store.read('oldestDelivery', {})) ?? 0;
    this.#set('moirai_deliveries_oldest_seconds', 'Age of the oldest reply that has not arrived yet', oldestMs / 1000);
  }

  /** It waits for writes that are under way; in trouble that may take long, and the other figures do not wait for it. */
  async #strays(): Promise<void> {
    const counted = this.#parts.engine.countStrays();
    const strays = await Promise.race([counted, delay(STRAYS_MS, null, { ref: false })]);
    if (strays !== null) this.#set('moirai_strays', 'Running in the store and in no process: must be 0', strays);
  }

  async #gateway(): Promise<void> {
    this.#platforms();
    this.#set('moirai_event_followers', 'Clients that follow the log', this.#parts.tail.followers);
    for (const [name, value] of Object.entries(await this.#parts.backend.gauges())) {
      const words = name.replaceAll('_', ' ');
      this.#set(`moirai_${name}`, `${words.charAt(0).toUpperCase()}${words.slice(1)} in this gateway`, value);
    }
  }

  #platforms(): void {
    const gauge = this.#gauge('moirai_platform_up', '1 while the platform is connected', ['platform', 'phase']);
    gauge.reset();
    for (const { name, phase } of this.#parts.backend.platforms?.() ?? []) {
      gauge.set({ platform: name, phase }, phase === 'connected' ? 1 : 0);
    }
  }

  async #process(): Promise<void> {
    const { rss, heapUsed, external } = process.memoryUsage();
    const { user, system } = process.cpuUsage();
    this.#set('moirai_info', 'Always 1; the label says which version runs', 1, { version: this.#parts.version });
    this.#cpu.reset();
    this.#cpu.inc((user + system) / 1e6);
    this.#set('process_resident_memory_bytes', 'Resident memory', rss);
    this.#set('process_start_time_seconds', 'When the process started', Date.now() / 1000 - process.uptime());
    this.#set('nodejs_heap_size_used_bytes', 'Heap in use', heapUsed);
    this.#set('nodejs_external_memory_bytes', 'Memory outside the heap', external);
    this.#lag();
  }

  /** How late the loop was since the last request. */
  #lag(): void {
    // What is measured is how long a timer took; how long it was set for is no delay.
    const seconds = (nanoseconds: number): number => Math.max(0, (nanoseconds || 0) / 1e9 - RESOLUTION_MS / 1000);
    this.#set('nodejs_eventloop_lag_mean_seconds', 'Mean delay of the event loop', seconds(this.#delays.mean));
    this.#set('nodejs_eventloop_lag_p99_seconds', '99th percentile of it', seconds(this.#delays.percentile(99)));
    this.#set('nodejs_eventloop_lag_max_seconds', 'Longest delay', seconds(this.#delays.max));
    this.#delays.reset();
  }

  #set(name: string, help: string, value: number, labels: Record<string, string> = {}): void {
    this.#gauge(name, help, Object.keys(labels)).set(labels, value);
  }

  #setEach(name: string, help: string, label: string, values: readonly (readonly [string, number])[]): void {
    const gauge = this.#gauge(name, help, [label]);
    gauge.reset();
    for (const [key, value] of values) gauge.set({ [label]: key }, value);
  }

  #gauge(name: string, help: string, labelNames: readonly string[]): Gauge<string> {
    const known = this.#gauges.get(name);
    if (known !== undefined) return known;
    const gauge = new Gauge({ name, help, labelNames: [...labelNames], registers: [this.#registry] });
    this.#gauges.set(name, gauge);
    return gauge;
  }
}

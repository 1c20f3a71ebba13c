import { join } from 'node:path';
import type { Dispatcher } from '../events/dispatcher.ts';
import type { Logger } from '../log/logger.ts';
import type { Timers } from '../queue/timers.ts';
import type { Store } from '../store/port.ts';
import type { Message } from '../store/transactions/messages.ts';
import { withoutGatewayLines } from '../turns/spoken-text.ts';
import { LiveProvider } from './live-provider.ts';
import { type DeliverySettings, memorySubscriber, subscriberName } from './memory-subscriber.ts';
import { type MemoryProvider, type MemorySession, type MemoryTool, wants } from './provider.ts';
import { scopeOf } from './scope.ts';

export interface MemoryOptions {
  readonly providers: readonly MemoryProvider[];
  /** The gateway's home: a provider's folder is `<home>/memory`. */
  readonly home: string;
  readonly store: Store;
  readonly dispatcher: Pick<Dispatcher, 'subscribe' | 'register' | 'leave'>;
  readonly timers: Timers;
  readonly log: Logger;
  /** How long a turn waits for what is remembered. */
  readonly prefetchMs?: number;
  readonly delivery?: Partial<DeliverySettings>;
  /** Whether this process tells the providers what happens (default). Else it waits for one that does. */
  readonly serves?: boolean;
}

const PREFETCH_MS = 1500;
const COMPRESS_MS = 5000;
const REMEMBER_MS = 10_000;
const SHUTDOWN_MS = 2000;
/** What is recalled must not crowd out what is being said. */
const MAX_RECALLED_CHARS = 8000;
const MAX_BLOCKS = 1000;

/**
 * The providers of a gateway, behind deadlines: none of them can fail a turn, or hold one up for longer than
 * `prefetchMs`. What they have to hear for certain reaches them through the log.
 */
export class MemoryManager {
  readonly #live: readonly LiveProvider[];
  readonly #options: MemoryOptions;
  /** What each session was told first: it must stay the same to the byte, so that servers know the prompt again. */
  readonly #blocks = new Map<string, Promise<string | null>>();

  constructor(options: MemoryOptions) {
    const { providers, home, timers, log } = options;
    this.#options = options;
    const context = { folder: join(home, 'memory') };
    this.#live = providers.map((provider) => new LiveProvider(provider, context, timers, log));
  }

  /** Starts to tell the providers what happens. Does not wait for them: one that is down catches up later. */
  async begin(): Promise<void> {
    const { log, store, dispatcher, delivery, serves = true } = this.#options;
    for (const live of this.#live) {
      void live.ready().catch((error: unknown) => {
        log.warn('a memory is not ready; trying again', { provider: live.provider.name, error });
      });
      const subscriber = memorySubscriber(live, store, delivery);
      if (subscriber !== null) await (serves ? dispatcher.subscribe(subscriber) : dispatcher.register(subscriber));
    }
  }

  /** What the model may do with its memory; of two tools with one name, the first counts. */
  get tools(): readonly MemoryTool[] {
    return toolsOf(this.#live);
  }

  get providers(): readonly MemoryProvider[] {
    return this.#options.providers;
  }

  /** Whether a provider remembers sessions of this kind. */
  wants({ kind }: Pick<MemorySession, 'kind'>): boolean {
    return this.#live.some(({ provider }) => wants(provider, kind));
  }

  /** Whether a fact about this session, or about any at all, would be kept. */
  canRemember(session?: MemorySession): boolean {
    const live = session === undefined ? this.#live : this.#for(session);
    return live.some(({ provider }) => provider.remember !== undefined);
  }

  /** What the model is told about memory, the same for as long as the session lives; null for nothing. */
  systemPromptBlock(session: MemorySession): Promise<string | null> {
    const known = this.#blocks.get(session.id);
    if (known !== undefined) return known;
    const block = this.known(session);
    if (this.#blocks.size >= MAX_BLOCKS) this.#blocks.delete(this.#blocks.keys().next().value ?? '');
    this.#blocks.set(session.id, block);
    return block;
  }

  /** What a session that began now would be told. */
  known(session: MemorySession): Promise<string | null> {
    return this.#askAll('systemPromptBlock', session, PREFETCH_MS, (provider, signal) =>
      provider.systemPromptBlock?.(scopeOf(session), signal),
    );
  }

  /** What is remembered that matters for a person's words; null for nothing, and when it takes too long. */
  async prefetch(text: string, session: MemorySession): Promise<string | null> {
    if (text.trim() === '') return null;
    const ms = this.#options.prefetchMs ?? PREFETCH_MS;
    const found = await this.#askAll('prefetch', session, ms, (provider, signal) =>
      provider.prefetch?.(text, scopeOf(session), signal),
    );
    return found === null ? null : `Remembered from before, as far as it may matter now:\n${found}`;
  }

  /** A turn begins. It does not wait for what the providers make of it. */
  turnStarted(session: MemorySession, turn: { readonly turnId: string; readonly text: string }): void {
    const start = { scope: scopeOf(session), sessionId: session.id, ...turn };
    for (const live of this.#for(session)) {
      const { provider } = live;
      if (provider.onTurnStart === undefined) continue;
      void live.ask('onTurnStart', PREFETCH_MS, (signal) => provider.onTurnStart?.(start, signal));
    }
  }

  /** What a summary of these messages must not lose; null for nothing. */
  beforeCompress(session: MemorySession, messages: readonly Message[]): Promise<string | null> {
    return this.#askAll('onPreCompress', session, COMPRESS_MS, (provider, signal) =>
      provider.onPreCompress?.(messages, scopeOf(session), signal),
    );
  }

  /** Keeps a fact on request; false when no provider keeps facts. Throws when it was not kept. */
  async remember(fact: string, session: MemorySession): Promise<boolean> {
    const live = this.#for(session).find(({ provider }) => provider.remember !== undefined);
    if (live === undefined) return false;
    await live.hear(() => live.provider.remember?.(fact, scopeOf(session), AbortSignal.timeout(REMEMBER_MS)));
    return true;
  }

  /** A session is over: what it was told first is not needed any more. */
  forget(sessionId: string): void {
    this.#blocks.delete(sessionId);
  }

  /** Stops telling the providers, which keep their place in the log, and lets them close what they hold. */
  async stop(): Promise<void> {
    const { dispatcher } = this.#options;
    await Promise.all(this.#live.map(({ provider }) => dispatcher.leave(subscriberName(provider))));
    await Promise.all(this.#live.map((live) => live.shutdown(SHUTDOWN_MS)));
  }

  #for({ kind }: MemorySession): readonly LiveProvider[] {
    return this.#live.filter(({ provider }) => wants(provider, kind));
  }

  async #askAll(
    what: 'systemPromptBlock' | 'prefetch' | 'onPreCompress',
    session: MemorySession,
    ms: number,
    call: (provider: MemoryProvider, signal: AbortSignal) => Promise<string | null> | string | null | undefined,
  ): Promise<string | null> {
    const asked = this.#for(session).filter(({ provider }) => provider[what] !== undefined);
    const texts = await Promise.all(
      asked.map((live) => live.ask(what, ms, async (signal) => (await call(live.provider, signal)) ?? null)),
    );
    const joined = texts.filter((text) => text !== null && text.trim() !== '').join('\n\n');
    // Whoever had it remembered, it stands where the gateway says who speaks.
    return joined === '' ? null : withoutGatewayLines(joined.slice(0, MAX_RECALLED_CHARS).toWellFormed());
  }
}

/** A tool may be called before its provider was ready. */
function toolsOf(providers: readonly LiveProvider[]): MemoryTool[] {
  const byName = new Map<string, MemoryTool>();
  for (const live of providers) {
    for (const tool of live.provider.tools ?? []) {
      const { name, description, inputSchema } = tool;
      const run: MemoryTool['run'] = async (args, context) => {
        await live.ready();
        return tool.run(args, context);
      };
      if (!byName.has(name)) byName.set(name, { name, description, inputSchema, run });
    }
  }
  return [...byName.values()];
}

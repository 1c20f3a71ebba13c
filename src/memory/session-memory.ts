import { effectiveRows } from '../agent/prompt.ts';
import type { AgentRunner, SummarisedRow } from '../agent/runner.ts';
import type { ToolPorts } from '../agent/tools/ports.ts';
import type { AgentTool, Asker } from '../agent/tools/tool.ts';
import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { Dispatcher, NewSubscriber } from '../events/dispatcher.ts';
import { RemovedSubscribers } from '../events/removed-subscribers.ts';
import type { Session } from '../lifecycle/session.ts';
import type { Logger } from '../log/logger.ts';
import { processTimers, repeat } from '../queue/timers.ts';
import type { Message, MessageToAppend } from '../store/transactions/messages.ts';
import { type Transcripts, toldOfMemory } from '../turns/transcripts.ts';
import { MemoryManager } from './memory-manager.ts';
import { REVIEW_SUBSCRIBER, reviewSubscriber } from './memory-review.ts';
import { subscriberName } from './memory-subscriber.ts';
import type { MemoryProvider, MemoryTool } from './provider.ts';
import { scopeOf } from './scope.ts';

export interface MemoryDeps {
  readonly config: Config;
  readonly engine: Engine;
  readonly dispatcher: Dispatcher;
  readonly transcripts: Transcripts;
  readonly log: Logger;
  readonly providers: readonly MemoryProvider[];
  /** Whether this process delivers what the log has for them: else it is left to one that does. */
  readonly primary: boolean;
  readonly runner: () => AgentRunner;
}

/** What turns, tools and commands have of memory. */
export class SessionMemory extends MemoryManager {
  readonly #deps: MemoryDeps;
  readonly #removed: RemovedSubscribers;
  #stopTidying: () => void = () => undefined;

  constructor(deps: MemoryDeps) {
    const { config, engine, dispatcher, log, providers, primary } = deps;
    super({
      providers,
      home: config.home,
      store: engine.store,
      dispatcher,
      log,
      timers: processTimers,
      delivery: { maxAttempts: config.hooks.maxAttempts },
      serves: primary,
    });
    this.#deps = deps;
    const isOurs = (name: string): boolean => name.startsWith('memory:') || name === REVIEW_SUBSCRIBER;
    this.#removed = new RemovedSubscribers(engine.store, processTimers, isOurs);
  }

  async start(): Promise<void> {
    await this.begin();
    // A terminal looks over nothing, and where there never was a gateway, nobody will.
    if (!this.#deps.primary) return;
    const review = this.#review();
    if (review !== null) await this.#deps.dispatcher.subscribe(review);
    const failed = (error: unknown): void => this.#deps.log.warn('tidying memories failed; trying again', { error });
    this.#stopTidying = repeat(processTimers, TIDY_MS, () => this.#tidy(), failed);
  }

  /** What is in hand is given back: the next start goes on with it. */
  override async stop(): Promise<void> {
    this.#stopTidying();
    // A review may take minutes, and the stop does not wait for it.
    await Promise.all([this.#deps.dispatcher.leave(REVIEW_SUBSCRIBER, 0), super.stop()]);
  }

  /** What the agent's tools may ask of memory. On whose behalf is the turn's to say, never the model's. */
  get ports(): Pick<ToolPorts, 'remember' | 'more'> {
    const remember: ToolPorts['remember'] = async (fact, asker) => {
      const kept = await this.remember(fact, await this.#rememberedSession(asker));
      if (!kept) throw new MoiraiError('tool_failed', 'this memory keeps no single facts');
    };
    return {
      more: () => this.tools.map((tool) => this.#agentTool(tool)),
      ...(this.canRemember() ? { remember } : {}),
    };
  }

  /** The names of those who remember. */
  get names(): readonly string[] {
    return this.providers.map(({ name }) => name);
  }

  /**
   * What the model is told of memory in a session. It is asked for at the first turn and kept in the transcript: servers
   * know a prompt again only while it begins with the same bytes, also after a restart and whatever was learnt since. A
   * session that was told nothing has no row; that it has spoken says the same.
   */
  async about(
    session: Session,
    transcript: readonly Message[],
    keep: (row: MessageToAppend) => Promise<void>,
  ): Promise<string | null> {
    const told = toldOfMemory(transcript, session.id);
    if (told !== undefined) return told;
    const block = await this.systemPromptBlock(session);
    if (block !== null) await keep({ role: 'setting', text: '', turnId: null, data: { memory: block } });
    return block;
  }

  /** A person's words begin a turn: what is remembered that matters for them, and is not in the transcript yet. */
  async recall(
    session: Session,
    turn: { readonly turnId: string; readonly text: string },
    transcript: readonly Message[],
  ): Promise<string | null> {
    this.turnStarted(session, turn);
    const found = await this.prefetch(turn.text, session);
    return found === null ? null : withoutRecalled(found, transcript);
  }

  /** What a summary of these rows must not lose. */
  beforeSummary(session: Session, rows: readonly SummarisedRow[]): Promise<string | null> {
    const now = Date.now();
    return this.beforeCompress(
      session,
      rows.map((row) => ({ at: now, ...row })),
    );
  }

  #agentTool({ name, description, inputSchema, run }: MemoryTool): AgentTool {
    return {
      name,
      description,
      inputSchema,
      parallelSafe: false,
      dangerous: () => null,
      run: async (args, { signal, ...asker }) => {
        const scope = scopeOf(await this.#rememberedSession(asker));
        return run(args, { scope, sessionId: asker.sessionId, signal });
      },
    };
  }

  /** The session that asks. Tools are offered to all of them, since the list of tools is part of what is cached. */
  async #rememberedSession({ sessionId, userId }: Asker): Promise<Session> {
    const session = await this.#deps.engine.store.read('findSession', { idOrPrefix: sessionId });
    if (this.wants(session)) return { ...session, userId };
    throw new MoiraiError('tool_failed', `nothing is remembered for conversations of the kind ${session.kind}`);
  }

  #review(): NewSubscriber | null {
    const { config, engine, transcripts, runner, log } = this.#deps;
    const { reviewEvery: every, reviewMinTurns: minTurns } = config.memory;
    if (every === 0 || !this.canRemember()) return null;
    return reviewSubscriber({ store: engine.store, memory: this, transcripts, runner, log, every, minTurns });
  }

  /** A memory that is not configured any more would collect events for ever that it never fetches. */
  async #tidy(): Promise<void> {
    const present = this.providers.map(subscriberName);
    if (this.#review() !== null) present.push(REVIEW_SUBSCRIBER);
    await this.#removed.tidy(present);
  }
}

const TIDY_MS = 3_600_000;

/** Every message would carry the same entries again, and all of them stay in the prompt. */
function withoutRecalled(found: string, transcript: readonly Message[]): string | null {
  const notes = effectiveRows(transcript).map(({ data }) => (typeof data?.note === 'string' ? data.note : ''));
  const known = new Set(notes.flatMap((note) => note.split('\n').filter(isEntry)));
  const lines = found.split('\n');
  if (!lines.some((line) => known.has(line))) return found;
  const rest = lines.filter((line) => !known.has(line));
  return rest.some(isEntry) ? rest.join('\n') : null;
}

const isEntry = (line: string): boolean => line.startsWith('- ');

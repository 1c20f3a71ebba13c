import type { AgentRunner, Compression, Picture, TranscriptTask, TurnReport, TurnTask } from './runner.ts';

/** A runner that is loaded by its first turn: a gateway that starts, or only waits, does not pay for models and tools. */
export class LazyRunner implements AgentRunner {
  readonly description: string;
  readonly model: string | null;
  readonly #load: () => Promise<AgentRunner>;
  #loaded: Promise<AgentRunner> | null = null;

  constructor(facts: Pick<AgentRunner, 'description' | 'model'>, load: () => Promise<AgentRunner>) {
    this.description = facts.description;
    this.model = facts.model;
    this.#load = load;
  }

  async run(task: TurnTask): Promise<TurnReport> {
    return (await this.#runner()).run(task);
  }

  async compress(task: Omit<TurnTask, 'text' | 'note'>): Promise<Compression | null> {
    return (await this.#runner()).compress(task);
  }

  async askAbout(task: TranscriptTask, question: string): Promise<string | null> {
    return (await this.#runner()).askAbout(task, question);
  }

  async describe(picture: Picture, signal: AbortSignal): Promise<string | null> {
    return (await (await this.#runner()).describe?.(picture, signal)) ?? null;
  }

  async models(): Promise<readonly string[]> {
    return (await this.#runner()).models();
  }

  /** What was never loaded holds nothing. */
  async forget(sessionId: string): Promise<void> {
    await (await this.#loaded)?.forget(sessionId);
  }

  async close(): Promise<void> {
    await (await this.#loaded)?.close();
  }

  #runner(): Promise<AgentRunner> {
    this.#loaded ??= this.#load();
    return this.#loaded;
  }
}

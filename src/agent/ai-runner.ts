import type { AgentConfig, ModelConfig } from '../config/config.ts';
import { AgentCache } from './agent-cache.ts';
import { askAboutTranscript } from './ask-about-transcript.ts';
import { contextWindow } from './model/context-window.ts';
import { describeServer, type ModelServer } from './model/model-server.ts';
import { ModelSession } from './model/model-session.ts';
import type { Wait } from './model/retry.ts';
import { streamStep } from './model/step.ts';
import type { Rendering } from './prompt.ts';
import type { AgentRunner, Compression, Picture, TranscriptTask, TurnReport, TurnTask } from './runner.ts';
import { systemPrompt } from './system-prompt.ts';
import type { Log } from './tools/ports.ts';
import type { ToolBox } from './tools/tool-box.ts';
import type { TranscriptRow } from './transcript.ts';
import { Turn } from './turn.ts';
import { unlessAborted } from './unless-aborted.ts';

export interface AiRunnerParts {
  readonly model: ModelConfig;
  readonly agent: AgentConfig;
  readonly server: ModelServer;
  /** Called by the first turn: a gateway that starts, or only waits, does not pay for tools. */
  readonly openToolBox: () => Promise<ToolBox>;
  readonly log: Log;
  readonly wait: Wait;
  /** How long the model server may be silent in the middle of an answer. */
  readonly silenceMs: number;
  readonly now: () => number;
}

interface Remembered {
  readonly rendering: Rendering;
  /** How much its rows take. */
  readonly bytes: number;
  /** The last row of the rendering: rows never change, so a transcript that has it there begins the same way. */
  readonly last: string;
}

const PICTURE_QUESTION = {
  type: 'text',
  text: 'Describe this picture in one short sentence, as for somebody who cannot see it. Only the sentence.',
} as const;
const LONGEST_DESCRIPTION = 300;
const NO_TOOLS = new Map();

/** Runs turns with a real model. */
export class AiRunner implements AgentRunner {
  readonly description: string;
  readonly model: string | null;
  readonly #parts: AiRunnerParts;
  readonly #renderings: AgentCache<Remembered>;
  #toolBox: Promise<ToolBox> | null = null;

  constructor(parts: AiRunnerParts) {
    this.#parts = parts;
    this.#renderings = new AgentCache(parts.agent.cache, parts.now);
    this.description = describeServer(parts.server);
    this.model = parts.server.defaultName;
  }

  async run(task: TurnTask): Promise<TurnReport> {
    const turn = this.#turn(task);
    try {
      return await turn.run();
    } finally {
      this.#remember(task.sessionId, task.transcript, turn.rendering);
    }
  }

  async compress(task: Omit<TurnTask, 'text' | 'note'>): Promise<Compression | null> {
    const turn = this.#turn({ ...task, text: null, note: null });
    this.#renderings.delete(task.sessionId);
    return turn.compress();
  }

  async askAbout(task: TranscriptTask, question: string): Promise<string | null> {
    const model = await unlessAborted(this.#session(task), task.signal);
    return askAboutTranscript(task.transcript, question, model, task.signal);
  }

  async describe(picture: Picture, signal: AbortSignal): Promise<string | null> {
    const { server, log, silenceMs } = this.#parts;
    try {
      const { text } = await streamStep({
        api: await server.api(),
        model: await server.defaultModel(),
        system: '',
        messages: [{ role: 'user', content: [PICTURE_QUESTION, { type: 'picture', ...picture }] }],
        tools: NO_TOOLS,
        maxTokens: 200,
        signal,
        silenceMs,
        onText: () => undefined,
        onReasoning: () => undefined,
      });
      return text.trim().slice(0, LONGEST_DESCRIPTION) || null;
    } catch (error) {
      log.warn('the model did not say what a picture shows', { error });
      return null;
    }
  }

  async models(): Promise<readonly string[]> {
    const { server, log } = this.#parts;
    try {
      return await server.list();
    } catch (error) {
      log.warn('the model server does not list its models', { error });
      return server.defaultName === null ? [] : [server.defaultName];
    }
  }

  async forget(sessionId: string): Promise<void> {
    this.#renderings.delete(sessionId);
    await (await this.#toolBox)?.forget(sessionId);
  }

  async close(): Promise<void> {
    this.#renderings.clear();
    await (await this.#toolBox)?.close();
  }

  #turn(task: TurnTask): Turn {
    const { agent, log } = this.#parts;
    return new Turn(task, {
      openModel: () => this.#session(task),
      maxSteps: agent.maxSteps,
      known: this.#recall(task.sessionId, task.transcript),
      onCompressionFailed: (error) => {
        log.warn('no summary could be made', { session: task.sessionId, turn: task.turnId, error });
      },
    });
  }

  async #session({ model, startedAt, about }: TranscriptTask): Promise<ModelSession> {
    const { server, model: config, agent, openToolBox, silenceMs, wait } = this.#parts;
    const name = model ?? (await server.defaultModel());
    this.#toolBox ??= openToolBox();
    return new ModelSession({
      ...{ name, server, silenceMs, wait, apiKey: config.apiKey },
      system: systemPrompt(agent, startedAt, about),
      tools: await (await this.#toolBox).tools(),
      window: contextWindow(name, config.contextWindow),
    });
  }

  #recall(sessionId: string, transcript: readonly TranscriptRow[]): Rendering | null {
    const found = this.#renderings.get(sessionId, beginningOf(transcript));
    const last = found === undefined ? undefined : transcript[found.rendering.rows - 1];
    return found !== undefined && last !== undefined && idOf(last) === found.last ? found.rendering : null;
  }

  #remember(sessionId: string, transcript: readonly TranscriptRow[], rendering: Rendering | null): void {
    const { now } = this.#parts;
    this.#renderings.sweep(now());
    // Only rows read from the store have a number that is certain.
    const last = rendering === null ? undefined : transcript[rendering.rows - 1];
    if (rendering === null || last === undefined) return;
    const beginning = beginningOf(transcript);
    const known = this.#renderings.get(sessionId, beginning);
    // Only what is new has to be counted, since rows never change.
    const counted = known !== undefined && known.rendering.rows <= rendering.rows ? known : NOTHING_COUNTED;
    const bytes = counted.bytes + bytesOf(transcript.slice(counted.rendering.rows, rendering.rows));
    // To render a long one again is nothing beside sending it, and a few of them would be all there is room for.
    if (bytes > WORTH_REMEMBERING) return;
    this.#renderings.set(sessionId, beginning, { rendering, bytes, last: idOf(last) }, bytes);
  }
}

const WORTH_REMEMBERING = 512 * 1024;
const NOTHING_COUNTED = { bytes: 0, rendering: { rows: 0 } } as const;

const idOf = ({ sessionId, position }: TranscriptRow): string => `${sessionId}:${position}`;

function beginningOf([first]: readonly TranscriptRow[]): string {
  return first === undefined ? '' : idOf(first);
}

/** Two bytes a character and some for each object: an upper bound rather than a guess. */
function bytesOf(rows: readonly TranscriptRow[]): number {
  let bytes = 0;
  for (const { text, data } of rows) {
    bytes += 200 + 2 * text.length + (data === null ? 0 : 2 * JSON.stringify(data).length);
  }
  return bytes;
}

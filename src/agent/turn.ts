import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import type { TokenUsage } from '../lifecycle/commands.ts';
import type { MessageToAppend } from '../store/transactions/messages.ts';
import { summarise } from './ask-about-transcript.ts';
import { isFull, planCompression, summaryRow, tokensOf } from './compression.ts';
import { keepUnsavedRows } from './keep-unsaved-rows.ts';
import type { ModelSession } from './model/model-session.ts';
import type { StepResult } from './model/step.ts';
import { effectiveRows, type PromptMessage, type Rendering, renderPrompt } from './prompt.ts';
import { runTools } from './run-tools.ts';
import type { Compression, TurnReport, TurnTask } from './runner.ts';
import {
  answeredCall,
  assistantRow,
  noteRow,
  numbered,
  type TranscriptRow,
  toolCallsOf,
  toolRow,
  userRow,
} from './transcript.ts';
import { unlessAborted } from './unless-aborted.ts';

export interface TurnSetting {
  /** May take a while: tools may have to be found first. */
  readonly openModel: () => Promise<ModelSession>;
  readonly maxSteps: number;
  /** What an earlier turn rendered, if it is still of use. */
  readonly known: Rendering | null;
  /** Receives what became of a summary that could not be made: the turn goes on without it. */
  readonly onCompressionFailed: (error: unknown) => void;
}

const GO_ON = 'Your reply was cut off here. Go on from where it stopped.';

/**
 * One turn: the model answers, its calls are kept and then run, their results are kept, and so on until an answer has no
 * calls. Whatever is kept survives a crash; whatever is not was not acted upon.
 */
export class Turn {
  readonly #task: TurnTask;
  readonly #setting: TurnSetting;
  /** What the store has. */
  #rows: TranscriptRow[];
  /** What it does not have yet: it goes with the next rows. */
  #unkept: MessageToAppend[] = [];
  /** What was said since the last row. */
  #partialReply = '';
  #usage: TokenUsage = { input: 0, output: 0 };
  #compressed: Compression | null = null;
  #rendering: Rendering | null;
  /** Below this a further summary would gain too little. */
  #enough = 0;

  constructor(task: TurnTask, setting: TurnSetting) {
    this.#task = task;
    this.#setting = setting;
    this.#rows = [...task.transcript];
    this.#rendering = setting.known;
  }

  /** What a later turn of the session may begin with. */
  get rendering(): Rendering | null {
    return this.#rendering;
  }

  async run(): Promise<TurnReport> {
    try {
      await this.#begin();
      return await this.#loop(await this.#open());
    } catch (error) {
      await this.#keepRest();
      this.#task.signal.throwIfAborted();
      throw error;
    }
  }

  /** Makes room on demand; null when nothing would be gained. */
  async compress(): Promise<Compression | null> {
    const model = await this.#open();
    await this.#keep(settleDangling(this.#rows));
    return this.#compress(model);
  }

  async #begin(): Promise<void> {
    const { text, note, turnId } = this.#task;
    this.#task.signal.throwIfAborted();
    await this.#keep(settleDangling(this.#rows));
    const rows = effectiveRows(this.#rows);
    // A turn that is resumed brings its text again; the person said it once, also when a summary stands for it by now.
    const isSaid = text === null || this.#rows.some((row) => row.role === 'user' && row.turnId === turnId);
    const isAnswered = rows.findLast(({ role }) => role !== 'note')?.role === 'assistant';
    if (!isSaid) this.#unkept = [userRow(turnId, text, note)];
    else if (rows.length === 0) throw new MoiraiError('bad_input', 'a turn without text needs something to go on with');
    else if (note !== null || isAnswered) this.#unkept = [noteRow(turnId, note ?? GO_ON)];
  }

  #open(): Promise<ModelSession> {
    return unlessAborted(this.#setting.openModel(), this.#task.signal);
  }

  async #loop(model: ModelSession): Promise<TurnReport> {
    const { maxSteps } = this.#setting;
    for (let iteration = 1; iteration <= maxSteps; iteration += 1) {
      if (iteration > 1) await this.#takeSteering();
      const step = await this.#step(model);
      this.#task.context.channel.publish({ type: 'step', iteration, tools: step.calls.map(({ name }) => name) });
      if (step.calls.length === 0) return this.#report(step, model);
      await this.#keep([this.#rowOf(step)]);
      await this.#runTools(step, model);
    }
    throw new MoiraiError('too_many_steps', `the agent took ${maxSteps} steps without coming to an answer`);
  }

  async #takeSteering(): Promise<void> {
    // What is taken is in the transcript at once, so what came before it has to be there.
    await this.#keep([]);
    const taken = await this.#task.context.takeSteering();
    this.#rows.push(...numbered(this.#rows, this.#task.sessionId, taken));
  }

  /** After an abort nothing runs any more, but every call still gets its row: it goes with the last words. */
  async #runTools({ calls }: StepResult, { tools }: ModelSession): Promise<void> {
    for await (const rows of runTools(calls, tools, this.#task)) {
      if (this.#task.signal.aborted) this.#unkept.push(...rows);
      else await this.#keep(rows);
    }
    this.#task.signal.throwIfAborted();
  }

  async #step(model: ModelSession): Promise<StepResult> {
    await this.#makeRoom(model);
    try {
      return await this.#ask(model);
    } catch (error) {
      if (!hasCode(error, 'model_overflow') || this.#partialReply !== '') throw error;
      // Our count was too low, or the window smaller than we think.
      if ((await this.#compress(model, true)) === null) throw error;
      return await this.#ask(model);
    }
  }

  async #ask(model: ModelSession): Promise<StepResult> {
    const { context, signal } = this.#task;
    const step = await model.ask(this.#messages(), signal, {
      onText: (text) => {
        this.#partialReply += text;
        context.channel.publish({ type: 'text', text });
      },
      onReasoning: (text) => context.channel.publish({ type: 'reasoning', text }),
    });
    this.#count(step.usage);
    return step;
  }

  #messages(): readonly PromptMessage[] {
    const { messages, settled } = renderPrompt(this.#withUnkept(), this.#rendering);
    // Rows not yet kept may still get another position, or never come to be.
    if (settled !== null && settled.rows <= this.#rows.length) this.#rendering = settled;
    return messages;
  }

  #withUnkept(): TranscriptRow[] {
    return [...this.#rows, ...numbered(this.#rows, this.#task.sessionId, this.#unkept)];
  }

  #rowOf({ text, calls, usage }: StepResult): MessageToAppend {
    return assistantRow(this.#task.turnId, text, { ...(calls.length > 0 ? { toolCalls: calls } : {}), usage });
  }

  #report(step: StepResult, model: ModelSession): TurnReport {
    const messages = [...this.#unkept, this.#rowOf(step)];
    return {
      ...{ text: step.text, messages, model: model.name },
      ...{ usage: this.#usage, compressed: this.#compressed },
    };
  }

  #count({ input, output }: TokenUsage): void {
    this.#usage = { input: this.#usage.input + input, output: this.#usage.output + output };
  }

  async #keep(added: readonly MessageToAppend[]): Promise<void> {
    const rows = [...this.#unkept, ...added];
    // Removed first: a write that failed may have happened, and must not be made a second time.
    this.#unkept = [];
    this.#partialReply = '';
    if (rows.length === 0) return;
    await this.#task.context.keep(rows);
    this.#rows.push(...numbered(this.#rows, this.#task.sessionId, rows));
  }

  async #keepRest(): Promise<void> {
    const { signal, context, turnId } = this.#task;
    // A turn that failed before it said a word leaves nothing behind: what made it fail must not poison the session.
    if (!signal.aborted && this.#partialReply === '') return;
    const partial = this.#partialReply === '' ? [] : [assistantRow(turnId, this.#partialReply, { partial: true })];
    await keepUnsavedRows(context, [...this.#unkept, ...partial]);
  }

  async #makeRoom(model: ModelSession): Promise<void> {
    const tokens = tokensOf(this.#withUnkept(), model.fixedCharacters);
    if (!isFull(tokens, model.window) || tokens < this.#enough) return;
    this.#enough = tokens * 1.25;
    try {
      await this.#compress(model);
    } catch (error) {
      this.#task.signal.throwIfAborted();
      this.#setting.onCompressionFailed(error);
    }
  }

  async #compress(model: ModelSession, force = false): Promise<Compression | null> {
    const { sessionId, turnId, context, signal } = this.#task;
    const beforeTokens = tokensOf(this.#withUnkept(), model.fixedCharacters);
    // What the server could not read is longer than its window, whatever we think that is.
    const window = force ? Math.min(model.window, beforeTokens) : model.window;
    const plan = planCompression(this.#rows, sessionId, window, force);
    if (plan === null) return null;
    const mustKeep = (await context.beforeSummary?.(plan.old)) ?? null;
    const { text, usage } = await summarise(plan.old, model, signal, mustKeep);
    this.#count(usage);
    const row = summaryRow(turnId, text, plan.upTo);
    const rows = [...this.#rows, ...numbered(this.#rows, sessionId, [row])];
    const after = [...rows, ...numbered(rows, sessionId, this.#unkept)];
    const afterTokens = tokensOf(after, model.fixedCharacters);
    await context.keep([row]);
    this.#rows = rows;
    this.#rendering = null;
    this.#compressed = { beforeTokens, afterTokens, count: plan.old.length };
    return this.#compressed;
  }
}

/**
 * Answers for tool calls that the transcript ends with and that have none: the process died after the call was kept and
 * before its result was. Whether the tool did its work is not known, so the answer says so and the tool is not run again.
 */
export function settleDangling(transcript: readonly TranscriptRow[]): MessageToAppend[] {
  const rows = effectiveRows(transcript);
  const caller = rows.findLastIndex(({ role }) => role === 'assistant' || role === 'user');
  const row = rows[caller];
  if (row === undefined) return [];
  const answered = new Set(rows.slice(caller + 1).map(answeredCall));
  const dangling = toolCallsOf(row).filter(({ id }) => !answered.has(id));
  return dangling.map((call) => {
    const text =
      `The outcome of this call of ${call.name} is unknown: the process stopped before it was recorded. It may or may not ` +
      'have taken effect, and it was not run again. Check before you repeat it.';
    return toolRow(row.turnId, call, { text, ok: false, unknown: true });
  });
}

import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { digest, SUMMARY_REQUEST } from './compression.ts';
import type { ModelSession } from './model/model-session.ts';
import type { StepResult } from './model/step.ts';
import { type PromptMessage, renderPrompt } from './prompt.ts';
import { numbered, type TranscriptRow, userRow } from './transcript.ts';

/** How much of the window a digest may fill, from one try to the next: the window may be smaller than we think. */
const DIGEST_SHARES = [0.5, 0.1, 0.02];

const CHARACTERS_PER_TOKEN = 4;

/**
 * Has the model summarise rows. It is asked behind the very messages that were sent before, so that the server has read
 * nearly all of it already; only what it cannot read as it is, is told in few words. `mustKeep` is what others know that
 * the summary must not lose.
 */
export async function summarise(
  rows: readonly TranscriptRow[],
  model: ModelSession,
  signal: AbortSignal,
  mustKeep: string | null = null,
): Promise<StepResult> {
  const words = mustKeep === null ? SUMMARY_REQUEST : `${SUMMARY_REQUEST}\n\n[It must also keep:]\n${mustKeep}`;
  const request = numbered(rows, rows.at(-1)?.sessionId ?? '', [userRow(null, words)]);
  const prompts = [
    () => renderPrompt([...rows, ...request]).messages,
    ...DIGEST_SHARES.map((share) => () => digestPrompt(rows, model.window * share * CHARACTERS_PER_TOKEN, words)),
  ];
  for (const prompt of prompts.slice(0, -1)) {
    try {
      return await summaryBehind(prompt(), model, signal);
    } catch (error) {
      if (!hasCode(error, 'model_overflow')) throw error;
    }
  }
  return summaryBehind(prompts.at(-1)?.() ?? [], model, signal);
}

function digestPrompt(rows: readonly TranscriptRow[], characters: number, request: string): PromptMessage[] {
  return [{ role: 'user', content: `${digest(rows, characters)}\n\n${request}` }];
}

async function summaryBehind(
  messages: readonly PromptMessage[],
  model: ModelSession,
  signal: AbortSignal,
): Promise<StepResult> {
  const step = await model.ask(messages, signal, { onText: () => undefined, onReasoning: () => undefined });
  if (step.text.trim() === '') throw new MoiraiError('model_refused', 'the model wrote no summary');
  return step;
}

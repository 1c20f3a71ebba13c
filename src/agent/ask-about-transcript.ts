import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { digest, isFull, SUMMARY_REQUEST, tokensOf } from './compression.ts';
import type { ModelSession } from './model/model-session.ts';
import type { StepResult } from './model/step.ts';
import { effectiveRows, type PromptMessage, renderPrompt } from './prompt.ts';
import { numbered, type TranscriptRow, userRow } from './transcript.ts';

/*
 * What the model is asked beside the turns of a conversation. It is asked behind the very messages that were sent before, so
 * that the server has read nearly all of it already.
 */

/** What is thought beside a conversation is short; a model that rambles is not heard out. */
const LONGEST_ANSWER = 8000;

/** The model's answer to a question behind a transcript, or its beginning; null when there is no room to ask. */
export async function askAboutTranscript(
  rows: readonly TranscriptRow[],
  question: string,
  model: ModelSession,
  signal: AbortSignal,
): Promise<string | null> {
  if (effectiveRows(rows).length === 0) return null;
  const asked = withQuestion(rows, question);
  if (isFull(tokensOf(asked, model.fixedCharacters), model.window)) return null;
  const enough = new AbortController();
  let answer = '';
  const onText = (text: string): void => {
    answer += text;
    if (answer.length > LONGEST_ANSWER) enough.abort();
  };
  try {
    const listeners = { onText, onReasoning: () => undefined };
    await model.ask(renderPrompt(asked).messages, AbortSignal.any([signal, enough.signal]), listeners);
  } catch (thrown) {
    signal.throwIfAborted();
    if (hasCode(thrown, 'model_overflow')) return null;
    if (!enough.signal.aborted) throw thrown;
  }
  return answer.slice(0, LONGEST_ANSWER);
}

/** How much of the window a digest may fill, from one try to the next: the window may be smaller than we think. */
const DIGEST_SHARES = [0.5, 0.1, 0.02];

const CHARACTERS_PER_TOKEN = 4;

/**
 * Has the model summarise rows; what it cannot read as it is, is told in few words. `mustKeep` is what others know that the
 * summary must not lose.
 */
export async function summarise(
  rows: readonly TranscriptRow[],
  model: ModelSession,
  signal: AbortSignal,
  mustKeep: string | null = null,
): Promise<StepResult> {
  const words = mustKeep === null ? SUMMARY_REQUEST : `${SUMMARY_REQUEST}\n\n[It must also keep:]\n${mustKeep}`;
  let prompt = renderPrompt(withQuestion(rows, words)).messages;
  for (const share of DIGEST_SHARES) {
    try {
      return await summaryBehind(prompt, model, signal);
    } catch (error) {
      if (!hasCode(error, 'model_overflow')) throw error;
    }
    const told = digest(rows, model.window * share * CHARACTERS_PER_TOKEN);
    prompt = [{ role: 'user', content: `${told}\n\n${words}` }];
  }
  return summaryBehind(prompt, model, signal);
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

function withQuestion(rows: readonly TranscriptRow[], question: string): TranscriptRow[] {
  return [...rows, ...numbered(rows, rows.at(-1)?.sessionId ?? '', [userRow(null, question)])];
}

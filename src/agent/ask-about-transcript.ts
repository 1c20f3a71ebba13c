import { hasCode } from '../errors/moirai-error.ts';
import { isFull, tokensOf } from './compression.ts';
import type { ModelSession } from './model/model-session.ts';
import { effectiveRows, renderPrompt } from './prompt.ts';
import { numbered, type TranscriptRow, userRow } from './transcript.ts';

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
  const asked = [...rows, ...numbered(rows, rows.at(-1)?.sessionId ?? '', [userRow(null, question)])];
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

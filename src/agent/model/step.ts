import { MoiraiError } from '../../errors/moirai-error.ts';
import type { AnswerListener, ModelAnswer, ModelApi, ModelRequest } from './model-api.ts';

export interface StepRequest extends ModelRequest, StepListener {
  readonly api: ModelApi;
  readonly signal: AbortSignal;
  /** How long the server may be silent. */
  readonly silenceMs: number;
}

export type StepListener = Omit<AnswerListener, 'onActivity'>;

export interface StepResult extends Omit<ModelAnswer, 'finishReason'> {
  readonly text: string;
}

/** How providers name an answer that ended before the model said it was done. */
const CUT_REASONS: ReadonlySet<string> = new Set(['interrupted', 'error']);
const HELD_BACK: ReadonlySet<string> = new Set(['content-filter', 'content_filter']);

/**
 * One answer of the model, streamed. Throws what the stream threw, and the signal's reason as soon as it aborts. Nothing is
 * tried again here and no tool is run: the caller decides about both.
 */
export async function streamStep(request: StepRequest): Promise<StepResult> {
  const { api, signal, silenceMs } = request;
  signal.throwIfAborted();
  const { promise: stopped, reject: stop } = Promise.withResolvers<never>();
  const silence = setTimeout(() => {
    stop(new DOMException(`nothing came for ${silenceMs} ms`, 'TimeoutError'));
  }, silenceMs);
  const onAbort = (): void => stop(signal.reason);
  signal.addEventListener('abort', onAbort, { once: true });
  let text = '';
  const { answer, cancel } = api(request, {
    onText: (piece) => {
      text += piece;
      request.onText(piece);
    },
    onReasoning: (piece) => request.onReasoning(piece),
    onActivity: () => void silence.refresh(),
  });
  // When the race is lost this promise is not awaited, and its rejection must not end the process.
  answer.catch(() => undefined);
  try {
    const ended = await Promise.race([answer, stopped]);
    return resultOf(text, ended);
  } finally {
    clearTimeout(silence);
    signal.removeEventListener('abort', onAbort);
    // Whatever ended it, the rest is not read.
    cancel();
  }
}

function resultOf(text: string, { calls, finishReason, usage }: ModelAnswer): StepResult {
  if (CUT_REASONS.has(finishReason)) {
    throw new MoiraiError('model_cut', 'the stream from the model server broke off before its end');
  }
  if (HELD_BACK.has(finishReason) && text === '' && calls.length === 0) {
    throw new MoiraiError('model_refused', 'the model server held the answer back by its content filter');
  }
  return { text, calls, usage };
}

import type { ErrorCode } from '../../errors/codes.ts';
import { hasCode, MoiraiError } from '../../errors/moirai-error.ts';
import type { SubmissionReceipt, WebhookAnswer } from '../platform.ts';

const JSON_TYPE = { 'content-type': 'application/json' };
const RETRY_SECONDS = '2';

export function taken({ turnId, sessionId, duplicate }: SubmissionReceipt): WebhookAnswer {
  return answer(duplicate ? 200 : 202, { turn_id: turnId, session_id: sessionId });
}

export function answer(status: number, body: unknown, headers: WebhookAnswer['headers'] = {}): WebhookAnswer {
  return { status, headers: { ...JSON_TYPE, ...headers }, body: JSON.stringify(body) };
}

/** An answer to what is not taken, and why. */
export function refusal(status: number, code: ErrorCode, message: string, headers?: WebhookAnswer['headers']) {
  const { hint } = new MoiraiError(code, message);
  return answer(status, { error: { code, message, hint } }, headers);
}

/** What could not be taken now is brought again; what is wrong with itself is not. Nobody outside learns more of it. */
export function notTaken(thrown: unknown): WebhookAnswer {
  if (hasCode(thrown, 'bad_input', 'message_too_large')) return refusal(400, thrown.code, thrown.message);
  const { code } = MoiraiError.wrap(thrown);
  return refusal(503, code, 'it was not taken', { 'retry-after': RETRY_SECONDS });
}

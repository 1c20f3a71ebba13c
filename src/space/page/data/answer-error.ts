/** What a gateway answered instead of what it was asked for. */
export class AnswerError extends Error {
  readonly status: number;
  /** As in docs/errors.md; what stands between may answer too, and then this is `http_502` or the like. */
  readonly code: string;
  readonly hint: string;
  /** How long to wait before asking again; null when it was not said. */
  readonly waitSeconds: number | null;

  constructor(status: number, facts: { code: string; message: string; hint?: string; waitSeconds?: number | null }) {
    super(facts.message);
    this.name = 'AnswerError';
    this.status = status;
    this.code = facts.code;
    this.hint = facts.hint ?? '';
    this.waitSeconds = facts.waitSeconds ?? null;
  }

  /** Reads the error out of an answer, of a gateway or of a proxy before it. */
  static async from(response: Response): Promise<AnswerError> {
    const { status } = response;
    const error = errorOf(await response.json().catch(() => null));
    const wait = Number(response.headers.get('retry-after') ?? Number.NaN);
    return new AnswerError(status, {
      code: textOr(error.code, `http_${status}`),
      message: textOr(error.message, `the answer was ${status} ${response.statusText}`.trim()),
      hint: textOr(error.hint, ''),
      waitSeconds: Number.isFinite(wait) ? wait : null,
    });
  }
}

/** What to tell a person about something that went wrong, in one sentence. */
export function sentenceOf(thrown: unknown): string {
  if (thrown instanceof AnswerError) return thrown.hint === '' ? thrown.message : `${thrown.message}. ${thrown.hint}`;
  // Browsers throw a TypeError with words of their own when there is no answer at all.
  if (thrown instanceof TypeError) return 'nobody answers';
  return thrown instanceof Error ? thrown.message : String(thrown);
}

function errorOf(body: unknown): Record<string, unknown> {
  const error = typeof body === 'object' && body !== null && 'error' in body ? body.error : null;
  return typeof error === 'object' && error !== null ? { ...error } : {};
}

function textOr(value: unknown, otherwise: string): string {
  return typeof value === 'string' && value !== '' ? value : otherwise;
}

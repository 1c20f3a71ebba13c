import { SendFailure } from '../send-failure.ts';

const RETRY_MS = 1000;

/** Ends when the call does, when the signal does, and after `ms` at the latest: then nobody knows what becomes of it. */
export async function ended<T>(call: Promise<T>, ms: number, signal: AbortSignal): Promise<T> {
  const { promise: over, reject } = Promise.withResolvers<never>();
  const end = (): void => reject(new SendFailure('the adapter did not answer in time', RETRY_MS, 'uncertain'));
  const deadline = AbortSignal.any([signal, AbortSignal.timeout(ms)]);
  deadline.addEventListener('abort', end, { once: true });
  if (deadline.aborted) end();
  try {
    return await Promise.race([call, over]);
  } finally {
    deadline.removeEventListener('abort', end);
  }
}

import { pause } from '../deadline.ts';
import type { PlatformRuntime } from '../platform.ts';

const BASE_MS = 1000;
const CAP_MS = 30_000;

/** Resolves when it is time for the next try after so many, or when the signal ends it. */
export async function waitToRetry(
  runtime: PlatformRuntime,
  tries: number,
  signal: AbortSignal,
  leastMs = 0,
): Promise<void> {
  const full = Math.min(BASE_MS * 2 ** (tries - 1), CAP_MS);
  await pause(runtime, Math.max(leastMs, full * (0.5 + runtime.random() / 2)), signal);
}

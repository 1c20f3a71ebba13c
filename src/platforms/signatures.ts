import { createHash, createHmac, timingSafeEqual } from 'node:crypto';

/** How far the time in a signature may be from ours: what is older was kept by somebody to be sent again. */
export const SIGNATURE_AGE_MS = 300_000;

/** Whether two texts are the same, in a time that tells nothing about where they differ. */
export function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

export function hmacSha256(
  secret: string | Uint8Array,
  parts: readonly (string | Uint8Array)[],
  encoding: 'hex' | 'base64',
): string {
  const hmac = createHmac('sha256', secret);
  for (const part of parts) hmac.update(part);
  return hmac.digest(encoding);
}

/** Whether a time from a signature, in seconds as text, is of now. */
export function isFresh(seconds: string | undefined, now: number, ageMs = SIGNATURE_AGE_MS): boolean {
  if (seconds === undefined || !/^\d{1,12}$/.test(seconds)) return false;
  return Math.abs(Number(seconds) * 1000 - now) <= ageMs;
}

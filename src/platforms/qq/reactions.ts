import type { Place, ReactionSign } from '../platform.ts';
import type { QqApi } from './api.ts';
import { sendFailureOf } from './failures.ts';
import { QqError } from './qq-error.ts';
import { pathOf } from './scenes.ts';

/** Emoji by their numbers, which are those of Unicode: of these only some are taken. */
const EMOJI = 2;
const SIGNS: Readonly<Record<ReactionSign, number>> = { seen: 128_076, done: 128_077, failed: 10_060 };
/** It is there already, or is not there any more. */
const AS_WISHED: ReadonlySet<number> = new Set([620003, 620004]);

/** Puts a sign at a message of a channel in the place of the others; null takes them away. */
export async function react(
  api: QqApi,
  place: Place,
  messageId: string,
  sign: ReactionSign | null,
  signal: AbortSignal,
): Promise<void> {
  const change = async (method: 'PUT' | 'DELETE', id: number): Promise<void> => {
    const path = `${pathOf(place)}/messages/${encodeURIComponent(messageId)}/reactions/${EMOJI}/${id}`;
    await api.call({ method, path }, signal).catch((thrown: unknown) => {
      if (!(thrown instanceof QqError && AS_WISHED.has(thrown.code))) throw thrown;
    });
  };
  try {
    if (sign !== null) await change('PUT', SIGNS[sign]);
    const others = Object.entries(SIGNS).filter(([other]) => other !== sign);
    await Promise.all(others.map(([, id]) => change('DELETE', id)));
  } catch (thrown) {
    throw sendFailureOf(thrown, api.redact);
  }
}

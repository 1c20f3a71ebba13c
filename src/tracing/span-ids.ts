import { createHash } from 'node:crypto';

/**
 * The trace of a turn follows from its id alone: every process that works on the turn, however much later, adds to the same
 * trace, and nothing has to be handed on.
 */
export function traceIdOf(id: string): string {
  return digest(`trace ${id}`, 32);
}

/** The span of a step that a turn, or whatever else has an id, takes once. */
export function spanIdOf(step: string, id: string): string {
  return digest(`${step} ${id}`, 16);
}

function digest(text: string, digits: number): string {
  return createHash('sha256').update(text).digest('hex').slice(0, digits);
}

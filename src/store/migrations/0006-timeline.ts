import type { Dialect } from '../dialect.ts';

/** How many sessions ended when, and why, is counted in an index alone. Written once, when a session ends. */
export function statements(_dialect: Dialect): string[] {
  return ['CREATE INDEX sessions_end_times ON sessions (ended_at, end_reason) WHERE ended_at IS NOT NULL'];
}

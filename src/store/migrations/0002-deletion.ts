import type { Dialect } from '../dialect.ts';

/** What it takes to find all that belongs to an ended session, so that it can be removed without reading everything. */
export function statements(_dialect: Dialect): string[] {
  return [
    // Written once, when a turn is over: a message that arrives writes no page more than before.
    "CREATE INDEX turns_over ON turns (session_id) WHERE state = 'over'",
    'CREATE INDEX deliveries_by_session ON deliveries (session_id)',
    'CREATE INDEX sessions_ended ON sessions (kind, ended_at, id) WHERE ended_at IS NOT NULL',
    "CREATE INDEX sessions_continuing ON sessions (parent_id) WHERE lineage = 'resume' OR lineage = 'branch'",
  ];
}

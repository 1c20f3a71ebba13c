import type { Dialect } from '../dialect.ts';

/** What is done at its time: jobs, their runs, and what conversations were told by them. */
export function statements({ integer, text, serialKey }: Dialect): string[] {
  return [
    `CREATE TABLE jobs (
      id ${text} PRIMARY KEY,
      name ${text},
      schedule ${text} NOT NULL,
      timezone ${text} NOT NULL,
      prompt ${text} NOT NULL,
      target ${text} NOT NULL,
      made_in ${text},
      made_by ${text},
      created_at ${integer} NOT NULL,
      paused_at ${integer},
      next_at ${integer}
    )`,
    'CREATE INDEX jobs_due ON jobs (next_at, id) WHERE next_at IS NOT NULL',
    'CREATE INDEX jobs_by_maker ON jobs (made_in)',
    // How a run came out is what its session says: there is no second truth to keep.
    `CREATE TABLE job_runs (
      session_id ${text} PRIMARY KEY,
      job_id ${text} NOT NULL,
      tick_at ${integer} NOT NULL
    )`,
    // Whatever the code does: a tick is run once.
    'CREATE UNIQUE INDEX job_runs_once ON job_runs (job_id, tick_at)',
    `CREATE TABLE told (
      no ${serialKey},
      delivery_id ${text} NOT NULL,
      session_key ${text} NOT NULL,
      text ${text} NOT NULL,
      at ${integer} NOT NULL
    )`,
    'CREATE UNIQUE INDEX told_once ON told (delivery_id)',
    'CREATE INDEX told_by_key ON told (session_key, no)',
  ];
}

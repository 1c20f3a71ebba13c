import { INSTANCE, keyOf, REPLY_TEXT, USER_TEXT } from './load.ts';

/** How the sessions of a filled store look. */
export interface Filling {
  readonly sessions: number;
  /** Epoch milliseconds: all deadlines fall together there. Without it they are spread over the coming day. */
  readonly expireAt?: number;
}

export interface Filler {
  /** Rows `n` from `from` to `to`, as a table expression. */
  numbers(from: number, to: number): string;
  run(sql: string): Promise<void>;
}

const CHUNK = 50_000;
const HOUR_MS = 3_600_000;

/**
 * Fills a store as a gateway would have: each session open in a conversation of its own, one turn over, two transcript
 * rows, the events of both. Written by the engine itself, in a few seconds per hundred thousand.
 */
export async function fill(filler: Filler, filling: Filling, progress: (done: number) => void): Promise<void> {
  const now = Date.now();
  const expiresAt = filling.expireAt ?? `${now + HOUR_MS} + (n * 7919) % ${22 * HOUR_MS}`;
  for (let from = 1; from <= filling.sessions; from += CHUNK) {
    const to = Math.min(from + CHUNK - 1, filling.sessions);
    for (const sql of rows(filler.numbers(from, to), now - HOUR_MS, String(expiresAt))) await filler.run(sql);
    progress(to);
  }
}

/** Ids that sort by the session's number and before all that are made later. */
const session = idOf('ses');
const turn = idOf('trn');
const KEY = `'${keyOf(0).slice(0, -1)}' || n`;

function idOf(prefix: string): string {
  return `'${prefix}_00000000000000000' || CAST(1000000000 + n AS TEXT)`;
}

function rows(numbers: string, at: number, expiresAt: string): string[] {
  return [
    `INSERT INTO sessions (id, key, kind, platform, user_id, origin, attached, started_at, state, last_activity_at,
       last_system_at, expires_at, expires_cause, check_at, message_count, tokens_in, tokens_out, epoch,
       last_heartbeat_at, cuts, background, seq, version, last_command, recent_commands)
     SELECT ${session}, ${KEY}, 'chat', 'telegram', 'user-' || n, '{"platform":"telegram","chat":"' || n || '"}', 0,
       ${at}, 'open', ${at}, ${at}, ${expiresAt}, 'idle', ${expiresAt}, 2, 900, 60, 1, ${at}, 0, 0, 3, 4,
       ${idOf('cmd')}, ${idOf('cmd')} FROM ${numbers}`,
    `INSERT INTO turns (id, session_id, origin_ref, by_actor, user_id, state, outcome, text, created_at, started_at,
       ended_at, cuts, response, model)
     SELECT ${turn}, ${session}, 'telegram:' || n || ':0', 'user', 'user-' || n, 'over', 'done', '${USER_TEXT}',
       ${at}, ${at}, ${at}, 0, '${REPLY_TEXT}', 'bench-model' FROM ${numbers}`,
    ...[
      [1, 'user', USER_TEXT],
      [2, 'assistant', REPLY_TEXT],
    ].map(
      ([position, role, text]) =>
        `INSERT INTO messages (session_id, position, role, text, at, turn_id)
         SELECT ${session}, ${position}, '${role}', '${text}', ${at}, ${turn} FROM ${numbers}`,
    ),
    ...['session:start', 'agent:start', 'agent:end'].map(
      (type, i) =>
        `INSERT INTO events (session_id, session_seq, session_key, type, at, body)
         SELECT ${session}, ${i + 1}, ${KEY}, '${type}', ${at},
           '{"id":"' || ${session} || ':${i + 1}","session_seq":${i + 1},"type":"${type}","session_id":"' || ${session} ||
           '","session_key":"' || ${KEY} || '","platform":"telegram","kind":"chat","instance":"${INSTANCE}","message":"' ||
           '${USER_TEXT}"}' FROM ${numbers}`,
    ),
  ];
}

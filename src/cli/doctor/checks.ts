import { accessSync, constants, statSync } from 'node:fs';
import { isoTime } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { Store } from '../../store/port.ts';
import type { PromiseName } from '../../store/transactions/inspection.ts';
import { relativeTime } from '../print.ts';
import { openEntries } from '../private-home.ts';
import { figuresOf } from '../subscriber-text.ts';

/** What one check found. */
export interface Finding {
  readonly check: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly message: string;
  /** What to do, where something is to be done. */
  readonly hint?: string;
  /** For programs: the figures behind the message. */
  readonly details?: unknown;
}

/** A check that could not be made. */
export function failed(check: string, thrown: unknown): Finding {
  const { code, message, hint } = MoiraiError.wrap(thrown);
  return { check, status: 'fail', message: `${message} [${code}]`, hint, details: { code } };
}

const NEEDED_NODE = [24, 15] as const;

export function checkNode(): Finding {
  const { node } = process.versions;
  const [major = 0, minor = 0] = node.split('.').map(Number);
  const isEnough = major > NEEDED_NODE[0] || (major === NEEDED_NODE[0] && minor >= NEEDED_NODE[1]);
  if (isEnough) return { check: 'node', status: 'ok', message: `Node.js ${node}` };
  return { check: 'node', status: 'fail', message: `Node.js ${node}; ${NEEDED_NODE.join('.')} or newer is needed` };
}

export function checkHome(home: string): Finding {
  const check = 'home';
  try {
    accessSync(home, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch {
    return { check, status: 'fail', message: `${home} is not writable`, hint: 'Give it to the user who runs Moirai.' };
  }
  const mode = statSync(home).mode & 0o777;
  const shown = `${home} (${mode.toString(8).padStart(4, '0')})`;
  const open = openEntries(home).map((entry) => `${entry.path} (${entry.mode})`);
  if (open.length === 0) return { check, status: 'ok', message: shown };
  const hint = `chmod 700 ${home}; a gateway closes the rest of it when it starts.`;
  return { check, status: 'warn', message: `open to other users: ${open.join(', ')}`, hint };
}

/** Everything that can be asked of an open store. A question that a damaged one cannot answer is a finding too. */
export async function checkStore(store: Store): Promise<Finding[]> {
  const findings: Finding[] = [{ check: 'store', status: 'ok', message: `${store.engine}, ${store.location}` }];
  for (const [check, examine] of Object.entries(STORE_CHECKS)) {
    try {
      const found = [await examine(store)].flat();
      findings.push(...found.map((each) => ({ check, ...each })));
    } catch (thrown) {
      findings.push(failed(check, thrown));
    }
  }
  return findings;
}

/** A finding is named after its check, unless it has a name of its own. */
type Outcome = Omit<Finding, 'check'> & { readonly check?: string };

const STORE_CHECKS: Readonly<Record<string, (store: Store) => Promise<Outcome | Outcome[]>>> = {
  settings: checkSettings,
  integrity: checkIntegrity,
  promises: checkPromises,
  owners: checkOwners,
  deadlines: checkDeadlines,
  instances: checkInstances,
  subscribers: checkSubscribers,
  backup: checkBackup,
};

/** Opening has refused what is unsafe; this shows what it found, and what has changed since. */
async function checkSettings(store: Store): Promise<Outcome> {
  const details = await store.read('engineSettings', {});
  const message = Object.entries(details)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
  const { journal_mode = 'wal', fsync = 'on', synchronous_commit = 'on', full_page_writes = 'on' } = details;
  const safe = journal_mode === 'wal' && fsync === 'on' && synchronous_commit !== 'off' && full_page_writes === 'on';
  if (safe) return { status: 'ok', message, details };
  const hint = 'The engine may lose what it has acknowledged. Correct its settings and restart it.';
  return { status: 'fail', message, hint, details };
}

async function checkIntegrity(store: Store): Promise<Outcome> {
  const details = await store.read('checkIntegrity', {});
  if (details === null) return { status: 'ok', message: 'left to the engine' };
  if (details.length === 0) return { status: 'ok', message: 'the file is sound' };
  const hint = 'Stop all processes, copy the database files, and restore a backup.';
  return { status: 'fail', message: details.join('; '), hint, details };
}

const SAMPLE = 10;

const PROMISED: Readonly<Record<PromiseName, string>> = {
  starts_once: 'every session has exactly one session:start',
  ends_once: 'every ended session has exactly one session:end',
  open_has_no_end: 'no open session has a session:end',
  numbers_match_the_row: "every session's row knows its last event number",
  numbers_have_no_gap: "no session's events have a gap in their numbers",
  end_comes_last: 'session:end is the last numbered event of its session',
  removed_has_ended: 'every session that was removed had ended',
};

async function checkPromises(store: Store): Promise<Outcome[]> {
  const reports = await store.read('checkPromises', { sample: SAMPLE });
  return reports.map(({ promise, broken, sessionIds }): Outcome => {
    const check = `promise:${promise}`;
    if (broken === 0) return { check, status: 'ok', message: PROMISED[promise] };
    const message = `${PROMISED[promise]}: broken by ${broken}, such as ${sessionIds.join(', ')}`;
    const hint = 'This is a defect in Moirai, or somebody wrote to the database. Please report it.';
    return { check, status: 'fail', message, hint, details: { broken, session_ids: sessionIds } };
  });
}

async function checkOwners(store: Store): Promise<Outcome> {
  const { open, openUnowned } = await store.read('stats', {});
  const details = { open, open_unowned: openUnowned };
  if (openUnowned === 0) return { status: 'ok', message: `${open} open sessions, none without a live owner`, details };
  const message = `${openUnowned} of ${open} open sessions have no live owner`;
  return { status: 'fail', message, hint: 'Run `moirai doctor --fix`.', details };
}

async function checkDeadlines(store: Store): Promise<Outcome> {
  const { count, oldest } = await store.read('overdueSessions', {});
  if (oldest === null) return { status: 'ok', message: 'no session is overdue' };
  const message = `${count} sessions are overdue, the first one since ${relativeTime(oldest)}`;
  const hint = 'A running gateway ends them; so does `moirai doctor --fix`.';
  return { status: 'warn', message, hint, details: { overdue: count, oldest: isoTime(oldest) } };
}

async function checkInstances(store: Store): Promise<Outcome[]> {
  const instances = await store.read('listInstances', {});
  const up = instances.filter((instance) => instance.state === 'up');
  const details = instances.map((instance) => ({
    id: instance.id,
    state: instance.state,
    host: instance.host,
    pid: instance.pid,
    version: instance.version,
    started_at: isoTime(instance.startedAt),
    heartbeat_at: isoTime(instance.heartbeatAt),
    lost_at: isoTime(instance.lostAt),
    sessions: instance.owns,
  }));
  const message = `${up.length} up, ${instances.length - up.length} lost in the last days`;
  const each = up.map(
    ({ id, pid, host, owns, heartbeatAt }): Outcome => ({
      check: `instance:${id}`,
      status: 'ok',
      message: `pid ${pid} on ${host}, ${owns} sessions, heartbeat ${relativeTime(heartbeatAt)}`,
    }),
  );
  return [{ status: 'ok', message, details }, ...each];
}

async function checkSubscribers(store: Store): Promise<Outcome[]> {
  const subscribers = await store.read('listSubscribers', {});
  const each = subscribers.map((subscriber): Outcome => {
    const { name, patterns, lag, failures, deadLetters, oldestPendingAt, lastError } = subscriber;
    const since = oldestPendingAt === null ? '' : `, the oldest from ${relativeTime(oldestPendingAt)}`;
    const error = lastError === null ? '' : `; last error: ${lastError}`;
    const hint = 'See its error; dead letters can be replayed.';
    return {
      check: `subscriber:${name}`,
      status: failures + deadLetters > 0 ? 'warn' : 'ok',
      message: `${lag} undelivered${since}, ${failures} failures, ${deadLetters} dead letters${error}`,
      ...(failures + deadLetters > 0 ? { hint } : {}),
      details: { name, patterns, ...figuresOf(subscriber) },
    };
  });
  return [{ status: 'ok', message: `${subscribers.length} registered` }, ...each];
}

/** Older than this, a backup is one that somebody has forgotten. */
const OLD_BACKUP_MS = 7 * 86_400_000;

async function checkBackup(store: Store): Promise<Outcome> {
  const { backup, firstSessionAt } = await store.read('lastBackup', {});
  const hint = 'Run `moirai backup FILE`, best of all every night.';
  const now = Date.now();
  if (backup === null) {
    const atStake = firstSessionAt !== null && now - firstSessionAt > OLD_BACKUP_MS;
    const message = 'there is none yet';
    return atStake ? { status: 'warn', message, hint } : { status: 'ok', message };
  }
  const { at, file, bytes } = backup;
  const size = bytes === null ? '' : `, ${bytes} bytes`;
  const message = `the last one is of ${isoTime(at)} (${relativeTime(at, now)}): ${file}${size}`;
  const details = { at: isoTime(at), file, bytes };
  return now - at > OLD_BACKUP_MS ? { status: 'warn', message, hint, details } : { status: 'ok', message, details };
}

import { isoTime } from '../../engine/views.ts';
import type { Store } from '../../store/port.ts';
import type { PromiseName, PromiseReport } from '../../store/transactions/inspection.ts';
import { relativeTime } from '../print.ts';
import { type Finding, failed } from './finding.ts';

const SAMPLE = 10;

/** Everything that can be asked of an open store. A question that a damaged one cannot answer is a finding too. */
export async function checkStore(store: Store, now: number): Promise<Finding[]> {
  const checks: Record<string, () => Promise<Finding[]>> = {
    settings: () => checkSettings(store),
    integrity: () => checkIntegrity(store),
    promises: () => checkPromises(store),
    owners: () => checkOwners(store),
    deadlines: () => checkDeadlines(store, now),
    instances: () => checkInstances(store, now),
    subscribers: () => checkSubscribers(store, now),
  };
  const findings: Finding[] = [{ check: 'store', status: 'ok', message: `${store.engine}, ${store.location}` }];
  for (const [name, check] of Object.entries(checks)) {
    findings.push(...(await check().catch((thrown: unknown) => [failed(name, thrown)])));
  }
  return findings;
}

/** Opening has refused what is unsafe; this shows what it found, and what has changed since. */
async function checkSettings(store: Store): Promise<Finding[]> {
  const details = await store.read('engineSettings', {});
  const message = Object.entries(details)
    .map(([name, value]) => `${name} ${value}`)
    .join(', ');
  const { journal_mode = 'wal', fsync = 'on', synchronous_commit = 'on', full_page_writes = 'on' } = details;
  const safe = journal_mode === 'wal' && fsync === 'on' && synchronous_commit !== 'off' && full_page_writes === 'on';
  if (safe) return [{ check: 'settings', status: 'ok', message, details }];
  const hint = 'The engine may lose what it has acknowledged. Correct its settings and restart it.';
  return [{ check: 'settings', status: 'fail', message, hint, details }];
}

async function checkIntegrity(store: Store): Promise<Finding[]> {
  const check = 'integrity';
  const findings = await store.read('checkIntegrity', {});
  if (findings === null) return [{ check, status: 'ok', message: 'left to the engine' }];
  if (findings.length === 0) return [{ check, status: 'ok', message: 'the file is sound' }];
  const hint = 'Stop all processes, copy the database files, and restore a backup.';
  return [{ check, status: 'fail', message: findings.join('; '), hint, details: findings }];
}

const PROMISED: Readonly<Record<PromiseName, string>> = {
  starts_once: 'every session has exactly one session:start',
  ends_once: 'every ended session has exactly one session:end',
  open_has_no_end: 'no open session has a session:end',
  numbers_match_the_row: "every session's row knows its last event number",
  numbers_have_no_gap: "no session's events have a gap in their numbers",
  end_comes_last: 'session:end is the last numbered event of its session',
  removed_has_ended: 'every session that was removed had ended',
};

async function checkPromises(store: Store): Promise<Finding[]> {
  const reports = await store.read('checkPromises', { sample: SAMPLE });
  return reports.map(promiseFinding);
}

function promiseFinding({ promise, broken, sessionIds }: PromiseReport): Finding {
  const check = `promise:${promise}`;
  if (broken === 0) return { check, status: 'ok', message: PROMISED[promise] };
  const message = `${PROMISED[promise]}: broken by ${broken}, such as ${sessionIds.join(', ')}`;
  const hint = 'This is a defect in Moirai, or somebody wrote to the database. Please report it.';
  return { check, status: 'fail', message, hint, details: { broken, session_ids: sessionIds } };
}

async function checkOwners(store: Store): Promise<Finding[]> {
  const check = 'owners';
  const { open, openUnowned } = await store.read('stats', {});
  const details = { open, open_unowned: openUnowned };
  if (openUnowned === 0) {
    return [{ check, status: 'ok', message: `${open} open sessions, none without a live owner`, details }];
  }
  const message = `${openUnowned} of ${open} open sessions have no live owner`;
  return [{ check, status: 'fail', message, hint: 'Run `moirai doctor --fix`.', details }];
}

async function checkDeadlines(store: Store, now: number): Promise<Finding[]> {
  const check = 'deadlines';
  const { count, oldest } = await store.read('overdueSessions', {});
  if (oldest === null) return [{ check, status: 'ok', message: 'no session is overdue' }];
  const message = `${count} sessions are overdue, the first one since ${relativeTime(oldest, now)}`;
  const hint = 'A running gateway ends them; so does `moirai doctor --fix`.';
  return [{ check, status: 'warn', message, hint, details: { overdue: count, oldest: isoTime(oldest) } }];
}

async function checkInstances(store: Store, now: number): Promise<Finding[]> {
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
    ({ id, pid, host, owns, heartbeatAt }): Finding => ({
      check: `instance:${id}`,
      status: 'ok',
      message: `pid ${pid} on ${host}, ${owns} sessions, heartbeat ${relativeTime(heartbeatAt, now)}`,
    }),
  );
  return [{ check: 'instances', status: 'ok', message, details }, ...each];
}

async function checkSubscribers(store: Store, now: number): Promise<Finding[]> {
  const subscribers = await store.read('listSubscribers', {});
  const each = subscribers.map((subscriber): Finding => {
    const { name, patterns, lag, failures, deadLetters, oldestPendingAt, lastError } = subscriber;
    const since = oldestPendingAt === null ? '' : `, the oldest from ${relativeTime(oldestPendingAt, now)}`;
    const said = lastError === null ? '' : `; last error: ${lastError}`;
    const hint = 'See its error; dead letters can be replayed.';
    return {
      check: `subscriber:${name}`,
      status: failures + deadLetters > 0 ? 'warn' : 'ok',
      message: `${lag} undelivered${since}, ${failures} failures, ${deadLetters} dead letters${said}`,
      ...(failures + deadLetters > 0 ? { hint } : {}),
      details: {
        ...{ name, patterns, lag, failures, dead_letters: deadLetters },
        ...{ oldest_pending_at: isoTime(oldestPendingAt), last_error: lastError },
      },
    };
  });
  return [{ check: 'subscribers', status: 'ok', message: `${subscribers.length} registered` }, ...each];
}

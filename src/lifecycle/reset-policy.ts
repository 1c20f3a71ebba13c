import { Temporal } from 'temporal-polyfill';
import { MoiraiError } from '../errors/moirai-error.ts';
import { MAX_DURATION_MS } from './duration.ts';
import { type ConversationType, parseKey } from './session-key.ts';

export const RESET_MODES = ['none', 'idle', 'daily', 'both'] as const;

export type ResetMode = (typeof RESET_MODES)[number];

/** When people hear that their session expired: with their next message, at once, or not at all. */
export const NOTIFY_MODES = ['next', 'at_once', 'never'] as const;

export type NotifyMode = (typeof NOTIFY_MODES)[number];

/** When a session ends by itself, and whether its users are told. Plain data. */
export interface ResetPolicy {
  readonly mode: ResetMode;
  /** Whole milliseconds without activity; more than 0, at most 36500 days. */
  readonly idleMs: number;
  /** The local time of the daily reset, `HH:MM` from 00:00 to 23:59. */
  readonly at: string;
  /** The IANA name of the zone `at` is local to. */
  readonly timezone: string;
  readonly notify: NotifyMode;
  /** Platforms whose users are not told. */
  readonly notifyExclude: readonly string[];
}

/** The `sessions` part of the configuration that the lifecycle needs. Plain data. */
export interface ResetRules {
  readonly reset: ResetPolicy;
  readonly resetByType: Readonly<Partial<Record<ConversationType, Partial<ResetPolicy>>>>;
  readonly resetByPlatform: Readonly<Record<string, Partial<ResetPolicy>>>;
  /** How long after it was cut a turn may still be resumed; 0 is never. */
  readonly resumeWindowMs: number;
  /** The cut that parks the session as stuck; a whole number from 1. */
  readonly stuckAfter: number;
}

/** When a session expires, and which of its deadlines that is. */
interface PolicyDeadline {
  /** Epoch milliseconds. */
  readonly at: number;
  readonly cause: 'idle' | 'daily';
}

export const DEFAULT_RESET_RULES: ResetRules = {
  reset: {
    mode: 'idle',
    idleMs: 86_400_000,
    at: '04:00',
    timezone: 'UTC',
    notify: 'next',
    notifyExclude: ['api', 'webhook'],
  },
  resetByType: {},
  resetByPlatform: {},
  resumeWindowMs: 3_600_000,
  stuckAfter: 3,
};

// A deadline must still be a Date: the longest idle time and a few days of boundaries fit above the latest activity.
const MAX_ACTIVITY_MS = 8.64e15 - 2 * MAX_DURATION_MS;

/** The policy of one session: `reset`, overridden field by field by its type, then by its platform. */
export function policyFor(rules: ResetRules, sessionKey: string): ResetPolicy {
  const { type, platform } = parseKey(sessionKey);
  const byPlatform = Object.hasOwn(rules.resetByPlatform, platform) ? rules.resetByPlatform[platform] : undefined;
  return override(override(rules.reset, rules.resetByType[type]), byPlatform);
}

function override(base: ResetPolicy, over: Partial<ResetPolicy> | undefined): ResetPolicy {
  if (over === undefined) return base;
  return {
    mode: over.mode ?? base.mode,
    idleMs: over.idleMs ?? base.idleMs,
    at: over.at ?? base.at,
    timezone: over.timezone ?? base.timezone,
    notify: over.notify ?? base.notify,
    notifyExclude: over.notifyExclude ?? base.notifyExclude,
  };
}

/**
 * The deadline of a session last active then, or null when it has none. Idle is the activity plus `idleMs`; daily is
 * the first local `at` strictly after the activity; `both` is the earlier one, idle when they fall together.
 *
 * Each local day has one daily boundary: where the clock skips `at` it is as much later as the clock skips, where `at`
 * comes twice it is the first. The policy must be valid. Throws `bad_input` for a time that is no date.
 */
export function nextDeadline(policy: ResetPolicy, lastActivityAt: number): PolicyDeadline | null {
  if (!(Math.abs(lastActivityAt) <= MAX_ACTIVITY_MS)) {
    throw new MoiraiError('bad_input', `lastActivityAt is ${lastActivityAt}, not a time in epoch milliseconds`);
  }
  if (policy.mode === 'none') return null;
  const idleAt = policy.mode === 'daily' ? Number.POSITIVE_INFINITY : lastActivityAt + policy.idleMs;
  const dailyAt = policy.mode === 'idle' ? Number.POSITIVE_INFINITY : dailyAfter(policy, lastActivityAt);
  return idleAt <= dailyAt ? { at: idleAt, cause: 'idle' } : { at: dailyAt, cause: 'daily' };
}

/** For every activity from `from` until just before `to`, the daily boundary is `to`. */
interface Day {
  readonly from: number;
  readonly to: number;
}

// Every message asks for its boundary and nearly all messages are of today, so the day last asked for is kept for each
// zone and time. It is a fact about the calendar: no answer depends on whether it was kept.
const days = new Map<string, Day>();
const MAX_DAYS = 64;

function dailyAfter({ timezone, at }: ResetPolicy, activity: number): number {
  const key = `${timezone} ${at}`;
  const kept = days.get(key);
  if (kept !== undefined && kept.from <= activity && activity < kept.to) return kept.to;
  const day = findDay(timezone, at, activity);
  if (kept === undefined && days.size >= MAX_DAYS) days.clear();
  days.set(key, day);
  return day.to;
}

function findDay(timezone: string, at: string, activity: number): Day {
  try {
    return walkToBoundary(timezone, at, activity);
  } catch (cause) {
    throw new MoiraiError('bad_policy', `no daily reset at ${show(at)} in ${show(timezone)}`, { cause });
  }
}

function walkToBoundary(timezone: string, at: string, activity: number): Day {
  const instant = Temporal.Instant.fromEpochMilliseconds(Math.floor(activity));
  // The boundary of yesterday can lie ahead, where the clock skipped it past midnight or skipped the whole day.
  let date = instant.toZonedDateTimeISO(timezone).toPlainDate().subtract({ days: 1 });
  let from = activity;
  for (;;) {
    const boundary = date.toZonedDateTime({ timeZone: timezone, plainTime: at }).epochMilliseconds;
    if (boundary > activity) return { from, to: boundary };
    from = boundary;
    date = date.add({ days: 1 });
  }
}

/** Throws `bad_policy` with the path and the reason unless the value is a complete, valid policy. */
export function validatePolicy(
  policy: Readonly<Record<string, unknown>>,
): asserts policy is ResetPolicy & typeof policy {
  for (const [name, value] of Object.entries(policy)) {
    const field = FIELDS.find((known) => known === name);
    if (field === undefined) throw badPolicy(`reset.${name} is no setting; there are ${FIELDS.join(', ')}`);
    const fault = value === undefined ? null : CHECKS[field](value);
    if (fault !== null) throw badPolicy(`reset.${name}: ${show(value)} is ${fault}`);
  }
  for (const field of FIELDS) {
    if (policy[field] === undefined) throw badPolicy(`reset.${field} is missing`);
  }
}

/** What is wrong with the value of each field, as the end of a sentence, or null. */
const CHECKS: { readonly [F in keyof ResetPolicy]: (value: unknown) => string | null } = {
  mode: (value) =>
    unless(
      RESET_MODES.some((mode) => mode === value),
      `none of ${RESET_MODES.join(', ')}`,
    ),
  idleMs: (value) => whole(value, 1, MAX_DURATION_MS),
  at: (value) => unless(isText(value) && /^(?:[01]\d|2[0-3]):[0-5]\d$/.test(value), 'not HH:MM from 00:00 to 23:59'),
  timezone: (value) => unless(isText(value) && isZone(value), 'not the IANA name of a time zone'),
  notify: (value) =>
    unless(
      NOTIFY_MODES.some((mode) => mode === value),
      `none of ${NOTIFY_MODES.join(', ')}`,
    ),
  notifyExclude: (value) => unless(Array.isArray(value) && value.every(isText), 'not a list of platforms'),
};

const FIELDS = Object.keys(CHECKS) as readonly (keyof ResetPolicy)[];

function whole(value: unknown, least: number, most: number): string | null {
  const fits = typeof value === 'number' && Number.isInteger(value) && value >= least && value <= most;
  return unless(fits, `not a whole number from ${least} to ${most}`);
}

function isZone(name: string): boolean {
  // Intl also takes offsets such as +01:00, which know no daylight saving time.
  if (!/^[A-Za-z]/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

const isText = (value: unknown): value is string => typeof value === 'string';

function unless(holds: boolean, fault: string): string | null {
  return holds ? null : fault;
}

function show(value: unknown): string {
  return typeof value === 'string' ? JSON.stringify(value.slice(0, 40)) : String(value);
}

function badPolicy(message: string): MoiraiError {
  return new MoiraiError('bad_policy', message);
}

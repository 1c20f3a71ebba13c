import { isPlatformName } from '../lifecycle/session-key.ts';
import { list, named, overrides, section, setting } from '../settings/declaration.ts';
import { duration, flag, optional, text, timer, whole } from '../settings/kinds.ts';
import { notifyMode, policyField, timezone } from './kinds.ts';

const reset = {
  mode: setting(
    policyField('mode'),
    'idle',
    'when a session ends by itself: `none`, `idle`, `daily`, or `both`, of which the earlier counts',
  ),
  idle: setting(duration(), '24h', 'after how long without activity'),
  at: setting(policyField('at'), '04:00', 'the time of the daily reset'),
  timezone: setting(timezone, null, "the zone of that time, such as `Europe/Rome`; null for the machine's"),
  notify: setting(
    notifyMode,
    'next',
    'when people are told that their session expired: `next` with their next message, `at_once` (or `true`) when it does, one notice for a place however many people are there, `never` (or `false`)',
  ),
  notify_exclude: list(text, 'platforms whose users are not told', ['api', 'webhook']),
};

const byType = { dm: overrides(reset), group: overrides(reset), channel: overrides(reset), thread: overrides(reset) };

/** Of a section whose own name says that these are milliseconds. */
const kept = { ...optional(duration()), unit: '' as const };

export const sessions = section(
  {
    reset: section(reset),
    reset_by_type: overrides(
      byType,
      'for `dm`, `group`, `channel` or `thread`: any fields of `sessions.reset`, in its place',
    ),
    reset_by_platform: named(
      isPlatformName,
      'not the name of a platform',
      overrides(reset),
      'for `telegram` and others: the same, in place of both',
    ),
    group_per_user: setting(flag, true, 'whether each member of a group has a session of their own'),
    thread_per_user: setting(flag, false, 'the same for threads'),
    heartbeat: setting(timer(), '15s', 'how often a process says that it lives; shorter than `sessions.lease_ttl`'),
    lease_ttl: setting(
      timer(),
      '90s',
      'after how long of silence it is taken for dead, where that cannot be proved sooner',
    ),
    resume_window: setting(
      duration(0),
      '1h',
      'how long after it was interrupted a turn may still be resumed; `0s` is never',
    ),
    stuck_after: setting(whole(1), 3, 'the interruption of one turn that parks its session as stuck'),
    retention: {
      ...section({
        chat: setting(kept, null, 'how long ended sessions of this kind are kept; null is forever'),
        cli: setting(kept, null, ''),
        cron: setting(kept, '30d', ''),
        webhook: setting(kept, '30d', ''),
        batch: setting(kept, '30d', ''),
        api: setting(kept, '30d', ''),
        child: setting(kept, '30d', ''),
        events: setting(
          kept,
          '90d',
          'how long events are kept in the log; one that a subscriber has not received stays',
        ),
      }),
      unit: 'Ms' as const,
    },
  },
  {
    rule: ({ heartbeatMs, leaseTtlMs }) =>
      heartbeatMs !== undefined && leaseTtlMs !== undefined && heartbeatMs >= leaseTtlMs
        ? { key: 'heartbeat', fault: 'not shorter than sessions.lease_ttl: the lease would run out between two beats' }
        : null,
  },
);

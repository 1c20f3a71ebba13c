import type { WebhookConfig } from '../config/config.ts';
import { isoTime } from '../engine/views.ts';
import type { FoundHook } from '../extensions/hooks/hook-kind.ts';
import type { SubscriberStatus } from '../store/transactions/subscribers.ts';

/** A hook or webhook as it is listed: what its folder or the configuration says, and how it stands in the store. */
export interface HookRow {
  readonly name: string;
  readonly type: 'file' | 'webhook';
  /** `new`: no gateway has seen it yet; `removed`: what is left of one whose folder or entry is gone. */
  readonly state: 'ready' | 'new' | 'disabled' | 'bad' | 'removed';
  readonly problem: string | null;
  readonly description: string | null;
  readonly events: readonly string[];
  readonly handler: string | null;
  readonly subscriber: string;
  readonly lag: number;
  readonly oldest_pending_at: string | null;
  readonly failures: number;
  readonly dead_letters: number;
  readonly last_error: string | null;
}

/** All hooks and webhooks that there are, or were. */
export function hookRows(
  found: readonly FoundHook[],
  webhooks: readonly WebhookConfig[],
  subscribers: readonly SubscriberStatus[],
): HookRow[] {
  const statusOf = (name: string): SubscriberStatus | undefined => subscribers.find((each) => each.name === name);
  const rows = [
    ...found.map((hook) => fileRow(hook, statusOf(`hook:${hook.name}`))),
    ...webhooks.map((webhook) => webhookRow(webhook, statusOf(`webhook:${webhook.name}`))),
  ];
  const listed = new Set(rows.map(({ subscriber }) => subscriber));
  const left = subscribers.filter(({ name }) => /^(web)?hook:/.test(name) && !listed.has(name));
  return [...rows, ...left.map(removedRow)];
}

function fileRow(hook: FoundHook, status: SubscriberStatus | undefined): HookRow {
  const { name } = hook;
  const common = { name, type: 'file', subscriber: `hook:${name}`, ...figuresOf(status) } as const;
  if (hook.state === 'bad') {
    return { ...common, state: 'bad', problem: hook.problem, description: null, events: [], handler: null };
  }
  const { description, events } = hook.manifest;
  const state = hook.state === 'ready' && status === undefined ? 'new' : hook.state;
  return { ...common, state, problem: null, description, events, handler: hook.handler.file };
}

function webhookRow({ name, events }: WebhookConfig, status: SubscriberStatus | undefined): HookRow {
  const common = { name, type: 'webhook', events, problem: null, description: null, handler: null } as const;
  const state = status === undefined ? 'new' : 'ready';
  return { ...common, state, subscriber: `webhook:${name}`, ...figuresOf(status) };
}

function removedRow(status: SubscriberStatus): HookRow {
  const [kind = '', ...rest] = status.name.split(':');
  return {
    ...{ name: rest.join(':'), type: kind === 'hook' ? 'file' : 'webhook', state: 'removed', problem: null },
    ...{ description: null, handler: null, events: status.patterns, subscriber: status.name },
    ...figuresOf(status),
  };
}

/** How far a subscriber is. */
export function figuresOf(status: SubscriberStatus | undefined) {
  return {
    lag: status?.lag ?? 0,
    oldest_pending_at: isoTime(status?.oldestPendingAt ?? null),
    failures: status?.failures ?? 0,
    dead_letters: status?.deadLetters ?? 0,
    last_error: status?.lastError ?? null,
  };
}

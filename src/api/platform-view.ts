import { isoTime } from '../engine/views.ts';
import { splitPlatformName } from '../lifecycle/session-key.ts';
import type { PlatformStanding } from './backend.ts';

/** How an account of a platform stands, as clients and `--json` see it. */
export interface PlatformView {
  readonly name: string;
  readonly account: string | null;
  readonly phase: string;
  readonly problem: string | null;
  readonly last_success_at: string | null;
}

export function platformView({ name, phase, problem, lastSuccessAt }: PlatformStanding): PlatformView {
  const { platform, account = null } = splitPlatformName(name);
  return { name: platform, account, phase, problem, last_success_at: isoTime(lastSuccessAt) };
}

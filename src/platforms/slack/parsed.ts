import type { Incoming, PlatformEvent, Press } from '../platform.ts';

/** What Slack tells us, as far as it means something to us. */
export type Parsed =
  | { readonly kind: 'message'; readonly message: Incoming }
  /** A slash command: nothing brings it again, and whoever gave it waits. */
  | { readonly kind: 'command'; readonly message: Incoming; readonly answerTo: string | null }
  | { readonly kind: 'press'; readonly press: Press; readonly answerTo: string | null }
  /** `id` is the same when Slack brings it again. */
  | { readonly kind: 'event'; readonly id: string; readonly event: PlatformEvent }
  | { readonly kind: 'moved'; readonly id: string; readonly from: string; readonly to: string }
  /** Somebody opened a thread of the assistant. */
  | { readonly kind: 'opened'; readonly channel: string; readonly thread: string }
  /** The app was removed from the workspace, or a token taken back. */
  | { readonly kind: 'revoked' };

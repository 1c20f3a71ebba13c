const PARKED_BECAUSE: Readonly<Record<string, string>> = {
  operator: 'An operator parked it. What is said in it waits until it is released.',
  stuck_loop:
    'Its turn was interrupted too often in a row. The next message starts a new session, unless this one is released.',
};

/** Why a session is parked, and how it goes on; a reason of another version is not known here. */
export function parkedText(reason: string | null): string {
  return PARKED_BECAUSE[reason ?? ''] ?? 'It is parked. It goes on when it is released.';
}

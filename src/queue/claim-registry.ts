import type { LaneClaim } from '../store/transactions/queue.ts';

/**
 * The claims this process knows of. The store is compared with it from time to time: a claim in the store that is not
 * here was made by a write whose answer was lost, or belongs to work that ended without a word.
 */
export class ClaimRegistry {
  readonly #tokens = new Set<string>();
  readonly #lanes = new Set<string>();

  /** A claim is being asked for under this token, and what it returns is not known yet. */
  begin(token: string): void {
    this.#tokens.add(token);
  }

  /** What the claim returned is known: exactly these lanes. */
  claimed(token: string, lanes: readonly LaneClaim[]): void {
    for (const lane of lanes) this.#lanes.add(nameOf(lane));
    this.#tokens.delete(token);
  }

  done(lane: LaneClaim): void {
    this.#lanes.delete(nameOf(lane));
  }

  knows(lane: LaneClaim): boolean {
    return this.#tokens.has(lane.token) || this.#lanes.has(nameOf(lane));
  }
}

function nameOf({ queue, key, token }: LaneClaim): string {
  return `${token}\n${queue}\n${key}`;
}

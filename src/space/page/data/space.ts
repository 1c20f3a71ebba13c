import { computed, type ReadonlySignal, signal } from '@preact/signals';
import type { EndView } from '../protocol.ts';
import { AnswerError, sentenceOf } from './answer-error.ts';
import type { KeyRing } from './key-ring.ts';
import { backoff, follow } from './link.ts';
import type { SeenSession } from './reading.ts';
import { askJson, type Fetcher, fetchWithKey, makeSource, type Place, type Source } from './source.ts';
import { World } from './world.ts';

/** How many vanished sessions are asked after; of a great flood the rest is in the list of ended ones. */
const ASKED_AFTER = 20;

/** How many of the six connections of a browser are held by one page. */
const MOST_STREAMS = 3;

export interface SpaceParts {
  readonly ring: KeyRing;
  readonly fetcher: Fetcher;
  /** Whether somebody looks at the page. */
  readonly watched: ReadonlySignal<boolean>;
  readonly frame: (show: () => void) => void;
}

/** The page's whole knowledge: which sources there are, and what goes on in them. */
export class Space {
  readonly ring: KeyRing;
  readonly world: World;
  /** Why it is not known yet which sources there are; null once it is. */
  readonly waiting = signal<string | null>('connecting');
  readonly chat = signal(true);
  readonly #parts: SpaceParts;

  constructor(parts: SpaceParts) {
    this.#parts = parts;
    this.ring = parts.ring;
    this.world = new World({ frame: parts.frame, now: Date.now });
  }

  /** Finds the sources and follows each of them, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { watched } = this.#parts;
    for (const [index, place] of (await this.#places(signal)).entries()) {
      const source = makeSource(place, this.ring, this.#parts.fetcher);
      this.world.add(source);
      void follow(
        source,
        {
          ...{ world: this.world, ring: this.ring, random: Math.random, pause },
          streaming: computed(() => watched.value && index < MOST_STREAMS),
          vanished: (from, sessions) => void this.#askAfter(from, sessions),
        },
        signal,
      );
    }
  }

  async #places(signal: AbortSignal): Promise<readonly Place[]> {
    for (let attempt = 0; !signal.aborted; attempt++) {
      const before = this.ring.given.value;
      try {
        const response = await fetchWithKey('/space.json', { signal }, this.ring, this.#parts.fetcher);
        if (!response.ok) throw await AnswerError.from(response);
        const { sources, chat } = (await response.json()) as { sources: readonly Place[]; chat?: boolean };
        this.waiting.value = null;
        this.chat.value = chat !== false;
        return sources;
      } catch (thrown) {
        this.waiting.value = sentenceOf(thrown);
        const refused = thrown instanceof AnswerError && thrown.status === 401;
        await (refused ? this.#nextKey(before) : pause(waitOf(thrown) ?? backoff(attempt, Math.random), signal));
      }
    }
    return [];
  }

  #nextKey(before: number): Promise<void> {
    return new Promise((resolve) => {
      const stop = this.ring.given.subscribe((count) => {
        if (count === before) return;
        resolve();
        // Not at once: while it is being subscribed there is nothing to stop yet.
        queueMicrotask(() => stop());
      });
    });
  }

  /** Sessions that were there before the connection broke and are not any more: how they ended is asked. */
  async #askAfter(source: Source, sessions: readonly SeenSession[]): Promise<void> {
    for (const view of sessions.slice(0, ASKED_AFTER)) {
      const { id } = view;
      if (this.world.hasEnded(id)) continue;
      const end = await askEnd(source, id).catch(() => null);
      if (end !== null) this.world.end(source.id, end, view);
    }
  }
}

async function askEnd(source: Source, id: string): Promise<EndView | null> {
  const session = await askJson<Record<string, string | null>>(source, `/v1/sessions/${encodeURIComponent(id)}`);
  if (session.state !== 'ended') return null;
  const { end_reason, end_cause, ended_at } = session;
  return { id, reason: end_reason ?? 'unknown', cause: end_cause ?? null, at: ended_at ?? '' };
}

function waitOf(thrown: unknown): number | null {
  return thrown instanceof AnswerError && thrown.waitSeconds !== null ? thrown.waitSeconds * 1000 : null;
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      resolve();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener('abort', finish);
    if (signal.aborted) finish();
  });
}

import { computed, type ReadonlySignal, signal } from '@preact/signals';
import type { SessionView } from '../protocol.ts';
import { sentenceOf } from './answer-error.ts';
import { askSession, endOf } from './kept-session.ts';
import type { KeyRing } from './key-ring.ts';
import { follow, type LinkParts, type Retrying, waitAfter } from './link.ts';
import { askJson, type Fetcher, makeSource, type Place, type Source } from './source.ts';
import { World } from './world.ts';

/** How many vanished sessions are asked after; of a great flood the rest is in the list of ended ones. */
const ASKED_AFTER = 20;

/** How many of the six connections of a browser are held by one page. */
const MOST_STREAMS = 3;

export interface SpaceParts {
  readonly ring: KeyRing;
  readonly fetcher: Fetcher;
  /** Whether a person looks at the page. */
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
  readonly #retrying: Retrying;

  constructor(parts: SpaceParts) {
    this.#parts = parts;
    this.#retrying = { ring: parts.ring, random: Math.random, pause };
    this.ring = parts.ring;
    this.world = new World({ frame: parts.frame, now: Date.now });
  }

  /** Finds the sources and follows each of them, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { watched } = this.#parts;
    for (const [index, place] of (await this.#places(signal)).entries()) {
      const source = makeSource(place, this.ring, this.#parts.fetcher);
      this.world.add(source);
      const parts: LinkParts = {
        ...this.#retrying,
        world: this.world,
        streaming: computed(() => watched.value && index < MOST_STREAMS),
        vanished: (from, sessions) => void this.#askAfter(from, sessions),
      };
      void follow(source, parts, signal);
    }
  }

  async #places(signal: AbortSignal): Promise<readonly Place[]> {
    const here = makeSource({ name: '', base: '' }, this.ring, this.#parts.fetcher);
    for (let attempt = 0; !signal.aborted; attempt++) {
      const given = this.ring.given.value;
      try {
        const answer = await askJson<{ sources: readonly Place[]; chat?: boolean }>(here, '/space.json', { signal });
        this.waiting.value = null;
        this.chat.value = answer.chat !== false;
        return answer.sources;
      } catch (thrown) {
        this.waiting.value = sentenceOf(thrown);
        await waitAfter(thrown, attempt, given, this.#retrying, signal);
      }
    }
    return [];
  }

  /** Sessions that were there before the connection broke and are not any more: how they ended is asked. */
  async #askAfter(source: Source, sessions: readonly SessionView[]): Promise<void> {
    for (const view of sessions.slice(0, ASKED_AFTER)) {
      if (this.world.hasEnded(view.id)) continue;
      const end = await askSession(source, view.id).then(endOf, () => null);
      if (end !== null) this.world.end(end, view);
    }
  }
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

import { type Fields, integerOf } from '../fields.ts';
import { ApiError, at, type MatrixApi } from './api.ts';
import { isAcceptance, isBeginning } from './comings.ts';
import { positionOf } from './ids.ts';
import { EVENT_TYPES } from './parse.ts';
import { eventsIn } from './parse-sync.ts';

const PAGE = 50;
/** Pages that are kept while older ones are asked for. The others are asked for again: a gap may be of any length. */
const KEPT_PAGES = 4;
/** More is no gap: something is wrong with the positions. */
const MOST_PAGES = 2000;

/** What was left out before the events that a sync brought of a room. */
export interface Gap {
  readonly room: string;
  /** Where it ends. */
  readonly from: string;
  /** Where it begins, as far as the server knows that position. */
  readonly to: string | null;
  /** The last event that we have; null for none. */
  readonly last: string | null;
  /** Where nothing else tells where the gap begins: what was said before this is none of it. */
  readonly after: number;
  readonly self: string;
}

interface Page {
  /** Where to ask for it. */
  readonly from: string;
  /** Newest first. */
  readonly events: readonly Fields[];
  readonly end: string | null;
  /** Why nothing before it is asked for: the last event that we have, how we came to be there, or that it was said too long ago. */
  readonly sign: 'known' | 'came' | 'old' | null;
}

/** Reads a gap. The server gives it from its end on; only a few pages of it are held meanwhile. */
export class GapReader {
  readonly #gap: Gap;
  readonly #api: MatrixApi;
  readonly #signal: AbortSignal;
  #to: string | null;
  /** It is certain where the gap begins. */
  #isSure = false;

  constructor(gap: Gap, api: MatrixApi, signal: AbortSignal) {
    this.#gap = gap;
    this.#api = api;
    this.#signal = signal;
    this.#to = gap.to;
  }

  /** The events, oldest first. What the server does not give for good is left out, with a warning. */
  async *pages(): AsyncGenerator<readonly Fields[]> {
    const pages = await this.#walkBack();
    for (let page = pages.pop(); page !== undefined; page = pages.pop()) {
      const { events } = typeof page === 'string' ? ((await this.#read(page)) ?? { events: [] }) : page;
      const { after } = this.#gap;
      yield (this.#isSure ? events : events.filter((event) => timeOf(event) >= after)).toReversed();
    }
  }

  /** Newest first: the pages themselves, and of those that were let go where to ask for them. */
  async #walkBack(): Promise<(Page | string)[]> {
    const pages: (Page | string)[] = [];
    for (let from: string | null = this.#gap.from; from !== null; ) {
      const page: Page | null = await this.#read(from);
      if (page === null) return pages;
      pages.push(page);
      const newer = pages.length - 1 - KEPT_PAGES;
      if (newer >= 0) pages[newer] = pageStart(pages[newer]);
      const hasEnded = page.end === null || page.end === from;
      if (page.sign !== null || hasEnded) {
        const { last } = this.#gap;
        this.#isSure = this.#to !== null || page.sign === 'known' || (page.sign === 'came' && last === null);
        return pages;
      }
      from = pages.length < MOST_PAGES ? page.end : null;
    }
    this.#warn('it is too long');
    return pages;
  }

  async #read(from: string): Promise<Page | null> {
    try {
      return await this.#api.callUntilAnswered((signal) => this.#readPage(from, signal), this.#signal);
    } catch (thrown) {
      if (!(thrown instanceof ApiError)) throw thrown;
      this.#warn(thrown.message);
      return null;
    }
  }

  async #readPage(from: string, signal: AbortSignal): Promise<Page> {
    const { last, self, after } = this.#gap;
    const answer = await this.#ask(from, signal);
    const events = eventsIn(answer.chunk);
    const known = last === null ? -1 : events.findIndex((event) => event.event_id === last);
    // What was said before is not for us.
    const coming = events.findIndex((event) => isBeginning(event, self));
    if (this.#to !== null && coming < 0 && events.some((event) => isAcceptance(event, self))) {
      // The invite, and what was said since, may lie before the position that the sync began at.
      this.#to = null;
      return this.#readPage(from, signal);
    }
    const ends = [known < 0 ? events.length : known, coming < 0 ? events.length : coming + 1];
    const isOld = events.length > 0 && events.every((event) => timeOf(event) < after);
    const older = isOld && this.#to === null ? 'old' : null;
    const sign = known >= 0 ? 'known' : coming >= 0 ? 'came' : older;
    return { from, events: events.slice(0, Math.min(...ends)), end: positionOf(answer.end), sign };
  }

  async #ask(from: string, signal: AbortSignal): Promise<Fields> {
    const path = at`/_matrix/client/v3/rooms/${this.#gap.room}/messages`;
    const filter = JSON.stringify({ types: EVENT_TYPES, lazy_load_members: true });
    const query = { dir: 'b', limit: String(PAGE), from, filter };
    try {
      return await this.#api.call(path, signal, { query: { ...query, to: this.#to } });
    } catch (thrown) {
      if (this.#to === null || !(thrown instanceof ApiError) || thrown.status !== 400) throw thrown;
      // Not every server takes the position of a sync there. Where the gap begins has other signs, too.
      this.#to = null;
      return this.#api.call(path, signal, { query });
    }
  }

  #warn(why: string): void {
    const { room } = this.#gap;
    this.#api.runtime.warn('a part of what was said in a room while we were away was not given', { room, why });
  }
}

function pageStart(page: Page | string | undefined): string {
  return typeof page === 'object' ? page.from : (page ?? '');
}

function timeOf(event: Fields): number {
  return integerOf(event.origin_server_ts) ?? Number.POSITIVE_INFINITY;
}

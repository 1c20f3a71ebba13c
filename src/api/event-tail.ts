import { eventView } from '../engine/views.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import { matches } from '../lifecycle/events.ts';
import { isWithin, type Within } from '../lifecycle/namespace.ts';
import type { Store } from '../store/port.ts';
import type { SequencedEvent } from '../store/transactions/reading.ts';
import type { ApiLog } from './api.ts';
import { frame, HEARTBEAT, HEARTBEAT_MS, type Listener } from './event-stream.ts';
import { Mailbox } from './mailbox.ts';

/** Which events a follower wants. */
export interface Wanted {
  readonly after: number;
  /** Exact types, `prefix:*` or `*`; empty for all. */
  readonly types: readonly string[];
  readonly sessionId: string | null;
  /** Only of these conversations. */
  readonly within: Within;
}

interface Follower {
  readonly wanted: Wanted;
  /** Numbers up to here reach it in another way. */
  readonly after: number;
  readonly mailbox: Mailbox<TailEvent>;
  /** Since when more came than its mailbox holds: it reads the log itself once it has taken what is there. */
  behindSince: number | null;
  drop(): void;
}

/** An event with its text for the wire, which all followers share. */
interface TailEvent {
  readonly seq: number;
  readonly event: SequencedEvent['event'];
  readonly text: string;
}

const PAGE = 500;
const POLL_MS = 100;
/** Commits come in crowds: one look for all of them. */
const SETTLE_MS = 5;
const RETRY_MS = 1000;
/** How many of the newest events are kept, for followers that come back after a cut connection. */
const RECENT = 2000;
/** What may wait for one follower. A crowd of commits is more than that at once; who reads catches up from the log. */
const MAILBOX_BYTES = 4 * 1024 * 1024;
/** A client that has not taken what waits after so long does not read: it is dropped, and resumes where it was. */
const DEAF_MS = 10_000;

/**
 * Reads the log once for all followers, while there are any. A follower reads the log by itself until it is near the end;
 * from there on it gets events from here.
 */
export class EventTail {
  readonly #store: Store;
  readonly #log: ApiLog;
  readonly #followers = new Set<Follower>();
  #recent: TailEvent[] = [];
  /** Everything after this number and up to the position is in `#recent`. */
  #recentFrom = 0;
  #position = 0;
  #running: Promise<void> | null = null;
  #closed = false;
  /** A commit was heard of since the last look. */
  #woken = false;
  #wake: () => void = () => undefined;

  constructor(store: Store, log: ApiLog) {
    this.#store = store;
    this.#log = log;
  }

  /** How many follow just now. */
  get followers(): number {
    return this.#followers.size;
  }

  /** The events after a number, as text for the wire, until the listener has gone. */
  async *follow(wanted: Wanted, listener: Listener): AsyncGenerator<string> {
    yield ': following\n\n';
    let after = wanted.after;
    for (;;) {
      this.#running ??= this.#start();
      await this.#running;
      if (listener.signal.aborted) return;
      // The reader may have stopped for want of followers just before this one came.
      if (this.#running === null) continue;
      // No pause between this look and joining: what comes meanwhile would be missed.
      if (after >= this.#recentFrom) {
        const behind = yield* this.#listen(wanted, after, listener);
        if (behind === null) return;
        after = behind;
        continue;
      }
      const upTo = this.#position;
      const page = await this.#store.read('listEvents', { ...wanted, after, limit: PAGE });
      if (page.events.length > 0) yield page.events.map((event) => tell(event).text).join('');
      // A page that is not full has all there was: what it lacks up to here is not wanted.
      after = page.events.length === PAGE ? page.next : Math.max(page.next, upTo);
    }
  }

  close(): void {
    this.#closed = true;
    this.#wake();
    for (const { mailbox } of this.#followers) mailbox.close();
  }

  /** Returns the last number it told when it cannot keep up by being told; null when it is over. */
  async *#listen(wanted: Wanted, after: number, listener: Listener): AsyncGenerator<string, number | null> {
    const mailbox = new Mailbox<TailEvent>(MAILBOX_BYTES);
    const joined = Math.max(after, this.#position);
    const follower: Follower = { wanted, after: joined, mailbox, behindSince: null, drop: listener.drop };
    this.#followers.add(follower);
    // Not by the mailbox: it is for what comes in faster than it is read, and this may be more than it holds.
    const missed = this.#recent.filter((tailEvent) => tailEvent.seq > after && wants(wanted, tailEvent.event));
    let last = joined;
    try {
      for (const tailEvent of missed) yield tailEvent.text;
      for await (const waiting of mailbox.batches(HEARTBEAT_MS, listener.signal)) {
        yield waiting.length === 0 ? HEARTBEAT : waiting.map(({ text }) => text).join('');
        last = waiting.at(-1)?.seq ?? last;
        if (follower.behindSince !== null) return last;
      }
      return null;
    } finally {
      this.#followers.delete(follower);
      this.#wake();
    }
  }

  /** Starts to read; resolves once the position is known. */
  async #start(): Promise<void> {
    try {
      this.#position = await this.#store.read('lastSeq', {});
    } catch (thrown) {
      this.#running = null;
      throw thrown;
    }
    this.#recentFrom = this.#position;
    this.#recent = [];
    void this.#read();
  }

  async #read(): Promise<void> {
    const unlisten = this.#store.onCommit(() => {
      this.#woken = true;
      this.#wake();
    });
    let idleSince = Date.now();
    while (!this.#closed && Date.now() - idleSince < RETRY_MS) {
      const more = await this.#readPage();
      if (!more) await this.#pause(POLL_MS);
      // Followers that come and go, or are about to join, do not make it start anew each time.
      if (this.#followers.size > 0) idleSince = Date.now();
    }
    unlisten();
    this.#running = null;
  }

  /** True when there may be more at once. */
  async #readPage(): Promise<boolean> {
    this.#woken = false;
    try {
      const everything = { after: this.#position, limit: PAGE, types: [], sessionId: null };
      const { events, next } = await this.#store.read('listEvents', everything);
      for (const event of events) {
        const tailEvent = tell(event);
        this.#recent.push(tailEvent);
        for (const follower of this.#followers) hand(follower, tailEvent);
      }
      this.#position = next;
      this.#forget();
      return events.length === PAGE;
    } catch (thrown) {
      if (this.#closed) return false;
      this.#log.warn('the log could not be read; trying again', { error: MoiraiError.wrap(thrown) });
      await new Promise((done) => setTimeout(done, RETRY_MS));
      return false;
    }
  }

  #forget(): void {
    if (this.#recent.length <= RECENT) return;
    const forgotten = this.#recent.splice(0, this.#recent.length - RECENT);
    this.#recentFrom = forgotten.at(-1)?.seq ?? this.#recentFrom;
  }

  /** Until a commit is heard of. Other processes' commits are not: for those it looks from time to time. */
  #pause(ms: number): Promise<void> {
    return new Promise((resolve) => {
      // A commit during the last look may have come too late for it.
      const timer = setTimeout(resolve, this.#woken ? SETTLE_MS : ms);
      this.#wake = () => {
        this.#wake = () => undefined;
        clearTimeout(timer);
        setTimeout(resolve, SETTLE_MS);
      };
    });
  }
}

function hand(follower: Follower, tailEvent: TailEvent): void {
  const { wanted, after, mailbox } = follower;
  if (tailEvent.seq <= after || !wants(wanted, tailEvent.event)) return;
  if (follower.behindSince === null) {
    if (!mailbox.put(tailEvent, tailEvent.text.length)) follower.behindSince = performance.now();
  } else if (performance.now() - follower.behindSince > DEAF_MS) follower.drop();
}

function wants({ types, sessionId, within }: Wanted, event: SequencedEvent['event']): boolean {
  if (!isWithin(event.session_key, within)) return false;
  if (sessionId !== null && event.session_id !== sessionId) return false;
  return types.length === 0 || types.some((pattern) => matches(pattern, event.type));
}

function tell(sequenced: SequencedEvent): TailEvent {
  const { seq, event } = sequenced;
  return { seq, event, text: frame(eventView(sequenced), { id: seq }) };
}

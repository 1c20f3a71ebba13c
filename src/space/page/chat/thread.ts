import { batch, computed, signal } from '@preact/signals';
import { sentenceOf } from '../data/answer-error.ts';
import { keepItem } from '../data/keep-item.ts';
import { newId } from './conversation-store.ts';
import { History, type HistoryOptions } from './history.ts';
import { type Live, LiveReplyBuffer } from './live-reply-buffer.ts';
import { ConnectionLost, isCommand, type Outcome, type ReplyEvent, sendMessage } from './send-message.ts';
import { itemsOf, type Note, noteOf } from './transcript.ts';

/** Something said here that is not answered yet. */
export type Send = ReturnType<typeof makeSend>;

function makeSend(key: string, text: string, at: string, turnId: string | null, quiet: boolean) {
  return {
    key,
    text,
    at,
    turnId: signal(turnId),
    live: signal(FRESH),
    /** Sent by a button, and not shown. */
    quiet,
    /** Its reply was received from its beginning. */
    whole: turnId === null,
  };
}

const FRESH: Live = { state: 'sending', reply: '', tools: [], questions: [], trouble: null };

export interface ThreadOptions extends Omit<HistoryOptions, 'closing'> {
  /** For what was said and is not answered: a reload goes on waiting for it. */
  readonly shelf: Storage;
  /** Hears each reply once, for those who cannot see it. */
  readonly replied: (text: string) => void;
}

/** One conversation: what was said in it, and what is being said now. */
export class Thread {
  readonly conversation: string;
  readonly sends = signal<readonly Send[]>([]);
  readonly history: History;
  readonly #notes = signal<readonly Note[]>([]);
  readonly #options: ThreadOptions;
  readonly #closing = new AbortController();

  /** The turns that are told live: one string, so that nothing is made anew for every word of them. */
  readonly #shownTurns = computed(() => {
    const heard = this.sends.value.filter(({ live, whole }) => whole && live.value.state !== 'failed');
    return heard.flatMap(({ turnId }) => turnId.value ?? []).join(' ');
  });
  readonly items = computed(() =>
    itemsOf(this.history.parts.value, this.#notes.value, new Set(this.#shownTurns.value.split(' '))),
  );
  /** Turns whose question is in the transcript already. */
  readonly asked = computed(() => {
    const rows = this.history.parts.value.flatMap((part) => part.rows);
    return new Set(rows.flatMap(({ role, turn_id }) => (role === 'user' ? (turn_id ?? []) : [])));
  });
  readonly busy = computed(() => this.sends.value.some(isTurn));

  constructor(options: ThreadOptions) {
    this.#options = options;
    this.conversation = options.conversation;
    this.history = new History({ ...options, closing: this.#closing.signal });
    for (const { key, text, at, turnId } of this.#unanswered()) this.#begin(makeSend(key, text, at, turnId, false));
  }

  close(): void {
    this.#closing.abort();
  }

  /** Something said before it is not answered yet. */
  isWaiting(send: Send): boolean {
    const { value: all } = this.sends;
    return all.slice(0, all.indexOf(send)).some(isTurn);
  }

  notesBehind(send: Send): readonly Note[] {
    return this.#notes.value.filter(({ behind }) => behind === send.key);
  }

  say(text: string, quiet = false): void {
    this.#begin(makeSend(newId(), text, new Date().toISOString(), null, quiet));
  }

  /** The same again under the same key: it is answered once, whatever became of it. */
  sayAgain(send: Send): void {
    send.live.value = FRESH;
    void this.#deliver(send);
  }

  drop(send: Send): void {
    this.sends.value = this.sends.value.filter((other) => other !== send);
    this.#keepUnanswered();
  }

  /** The last thing that was said here. */
  lastSaid(): string {
    const last = this.sends.value.findLast(({ quiet }) => !quiet)?.text;
    const row = this.items.value.findLast((item) => item.type === 'message' && item.from === 'user');
    return last ?? (row?.type === 'message' ? row.text : '');
  }

  #begin(send: Send): void {
    this.sends.value = [...this.sends.value, send];
    this.#keepUnanswered();
    void this.#deliver(send);
  }

  async #deliver(send: Send): Promise<void> {
    const { source } = this.#options;
    const { key, text, turnId } = send;
    const buffer = new LiveReplyBuffer(send.live);
    const receive = (event: ReplyEvent): void => {
      if (event.type === 'taken') {
        turnId.value = event.turnId;
        this.#keepUnanswered();
      }
      buffer.receive(event);
    };
    const message = { conversation: this.conversation, text, key, turnId: turnId.value };
    try {
      const outcome = await sendMessage(source, message, receive, this.#closing.signal);
      buffer.close();
      await this.#settle(send, outcome);
    } catch (thrown) {
      buffer.close();
      if (this.#closing.signal.aborted) return;
      send.live.value = { ...send.live.value, state: 'failed', trouble: troubleOf(thrown, send) };
    }
  }

  /** The transcript has it now, or a note tells what came of it. */
  async #settle(send: Send, outcome: Outcome): Promise<void> {
    await this.history.refresh();
    const newest = this.history.parts.value.at(-1);
    const place =
      newest === undefined
        ? null
        : { sessionId: newest.session.id, position: newest.rows.at(-1)?.position ?? newest.before };
    const note = noteOf(outcome);
    const isNews = note !== null && !(send.quiet && outcome.reply === 'Stopped.');
    const command = outcome.turn_id === null && !send.quiet ? send.text : null;
    batch(() => {
      const { value: all } = this.sends;
      const before = all[all.indexOf(send) - 1];
      // Its notes, and its own, go where it goes: into the transcript, or behind what was said before it.
      const where = before === undefined ? { place, behind: null } : { place, behind: before.key };
      const moved = this.#notes.value.map((note) => (note.behind === send.key ? { ...note, ...where } : note));
      this.#notes.value = isNews ? [...moved, { key: `note-${send.key}`, command, ...note, ...where }] : moved;
      this.drop(send);
    });
    if (isNews || outcome.reply !== '') this.#options.replied(note?.text ?? outcome.reply);
  }

  get #shelfName(): string {
    return `moirai-unanswered:${this.#options.source.id}:${this.conversation}`;
  }

  /** Commands are not kept: a reload must not do them again. */
  #keepUnanswered(): void {
    const kept = this.sends.value.filter(({ text, quiet }) => !quiet && !isCommand(text));
    const rows = kept.map(({ key, text, at, turnId }) => ({ key, text, at, turnId: turnId.value }));
    // Where this fails, the reply is in the transcript after a reload all the same.
    keepItem(this.#options.shelf, this.#shelfName, rows.length === 0 ? null : JSON.stringify(rows));
  }

  #unanswered(): { key: string; text: string; at: string; turnId: string | null }[] {
    try {
      return JSON.parse(this.#options.shelf.getItem(this.#shelfName) ?? '[]');
    } catch {
      // Not ours: nothing waits.
      return [];
    }
  }
}

/** Something the agent works at, or will. */
const isTurn = ({ live, text, turnId }: Send): boolean =>
  live.value.state !== 'failed' && (turnId.value !== null || !isCommand(text));

function troubleOf(thrown: unknown, { text }: Send): string {
  if (thrown instanceof ConnectionLost) {
    return isCommand(text)
      ? 'The connection was lost: whether this was done is not known.'
      : 'Nobody answers. Send it again when the gateway is back; it is answered once, even if it had arrived.';
  }
  return sentenceOf(thrown);
}

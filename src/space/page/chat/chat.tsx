import type { ReadonlySignal } from '@preact/signals';
import { useSignalEffect } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { clampText, plainLine } from '../data/plain-text.ts';
import type { Source } from '../data/source.ts';
import { Composer } from './composer.tsx';
import { ConversationBook } from './conversation-book.ts';
import { ConversationHead, ConversationList } from './conversation-list.tsx';
import { Log } from './log.tsx';
import { Thread } from './thread.ts';
import './chat.css';

export interface ChatProps {
  readonly source: Source;
  /** Changes when something happened in the gateway; without it the page looks for itself. */
  readonly changes?: ReadonlySignal<unknown>;
}

const LOOK_EVERY_MS = 5000;
/** The list changes less than what is open. */
const LIST_EVERY = 3;
const CHANGE_PAUSE_MS = 300;
const ANNOUNCED_CHARS = 400;

/** Conversations with the agent of one gateway. */
export function Chat({ source, changes }: ChatProps) {
  const [announced, setAnnounced] = useState('');
  const [drawer, setDrawer] = useState(false);
  const { book, threads } = useMemo(() => openBook(source, setAnnounced), [source]);
  const thread = threads.get(book.open.value);
  useEffect(() => () => threads.close(), [threads]);
  useLooking(book, thread, changes);
  const side = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!drawer) return undefined;
    side.current?.querySelector('button')?.focus();
    const close = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') setDrawer(false);
    };
    window.addEventListener('keydown', close);
    return () => window.removeEventListener('keydown', close);
  }, [drawer]);

  const say = (text: string): void => {
    if (!text.startsWith('/')) book.said(thread.conversation, text);
    thread.say(text);
  };
  return (
    <section class="chat" aria-label="Chat">
      <div ref={side} class={`chat-side${drawer ? ' chat-side-open' : ''}`}>
        <ConversationList book={book} onChosen={() => setDrawer(false)} />
      </div>
      {drawer && (
        <button type="button" class="chat-veil" aria-label="Close the list" onClick={() => setDrawer(false)} />
      )}
      <div class="chat-main">
        <ConversationHead book={book} drawer={drawer} onList={() => setDrawer(!drawer)} />
        <Log key={thread.conversation} thread={thread} />
        <Composer source={source} thread={thread} onSay={say} />
      </div>
      <p class="chat-hidden" role="status">
        {announced}
      </p>
    </section>
  );
}

function openBook(source: Source, announce: (text: string) => void) {
  const book = new ConversationBook(source, localStorage);
  const open = new Map<string, Thread>();
  const replied = (text: string): void => announce(`Reply: ${plainLine(clampText(text, ANNOUNCED_CHARS).text)}`);
  const threads = {
    /** Conversations stay open, so that a reply comes in while another one is looked at. */
    get(conversation: string): Thread {
      const known = open.get(conversation);
      if (known !== undefined) return known;
      const found = book.take.bind(book);
      const thread = new Thread({ source, conversation, shelf: sessionStorage, found, replied });
      open.set(conversation, thread);
      return thread;
    },
    close(): void {
      for (const thread of open.values()) thread.close();
    },
  };
  return { book, threads };
}

/** Looks for what is new: when the conversation is opened, when something changed, and now and then. */
function useLooking(book: ConversationBook, thread: Thread, changes: ReadonlySignal<unknown> | undefined): void {
  // The threads tell what is wrong; a list that could not be read is read again soon.
  const lookAtList = (): void => void book.refresh().catch(() => undefined);
  useEffect(() => {
    let looks = 0;
    const look = (): void => {
      if (document.hidden) return;
      void thread.history.refresh();
      if (looks++ % LIST_EVERY === 0) lookAtList();
    };
    const reread = (): void => book.read();
    look();
    const timer = setInterval(look, LOOK_EVERY_MS);
    document.addEventListener('visibilitychange', look);
    window.addEventListener('storage', reread);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', look);
      window.removeEventListener('storage', reread);
    };
  }, [book, thread]);
  useSignalEffect(() => {
    if (changes === undefined) return undefined;
    void changes.value;
    const timer = setTimeout(() => void thread.history.refresh().then(lookAtList), CHANGE_PAUSE_MS);
    return () => clearTimeout(timer);
  });
}

import type { ReadonlySignal } from '@preact/signals';
import { useSignalEffect } from '@preact/signals';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { clampText, plainLine } from '../data/plain-text.ts';
import type { Source } from '../data/source.ts';
import { Button } from '../views/parts.tsx';
import { Composer } from './composer.tsx';
import { ConversationHead, ConversationList } from './conversation-list.tsx';
import { ConversationStore } from './conversation-store.ts';
import { Log } from './log.tsx';
import { Thread } from './thread.ts';
import './chat.css';

const LOOK_EVERY_MS = 5000;
/** The list changes less than what is open. */
const LIST_EVERY = 3;
const CHANGE_PAUSE_MS = 300;
const ANNOUNCED_CHARS = 400;

/** Conversations with the agent of one gateway; `changes` changes when something happened in it. */
export function Chat({ source, changes }: { source: Source; changes: ReadonlySignal<unknown> }) {
  const [announced, setAnnounced] = useState('');
  const [drawer, setDrawer] = useState(false);
  const { conversations, threadOf, close } = useMemo(() => openConversations(source, setAnnounced), [source]);
  const thread = threadOf(conversations.open.value);
  useEffect(() => close, [close]);
  useLooking(conversations, thread, changes);
  const side = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!drawer) return undefined;
    side.current?.querySelector('button')?.focus();
    const hide = (event: KeyboardEvent): void => {
      if (event.key === 'Escape') setDrawer(false);
    };
    window.addEventListener('keydown', hide);
    return () => window.removeEventListener('keydown', hide);
  }, [drawer]);

  const say = (text: string): void => {
    if (!text.startsWith('/')) conversations.said(thread.conversation, text);
    thread.say(text);
  };
  return (
    <section class="chat" aria-label="Chat">
      <div ref={side} class={`chat-side${drawer ? ' chat-side-open' : ''}`}>
        <ConversationList conversations={conversations} onChosen={() => setDrawer(false)} />
      </div>
      {drawer && <Button class="chat-veil" aria-label="Close the list" onClick={() => setDrawer(false)} />}
      <div class="chat-main">
        <ConversationHead conversations={conversations} drawer={drawer} onList={() => setDrawer(!drawer)} />
        <Log key={thread.conversation} thread={thread} />
        <Composer source={source} thread={thread} onSay={say} />
      </div>
      <p class="chat-hidden" role="status">
        {announced}
      </p>
    </section>
  );
}

function openConversations(source: Source, announce: (text: string) => void) {
  const conversations = new ConversationStore(source, localStorage);
  const threads = new Map<string, Thread>();
  const options = {
    source,
    shelf: sessionStorage,
    found: conversations.take.bind(conversations),
    replied: (text: string) => announce(`Reply: ${plainLine(clampText(text, ANNOUNCED_CHARS).text)}`),
  };
  return {
    conversations,
    /** Conversations stay open, so that a reply comes in while another one is looked at. */
    threadOf(conversation: string): Thread {
      const thread = threads.get(conversation) ?? new Thread({ ...options, conversation });
      threads.set(conversation, thread);
      return thread;
    },
    close(): void {
      for (const thread of threads.values()) thread.close();
    },
  };
}

/** Looks for what is new: when the conversation is opened, when something changed, and now and then. */
function useLooking(conversations: ConversationStore, thread: Thread, changes: ReadonlySignal<unknown>): void {
  // The threads tell what is wrong; a list that could not be read is read again soon.
  const lookAtList = (): void => void conversations.refresh().catch(() => undefined);
  useEffect(() => {
    let looks = 0;
    const look = (): void => {
      if (document.hidden) return;
      void thread.history.refresh();
      if (looks++ % LIST_EVERY === 0) lookAtList();
    };
    look();
    const timer = setInterval(look, LOOK_EVERY_MS);
    const leaving = new AbortController();
    const { signal } = leaving;
    document.addEventListener('visibilitychange', look, { signal });
    window.addEventListener('storage', () => conversations.read(), { signal });
    return () => {
      clearInterval(timer);
      leaving.abort();
    };
  }, [conversations, thread]);
  useSignalEffect(() => {
    void changes.value;
    const timer = setTimeout(() => void thread.history.refresh().then(lookAtList), CHANGE_PAUSE_MS);
    return () => clearTimeout(timer);
  });
}

import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { Button } from '../views/parts.tsx';
import { Entry, Unanswered } from './entries.tsx';
import type { Thread } from './thread.ts';

const NEAR_PX = 80;

/** What was said, the newest at the bottom and in sight until the person scrolls away from it. */
export function Log({ thread }: { thread: Thread }) {
  const box = useRef<HTMLDivElement>(null);
  const inner = useRef<HTMLDivElement>(null);
  const [away, setAway] = useState(false);
  const stick = useRef(true);
  /** How far from the bottom to stay while earlier messages are put above. */
  const hold = useRef<number | null>(null);

  useLayoutEffect(() => {
    const settle = (): void => {
      const { current } = box;
      if (current === null) return;
      if (hold.current !== null) current.scrollTop = current.scrollHeight - hold.current;
      else if (stick.current) current.scrollTop = current.scrollHeight;
    };
    const observer = new ResizeObserver(settle);
    if (inner.current !== null) observer.observe(inner.current);
    if (box.current !== null) observer.observe(box.current);
    return () => observer.disconnect();
  }, []);

  const earlier = async (): Promise<void> => {
    const { current } = box;
    if (current === null || hold.current !== null || !thread.history.hasEarlier.value) return;
    hold.current = current.scrollHeight - current.scrollTop;
    await thread.history.loadEarlier();
    // The observer comes after the next layout. A person who has come to the top meanwhile wants still earlier ones.
    requestAnimationFrame(() =>
      requestAnimationFrame(() => {
        hold.current = null;
        onScroll();
      }),
    );
  };
  const onScroll = (): void => {
    const { current } = box;
    if (current === null || hold.current !== null) return;
    stick.current = current.scrollHeight - current.scrollTop - current.clientHeight < NEAR_PX;
    setAway(!stick.current);
    const { opened, earlierTrouble } = thread.history;
    // After an attempt that failed, the person asks with the button.
    if (current.scrollTop < NEAR_PX && opened.peek() && earlierTrouble.peek() === null) void earlier();
  };
  const isOpened = thread.history.opened.value;
  useLayoutEffect(() => {
    // A person who has scrolled to the top before the rest was there waits for it.
    if (isOpened && !stick.current) onScroll();
  }, [isOpened]);
  const sends = thread.sends.value;
  const said = sends.at(-1)?.at ?? '';
  const lastSaid = useRef('');
  useLayoutEffect(() => {
    if (said <= lastSaid.current) return;
    lastSaid.current = said;
    // People who say something want to see it.
    stick.current = true;
    if (box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [said]);

  const items = thread.items.value;
  const { hasEarlier } = thread.history;
  const trouble = thread.history.trouble.value ?? thread.history.earlierTrouble.value;
  const isEmpty = isOpened && items.length === 0 && sends.length === 0 && trouble === null;
  return (
    <div class="chat-log-frame">
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls */}
      <section class="chat-log" ref={box} aria-label="Messages" tabIndex={0} onScroll={onScroll}>
        <div class="chat-log-inner" ref={inner}>
          {hasEarlier.value && (
            <Button class="chat-more" onClick={() => void earlier()}>
              Earlier messages
            </Button>
          )}
          {isEmpty && <p class="chat-empty">Nothing was said here yet.</p>}
          {items.map((item) => (
            <Entry key={item.key} item={item} thread={thread} />
          ))}
          {sends.map((send) => (
            <Unanswered key={send.key} send={send} thread={thread} />
          ))}
          {trouble !== null && (
            <p class="chat-remark chat-apart" role="status">
              The transcript cannot be read just now: {trouble}
            </p>
          )}
        </div>
      </section>
      {away && (
        <Button class="chat-newest" onClick={() => box.current?.scrollTo({ top: box.current.scrollHeight })}>
          To the newest
        </Button>
      )}
    </div>
  );
}

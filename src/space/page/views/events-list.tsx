import { useEffect, useRef, useState } from 'preact/hooks';
import { sentenceOf } from '../data/answer-error.ts';
import { askEvents, type LoggedEvent } from '../data/kept-session.ts';
import type { Source } from '../data/source.ts';
import { Ago, LongPlainText, PlainText, Trouble } from './parts.tsx';

interface EventsProps {
  readonly source: Source;
  readonly id: string;
  readonly version: number;
}

/** The log of one session, oldest first; it goes on while the session does. */
export function EventsList({ source, id, version }: EventsProps) {
  const [events, setEvents] = useState<readonly LoggedEvent[]>([]);
  const [full, setFull] = useState(false);
  const [trouble, setTrouble] = useState<string | null>(null);
  const reading = useRef({ next: 0, busy: false });
  const load = async (): Promise<void> => {
    // Two readers from one place would bring everything twice.
    if (reading.current.busy) return;
    reading.current.busy = true;
    try {
      const page = await askEvents(source, id, reading.current.next);
      reading.current.next = page.next;
      setEvents((before) => [...before, ...page.events]);
      setFull(page.full);
      setTrouble(null);
    } catch (thrown) {
      setTrouble(sentenceOf(thrown));
    }
    reading.current.busy = false;
  };
  useEffect(() => {
    if (!full) void load();
  }, [source, id, version]);
  return (
    <div class="events">
      <ol>
        {events.map((event) => (
          <li key={event.seq}>
            <details class="fold">
              <summary>
                <code>
                  <PlainText text={event.type} />
                </code>
                <span class="faint">
                  <Ago at={event.at} />
                </span>
              </summary>
              <LongPlainText text={JSON.stringify(event, null, 2)} />
            </details>
          </li>
        ))}
      </ol>
      <Trouble text={trouble} />
      {full && (
        <button type="button" onClick={() => void load()}>
          More
        </button>
      )}
    </div>
  );
}

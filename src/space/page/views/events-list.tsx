import { useEffect, useRef, useState } from 'preact/hooks';
import { askEvents, type LoggedEvent } from '../data/kept-session.ts';
import type { Source } from '../data/source.ts';
import { useAttempt } from './asking.ts';
import { Ago, Button, LongPlainText, PlainText, Trouble } from './parts.tsx';

const PAGE = 100;

/** The log of one session, oldest first; it goes on while the session does. */
export function EventsList({ source, id, version }: { source: Source; id: string; version: number }) {
  const [events, setEvents] = useState<readonly LoggedEvent[]>([]);
  const [full, setFull] = useState(false);
  const { trouble, attempt } = useAttempt(true);
  const reading = useRef({ next: 0, busy: false });
  const load = async (): Promise<void> => {
    // Two readers from one place would bring everything twice.
    if (reading.current.busy) return;
    reading.current.busy = true;
    await attempt(async () => {
      const { data, next } = await askEvents(source, id, { after: reading.current.next, limit: PAGE });
      reading.current.next = next;
      setEvents((before) => [...before, ...data]);
      setFull(data.length === PAGE);
    });
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
                <PlainText as="code" text={event.type} />
                <Ago at={event.at} faint />
              </summary>
              <LongPlainText text={JSON.stringify(event, null, 2)} />
            </details>
          </li>
        ))}
      </ol>
      <Trouble text={trouble} />
      {full && <Button onClick={() => void load()}>More</Button>}
    </div>
  );
}

import { useState } from 'preact/hooks';
import { EndedSessions } from './ended-sessions.tsx';
import { OpenSessions } from './open-sessions.tsx';

/** Everybody, as a table. */
export function SessionsView() {
  const [ended, setEnded] = useState(false);
  const choice = (
    <fieldset class="choice">
      <legend class="hidden">Which sessions</legend>
      <button type="button" aria-pressed={!ended} onClick={() => setEnded(false)}>
        Open
      </button>
      <button type="button" aria-pressed={ended} onClick={() => setEnded(true)}>
        Ended
      </button>
    </fieldset>
  );
  return (
    <section class="view sessions-view" aria-labelledby="view-title">
      <h1 id="view-title" class="hidden">
        Sessions
      </h1>
      {ended ? <EndedSessions choice={choice} /> : <OpenSessions choice={choice} />}
    </section>
  );
}

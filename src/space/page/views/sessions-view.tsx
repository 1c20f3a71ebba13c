import { useState } from 'preact/hooks';
import { EndedSessions } from './ended-sessions.tsx';
import { OpenSessions } from './open-sessions.tsx';
import { Choice, ViewFrame } from './parts.tsx';

/** All sessions, as a table. */
export function SessionsView() {
  const [chosen, setChosen] = useState('Open');
  const choice = <Choice legend="Which sessions" options={['Open', 'Ended']} chosen={chosen} onChoose={setChosen} />;
  return (
    <ViewFrame name="sessions-view" title="Sessions">
      {chosen === 'Ended' ? <EndedSessions choice={choice} /> : <OpenSessions choice={choice} />}
    </ViewFrame>
  );
}

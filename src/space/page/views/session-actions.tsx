import { useState } from 'preact/hooks';
import { type KeptSession, pathOf } from '../data/kept-session.ts';
import { postJson, type Source } from '../data/source.ts';
import { announce } from '../ui.ts';
import { useAttempt } from './asking.ts';
import { Dialog } from './dialog.tsx';
import { parkedText } from './parked-text.ts';
import { Button, PlainText, SessionLink, Trouble } from './parts.tsx';

interface ActionsProps {
  readonly kept: KeptSession;
  readonly source: Source;
  readonly label: string;
}

/** What may be done to a session. */
export function SessionActions({ kept, source, label }: ActionsProps) {
  const [asking, setAsking] = useState(false);
  const [after, setAfter] = useState<KeptSession | null>(null);
  return (
    <div class="session-actions">
      {kept.state === 'ended' ? (
        <Resume kept={kept} source={source} />
      ) : (
        <>
          <Parking kept={kept} source={source} />
          <Button class="danger" data-action="end" onClick={() => setAsking(true)}>
            End this session
          </Button>
        </>
      )}
      {after !== null && (
        <p class="notice" data-ended={after.end_reason}>
          It ended as <strong>{after.end_reason}</strong>.
        </p>
      )}
      {asking && (
        <EndDialog
          {...{ kept, source, label }}
          onClose={() => setAsking(false)}
          onEnded={(session) => {
            setAsking(false);
            setAfter(session);
            announce(`The session ended as ${session.end_reason}`);
          }}
        />
      )}
    </div>
  );
}

/** Parks a session, or says why it is parked and lets it go on. */
function Parking({ kept, source }: { kept: KeptSession; source: Source }) {
  const { trouble, busy, attempt } = useAttempt();
  const isParked = kept.state === 'suspended';
  const verb = isParked ? 'release' : 'suspend';
  const act = async (): Promise<void> => {
    await postJson<KeptSession>(source, `${pathOf(kept.id)}/${verb}`, {});
    announce(isParked ? 'The session was released' : 'The session is parked');
  };
  return (
    <>
      {isParked && (
        <p class="notice" data-parked={kept.suspend_reason}>
          {parkedText(kept.suspend_reason)}
        </p>
      )}
      <Button data-action={verb} disabled={busy} onClick={() => void attempt(act)}>
        {isParked ? 'Release this session' : 'Park this session'}
      </Button>
      <Trouble text={trouble} />
    </>
  );
}

interface EndDialogProps extends ActionsProps {
  readonly onClose: () => void;
  readonly onEnded: (session: KeptSession) => void;
}

function EndDialog({ kept, source, label, onClose, onEnded }: EndDialogProps) {
  const { trouble, busy, attempt } = useAttempt(true);
  const end = async (): Promise<void> => onEnded(await postJson<KeptSession>(source, `${pathOf(kept.id)}/end`, {}));
  return (
    <Dialog title="End this session?" onClose={onClose}>
      <p class="named">
        <PlainText as="strong" text={label} />
        <PlainText as="code" text={kept.id} />
      </p>
      <p>What runs in it is stopped. The transcript stays, and the session can be resumed as a new one.</p>
      <Trouble text={trouble} />
      <div class="actions">
        <Button onClick={onClose}>Keep it</Button>
        <Button class="danger" data-action="confirm-end" disabled={busy} onClick={() => void attempt(end)}>
          {busy ? 'Ending…' : 'End it'}
        </Button>
      </div>
    </Dialog>
  );
}

function Resume({ kept, source }: { kept: KeptSession; source: Source }) {
  const { trouble, attempt } = useAttempt();
  const [next, setNext] = useState<KeptSession | null>(null);
  const resume = async (): Promise<void> => {
    setNext(await postJson<KeptSession>(source, `${pathOf(kept.id)}/resume`, {}));
    announce('It goes on in a new session');
  };
  return (
    <>
      {next === null ? (
        <Button class="primary" data-action="resume" onClick={() => void attempt(resume)}>
          Resume as a new session
        </Button>
      ) : (
        <p class="notice" data-resumed={next.id}>
          It goes on in <SessionLink id={next.id} />.
        </p>
      )}
      <Trouble text={trouble} />
    </>
  );
}

import { useState } from 'preact/hooks';
import { sentenceOf } from '../data/answer-error.ts';
import { type KeptSession, pathOf } from '../data/kept-session.ts';
import { postJson, type Source } from '../data/source.ts';
import { announce, openSession } from '../ui.ts';
import { Dialog } from './dialog.tsx';
import { PlainText, Trouble } from './parts.tsx';

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
        <button type="button" class="danger" data-action="end" onClick={() => setAsking(true)}>
          End this session
        </button>
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

interface EndDialogProps extends ActionsProps {
  readonly onClose: () => void;
  readonly onEnded: (session: KeptSession) => void;
}

function EndDialog({ kept, source, label, onClose, onEnded }: EndDialogProps) {
  const [trouble, setTrouble] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const end = async (): Promise<void> => {
    setBusy(true);
    try {
      onEnded(await postJson<KeptSession>(source, `${pathOf(kept.id)}/end`, {}));
    } catch (thrown) {
      setTrouble(sentenceOf(thrown));
      setBusy(false);
    }
  };
  return (
    <Dialog title="End this session?" onClose={onClose}>
      <p class="named">
        <strong>
          <PlainText text={label} />
        </strong>
        <code>
          <PlainText text={kept.id} />
        </code>
      </p>
      <p>What runs in it is stopped. The transcript stays, and the session can be resumed as a new one.</p>
      <Trouble text={trouble} />
      <div class="actions">
        <button type="button" onClick={onClose}>
          Keep it
        </button>
        <button type="button" class="danger" data-action="confirm-end" disabled={busy} onClick={() => void end()}>
          {busy ? 'Ending…' : 'End it'}
        </button>
      </div>
    </Dialog>
  );
}

function Resume({ kept, source }: { kept: KeptSession; source: Source }) {
  const [trouble, setTrouble] = useState<string | null>(null);
  const [next, setNext] = useState<KeptSession | null>(null);
  const resume = async (): Promise<void> => {
    setTrouble(null);
    try {
      const session = await postJson<KeptSession>(source, `${pathOf(kept.id)}/resume`, {});
      setNext(session);
      announce('It goes on in a new session');
    } catch (thrown) {
      setTrouble(sentenceOf(thrown));
    }
  };
  return (
    <>
      {next === null ? (
        <button type="button" class="primary" data-action="resume" onClick={() => void resume()}>
          Resume as a new session
        </button>
      ) : (
        <p class="notice" data-resumed={next.id}>
          It goes on in{' '}
          <button type="button" class="link" onClick={() => openSession(next.id)}>
            <PlainText text={next.id} />
          </button>
          .
        </p>
      )}
      <Trouble text={trouble} />
    </>
  );
}

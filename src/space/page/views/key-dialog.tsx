import { useRef, useState } from 'preact/hooks';
import { useSpace } from '../context.ts';
import type { KeyRequest } from '../data/key-ring.ts';
import { Dialog } from './dialog.tsx';

/** Asks for the key when a gateway does. */
export function KeyDialog() {
  const { ring } = useSpace();
  const asking = ring.asking.value;
  return asking === null ? null : <KeyForm asking={asking} />;
}

function KeyForm({ asking }: { asking: KeyRequest }) {
  const { ring } = useSpace();
  const field = useRef<HTMLInputElement>(null);
  const [remember, setRemember] = useState(false);
  const submit = (event: Event): void => {
    event.preventDefault();
    const key = field.current?.value.trim() ?? '';
    if (key !== '') ring.give(key, remember);
  };
  return (
    <Dialog title="The key to this gateway" steadfast onClose={() => undefined}>
      <form onSubmit={submit} class="key-form">
        <p>
          It is <code>gateway.api_key</code> of the configuration, or a key that <code>moirai keys add</code> made.
        </p>
        <label for="key">Key</label>
        <input id="key" ref={field} type="password" autocomplete="off" spellcheck={false} autofocus required />
        <p class="trouble" role="alert" hidden={asking.why === 'missing'}>
          The key is wrong.
        </p>
        <label class="check">
          <input type="checkbox" checked={remember} onChange={(event) => setRemember(event.currentTarget.checked)} />
          Remember it in this browser
        </label>
        <div class="actions">
          <button type="submit" class="primary">
            Open
          </button>
        </div>
      </form>
    </Dialog>
  );
}

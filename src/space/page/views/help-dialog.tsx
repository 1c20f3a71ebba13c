import { helpOpen } from '../ui.ts';
import { Dialog } from './dialog.tsx';

const SHORTCUTS: readonly (readonly [string, string])[] = [
  ['1 … 5', 'Space, Sessions, Timeline, Listeners, Chat'],
  ['/', 'search sessions'],
  ['↑ ↓ ← →', 'move between sessions, in the picture and in the table'],
  ['Page Up, Page Down, Home, End', 'move further in the table'],
  ['Enter', 'open the chosen session'],
  ['Esc', 'close the panel or a dialog'],
  ['?', 'this help'],
];

export function HelpDialog() {
  const close = (): void => {
    helpOpen.value = false;
  };
  return (
    <Dialog title="Keyboard" onClose={close}>
      <dl class="facts">
        {SHORTCUTS.map(([keys, what]) => (
          <>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
      <div class="actions">
        <button type="button" class="primary" onClick={close}>
          Close
        </button>
      </div>
    </Dialog>
  );
}

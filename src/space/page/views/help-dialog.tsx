import { helpOpen } from '../ui.ts';
import { Dialog } from './dialog.tsx';
import { Button, Fact, Facts } from './parts.tsx';

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
      <Facts>
        {SHORTCUTS.map(([keys, what]) => (
          <Fact key={keys} name={<kbd>{keys}</kbd>}>
            {what}
          </Fact>
        ))}
      </Facts>
      <div class="actions">
        <Button class="primary" onClick={close}>
          Close
        </Button>
      </div>
    </Dialog>
  );
}

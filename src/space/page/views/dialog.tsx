import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef } from 'preact/hooks';

interface DialogProps {
  readonly title: string;
  readonly onClose: () => void;
  readonly children: ComponentChildren;
  /** What cannot be waved away: there is nothing behind it to go back to. */
  readonly steadfast?: boolean;
}

/** A dialog of the browser's: it keeps the focus inside, and everything else out of reach. */
export function Dialog({ title, onClose, children, steadfast = false }: DialogProps) {
  const ref = useRef<HTMLDialogElement>(null);
  useLayoutEffect(() => {
    const dialog = ref.current;
    const before = document.activeElement;
    dialog?.showModal();
    return () => {
      dialog?.close();
      // Where they were before, if that is still there.
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={ref}
      aria-labelledby="dialog-title"
      onCancel={(event) => {
        event.preventDefault();
        if (!steadfast) onClose();
      }}
      onKeyDown={(event) => event.stopPropagation()}
    >
      <h2 id="dialog-title">{title}</h2>
      {children}
    </dialog>
  );
}

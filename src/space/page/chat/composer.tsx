import { useEffect, useId, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { keepItem } from '../data/keep-item.ts';
import type { Source } from '../data/source.ts';
import { Button } from '../views/parts.tsx';
import { askForCommands, beginningOf, type Command, matching } from './commands.ts';
import type { Thread } from './thread.ts';

const HIGHEST_PX = 240;

/** Where people write. */
export function Composer({ source, thread, onSay }: { source: Source; thread: Thread; onSay: (text: string) => void }) {
  const field = useRef<HTMLTextAreaElement>(null);
  const [text, setText] = useDraft(source, thread.conversation);
  const popup = useCommands(source, text);
  const id = useId();

  const busy = thread.busy.value;
  useLayoutEffect(() => {
    const { current } = field;
    if (current === null) return;
    current.style.height = text === '' ? '' : 'auto';
    if (text !== '') current.style.height = `${Math.min(current.scrollHeight + 2, HIGHEST_PX)}px`;
    // Beside the other button there is less room.
  }, [text, busy]);
  useEffect(() => {
    document.getElementById(`${id}-${popup.chosen}`)?.scrollIntoView({ block: 'nearest' });
  }, [id, popup.chosen]);
  useEffect(() => {
    // On a phone the keyboard would cover what was said before anybody read it.
    if (matchMedia('(pointer: fine)').matches) field.current?.focus();
  }, [thread]);

  const send = (): void => {
    const words = text.trim();
    if (words === '') return;
    setText('');
    onSay(words);
    field.current?.focus();
  };
  const take = (command: Command): void => {
    const words = `/${command.name}${command.takes === '' ? '' : ' '}`;
    setText(words);
    popup.close(words);
    field.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    // Enter and the arrows belong to an input method as long as it composes.
    if (event.isComposing || event.keyCode === 229) return;
    if (popup.open && popup.key(event, take)) event.preventDefault();
    else if (event.key === 'Enter' && !event.shiftKey) {
      event.preventDefault();
      send();
    } else if (event.key === 'ArrowUp' && text === '') {
      event.preventDefault();
      setText(thread.lastSaid());
    }
  };

  return (
    <form
      class="chat-composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {popup.open && (
        <div class="chat-commands" role="listbox" tabIndex={0} id={`${id}-list`} aria-label="Commands">
          {popup.found.map((command, i) => (
            // biome-ignore lint/a11y/useFocusableInteractive: the focus stays in the text, which names the chosen one
            // biome-ignore lint/a11y/useKeyWithClickEvents: the keys are heard by the text
            <div
              key={command.name}
              role="option"
              id={`${id}-${i}`}
              aria-selected={i === popup.chosen}
              // The text must not lose the focus to a click.
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => take(command)}
            >
              <b>/{command.name}</b> <span class="chat-takes">{command.takes}</span> <span>{command.summary}</span>
            </div>
          ))}
        </div>
      )}
      <textarea
        ref={field}
        rows={1}
        value={text}
        aria-label="Message"
        placeholder="Write, or / for commands"
        // A field of several lines cannot be a combobox; it says as much of the list as a textbox may.
        aria-autocomplete="list"
        aria-haspopup="listbox"
        {...(popup.open ? { 'aria-controls': `${id}-list`, 'aria-activedescendant': `${id}-${popup.chosen}` } : {})}
        autocomplete="off"
        enterkeyhint="send"
        onInput={(event) => setText(event.currentTarget.value)}
        onKeyDown={onKeyDown}
        onBlur={() => popup.close()}
      />
      {busy && (
        <Button class="chat-stop" onClick={() => thread.say('/stop', true)}>
          Stop
        </Button>
      )}
      <button type="submit" class="chat-send" disabled={text.trim() === ''}>
        Send
      </button>
    </form>
  );
}

/** What is not sent yet, per conversation, over reloads of this tab. */
function useDraft(source: Source, conversation: string): [string, (text: string) => void] {
  const name = `moirai-draft:${source.id}:${conversation}`;
  const [draft, setDraft] = useState({ name, text: sessionStorage.getItem(name) ?? '' });
  const current = draft.name === name ? draft.text : (sessionStorage.getItem(name) ?? '');
  return [
    current,
    (text) => {
      setDraft({ name, text });
      keepItem(sessionStorage, name, text === '' ? null : text);
    },
  ];
}

/** The list of commands while the name of one is being typed. */
function useCommands(source: Source, text: string) {
  const [commands, setCommands] = useState<readonly Command[]>([]);
  const [chosen, setChosen] = useState(0);
  const [closedAt, setClosedAt] = useState<string | null>(null);
  const beginning = beginningOf(text);
  const wanted = beginning !== null;
  useEffect(() => {
    if (!wanted) return setClosedAt(null);
    // Without the list everything can still be typed.
    askForCommands(source).then(setCommands, () => undefined);
  }, [source, wanted]);
  useEffect(() => setChosen(0), [beginning]);

  const found = beginning === null ? [] : matching(commands, beginning);
  const open = found.length > 0 && closedAt !== text;
  const close = (at = text): void => setClosedAt(at);
  const key = (event: KeyboardEvent, take: (command: Command) => void): boolean => {
    const command = found[chosen];
    if (event.key === 'ArrowDown') setChosen((chosen + 1) % found.length);
    else if (event.key === 'ArrowUp') setChosen((chosen + found.length - 1) % found.length);
    else if (event.key === 'Escape') close();
    else if (event.key === 'Tab' && !event.shiftKey && command !== undefined) take(command);
    // What is typed to its end is sent at once.
    else if (event.key === 'Enter' && !event.shiftKey && command !== undefined && command.name !== beginning) {
      take(command);
    } else return false;
    return true;
  };
  return { open, found, chosen: Math.min(chosen, found.length - 1), close, key };
}

import { useEffect, useRef, useState } from 'preact/hooks';
import { when } from '../data/spans.ts';
import { Button } from '../views/parts.tsx';
import type { ConversationStore, Listed } from './conversation-store.ts';

/** The conversations there are, to choose from. */
export function ConversationList(props: { conversations: ConversationStore; onChosen: () => void }) {
  const { conversations, onChosen } = props;
  const { listed, open } = conversations;
  const others = listed.value.filter((line) => !line.known);
  const choose = (id: string): void => {
    conversations.choose(id);
    onChosen();
  };
  const begin = (): void => {
    conversations.begin();
    onChosen();
  };
  return (
    <nav class="chat-list" aria-label="Conversations">
      <Button class="chat-new" onClick={begin}>
        New conversation
      </Button>
      <Lines lines={listed.value.filter((line) => line.known)} open={open.value} onChoose={choose} />
      {others.length > 0 && <h3>On this gateway</h3>}
      {others.length > 0 && <Lines lines={others} open={open.value} onChoose={choose} />}
    </nav>
  );
}

function Lines({ lines, open, onChoose }: { lines: readonly Listed[]; open: string; onChoose: (id: string) => void }) {
  return (
    <ul>
      {lines.map(({ id, title, lastAt, unread }) => (
        <li key={id}>
          <Button aria-current={id === open ? 'true' : undefined} onClick={() => onChoose(id)}>
            <span class="chat-list-title">{title}</span>
            <span class="chat-list-time">
              {unread && (
                <span class="chat-unread">
                  <span class="chat-hidden">unread</span>
                </span>
              )}
              {lastAt === null ? '' : when(lastAt)}
            </span>
          </Button>
        </li>
      ))}
    </ul>
  );
}

/** The open conversation: its title, and what can be done with it. */
export function ConversationHead(props: { conversations: ConversationStore; drawer: boolean; onList: () => void }) {
  const { conversations, drawer, onList } = props;
  const line = conversations.listed.value.find(({ id }) => id === conversations.open.value);
  const [doing, setDoing] = useState<{ what: 'rename' | 'remove'; id: string } | null>(null);
  const what = doing !== null && doing.id === line?.id ? doing.what : null;
  const begin = (next: 'rename' | 'remove') => () => setDoing(line === undefined ? null : { what: next, id: line.id });
  const action = line && { line, conversations, onEnd: () => setDoing(null) };
  return (
    <header class="chat-head">
      <Button class="chat-quiet chat-drawer-button" aria-label="Conversations" aria-expanded={drawer} onClick={onList}>
        ☰
      </Button>
      {what === 'rename' && action ? (
        <Rename {...action} />
      ) : (
        <>
          <h2>{line?.title ?? ''}</h2>
          {line?.newest != null && <QuietButton words="Rename" onClick={begin('rename')} />}
          {line?.newest != null && <QuietButton words="Remove" onClick={begin('remove')} />}
        </>
      )}
      {what === 'remove' && action && <Remove {...action} />}
    </header>
  );
}

function QuietButton({ words, onClick }: { words: string; onClick: () => void }) {
  return (
    <Button class="chat-quiet" onClick={onClick}>
      {words}
    </Button>
  );
}

interface LineActionProps {
  readonly line: Listed;
  readonly conversations: ConversationStore;
  readonly onEnd: () => void;
}

function Rename({ line, conversations, onEnd }: LineActionProps) {
  const field = useFocus<HTMLInputElement>();
  const [title, setTitle] = useState(line.newest?.title ?? line.title);
  const [trouble, setTrouble] = useState('');
  const save = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      await conversations.rename(line.id, title);
      onEnd();
    } catch {
      setTrouble('The gateway did not take it.');
    }
  };
  return (
    <form
      class="chat-rename"
      onSubmit={(event) => void save(event)}
      onKeyDown={(event) => event.key === 'Escape' && onEnd()}
    >
      <input
        value={title}
        maxLength={200}
        aria-label="Title"
        ref={field}
        onInput={(event) => setTitle(event.currentTarget.value)}
      />
      <button type="submit">Save</button>
      <Button onClick={onEnd}>Cancel</Button>
      {trouble !== '' && <span role="alert">{trouble}</span>}
    </form>
  );
}

function Remove({ line, conversations, onEnd }: LineActionProps) {
  const button = useFocus<HTMLButtonElement>();
  const remove = (): void => {
    conversations.remove(line.id);
    onEnd();
  };
  return (
    <div class="chat-remove" role="alertdialog" aria-label="Remove from the list">
      <p>
        Take it off this browser's list? The gateway keeps the conversation; it is found again under “On this gateway”.
      </p>
      <button type="button" ref={button} onClick={remove}>
        Remove
      </button>
      <Button onClick={onEnd}>Cancel</Button>
    </div>
  );
}

/** Takes the focus when it appears. */
function useFocus<T extends HTMLElement>() {
  const element = useRef<T>(null);
  useEffect(() => element.current?.focus(), []);
  return element;
}

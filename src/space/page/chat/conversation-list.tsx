import { useEffect, useRef, useState } from 'preact/hooks';
import { when } from '../data/spans.ts';
import type { ConversationStore, Listed } from './conversation-store.ts';

/** The conversations there are, to choose from. */
export function ConversationList({
  conversations,
  onChosen,
}: {
  conversations: ConversationStore;
  onChosen: () => void;
}) {
  const known = conversations.listed.value.filter((line) => line.known);
  const others = conversations.listed.value.filter((line) => !line.known);
  const choose = (id: string): void => {
    conversations.choose(id);
    onChosen();
  };
  return (
    <nav class="chat-list" aria-label="Conversations">
      <button
        type="button"
        class="chat-new"
        onClick={() => {
          conversations.begin();
          onChosen();
        }}
      >
        New conversation
      </button>
      <Lines lines={known} open={conversations.open.value} onChoose={choose} />
      {others.length > 0 && (
        <>
          <h3>On this gateway</h3>
          <Lines lines={others} open={conversations.open.value} onChoose={choose} />
        </>
      )}
    </nav>
  );
}

function Lines({ lines, open, onChoose }: { lines: readonly Listed[]; open: string; onChoose: (id: string) => void }) {
  return (
    <ul>
      {lines.map(({ id, title, lastAt, unread }) => (
        <li key={id}>
          <button type="button" aria-current={id === open ? 'true' : undefined} onClick={() => onChoose(id)}>
            <span class="chat-list-title">{title}</span>
            <span class="chat-list-time">
              {unread && (
                <span class="chat-unread">
                  <span class="chat-hidden">unread</span>
                </span>
              )}
              {lastAt === null ? '' : when(lastAt)}
            </span>
          </button>
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
  const end = (): void => setDoing(null);
  return (
    <header class="chat-head">
      <button
        type="button"
        class="chat-quiet chat-drawer-button"
        aria-label="Conversations"
        aria-expanded={drawer}
        onClick={onList}
      >
        ☰
      </button>
      {what === 'rename' && line !== undefined ? (
        <Rename line={line} conversations={conversations} onEnd={end} />
      ) : (
        <>
          <h2>{line?.title ?? ''}</h2>
          {line?.newest != null && (
            <button type="button" class="chat-quiet" onClick={begin('rename')}>
              Rename
            </button>
          )}
          {line?.newest != null && (
            <button type="button" class="chat-quiet" onClick={begin('remove')}>
              Remove
            </button>
          )}
        </>
      )}
      {what === 'remove' && line !== undefined && <Remove line={line} conversations={conversations} onEnd={end} />}
    </header>
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
      <button type="button" onClick={onEnd}>
        Cancel
      </button>
      {trouble !== '' && <span role="alert">{trouble}</span>}
    </form>
  );
}

function Remove({ line, conversations, onEnd }: LineActionProps) {
  const button = useFocus<HTMLButtonElement>();
  return (
    <div class="chat-remove" role="alertdialog" aria-label="Remove from the list">
      <p>
        Take it off this browser's list? The gateway keeps the conversation; it is found again under “On this gateway”.
      </p>
      <button
        type="button"
        ref={button}
        onClick={() => {
          conversations.remove(line.id);
          onEnd();
        }}
      >
        Remove
      </button>
      <button type="button" onClick={onEnd}>
        Cancel
      </button>
    </div>
  );
}

/** Takes the focus when it appears. */
function useFocus<T extends HTMLElement>() {
  const element = useRef<T>(null);
  useEffect(() => element.current?.focus(), []);
  return element;
}

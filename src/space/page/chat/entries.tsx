import type { KeptSession } from '../data/kept-session.ts';
import { plainLine, plainText } from '../data/plain-text.ts';
import { when } from '../data/spans.ts';
import { Button } from '../views/parts.tsx';
import { Formatted } from './formatted.tsx';
import { type ApprovalQuestion, isCommand } from './send-message.ts';
import type { Send, Thread } from './thread.ts';
import { endWords, type Item, type Note, type Tool } from './transcript.ts';

/** Something that was said, and is in the transcript. */
export function Entry({ item, thread }: { item: Item; thread: Thread }) {
  switch (item.type) {
    case 'message':
      return (
        <Message from={item.from} at={item.at}>
          <Formatted text={item.text} />
          {item.partial && <p class="chat-aside">It was stopped here.</p>}
        </Message>
      );
    case 'tools':
      return <Tools tools={item.tools} />;
    case 'remark':
      return <p class="chat-remark">{plainText(item.text)}</p>;
    case 'note':
      return <NoteEntry note={item.note} thread={thread} />;
    case 'end':
      return <EndMark session={item.session} last={item.last} />;
  }
}

function Message({ from, at, children }: { from: 'user' | 'agent'; at: string; children: preact.ComponentChildren }) {
  return (
    <article class={`chat-message chat-from-${from}`} aria-label={from === 'user' ? 'You' : 'Agent'}>
      {children}
      <time dateTime={at} class="chat-time">
        {when(at)}
      </time>
    </article>
  );
}

export function NoteEntry({ note, thread }: { note: Note; thread: Thread }) {
  const { command, text, tone, retry } = note;
  return (
    <div class={`chat-note chat-note-${tone}`}>
      {command !== null && <p class="chat-note-command">{plainText(command)}</p>}
      <p class="chat-note-text">{plainText(text)}</p>
      {retry && <Button onClick={() => thread.say('/retry')}>Try again</Button>}
    </div>
  );
}

/** Tells that a session ended here, and why. */
function EndMark({ session, last }: { session: KeptSession; last: boolean }) {
  const at = session.ended_at ?? session.last_activity_at;
  const next = last ? 'Your next message begins a new one.' : 'A new one began.';
  return (
    <div class="chat-end">
      <p>
        Session ended: {endWords(session)}, <time dateTime={at}>{when(at)}</time>. {next}
      </p>
    </div>
  );
}

function Tools({ tools }: { tools: readonly Tool[] }) {
  if (tools.length === 0) return null;
  return (
    <ul class="chat-tools" aria-label="Tools">
      {tools.map(({ id, name, ok }) => (
        <li key={id} class={ok === null ? 'chat-tool-running' : ok ? 'chat-tool-done' : 'chat-tool-failed'}>
          {plainLine(name)}
          <span class="chat-tool-state">{ok === null ? ' runs' : ok ? ' done' : ' failed'}</span>
        </li>
      ))}
    </ul>
  );
}

/** Something that was said here and is not answered yet. */
export function Unanswered({ send, thread }: { send: Send; thread: Thread }) {
  const { turnId, text, at, quiet, live } = send;
  const { state } = live.value;
  const inTranscript = turnId.value !== null && thread.asked.value.has(turnId.value);
  if (quiet && state !== 'failed') return null;
  return (
    <>
      {!inTranscript && (
        <Message from="user" at={at}>
          {isCommand(text) ? <p class="chat-note-command">{plainText(text)}</p> : <Formatted text={text} />}
        </Message>
      )}
      {state === 'failed' ? <Failed send={send} thread={thread} /> : <LiveReply send={send} thread={thread} />}
      {thread.notesBehind(send).map((note) => (
        <NoteEntry key={note.key} note={note} thread={thread} />
      ))}
    </>
  );
}

function Failed({ send, thread }: { send: Send; thread: Thread }) {
  return (
    <div class="chat-note chat-note-error" role="alert">
      <p class="chat-note-text">{plainText(send.live.value.trouble ?? '')}</p>
      <Button onClick={() => thread.sayAgain(send)}>Send again</Button>
      <Button onClick={() => thread.drop(send)}>Dismiss</Button>
    </div>
  );
}

function LiveReply({ send, thread }: { send: Send; thread: Thread }) {
  const { state, reply, tools, questions } = send.live.value;
  const waits = thread.isWaiting(send);
  return (
    <>
      <Tools tools={tools} />
      {questions.map((question) => (
        <Question key={question.id} asking={question} thread={thread} />
      ))}
      {reply !== '' && (
        <article class="chat-message chat-from-agent chat-live" aria-label="Agent" aria-busy="true">
          <Formatted text={reply} whole />
        </article>
      )}
      {state === 'apart' ? (
        <p class="chat-remark chat-apart">The connection was lost; looking for the reply…</p>
      ) : (
        reply === '' && <AtWork waits={waits && !isCommand(send.text)} sending={state === 'sending'} />
      )}
    </>
  );
}

const ANSWERS = { asked: 'It asks whether it may:', allowed: 'You allowed:', denied: 'It was not allowed:' } as const;

/** Something the agent may do only when a person says so. Silence is a no. */
function Question({ asking, thread }: { asking: ApprovalQuestion; thread: Thread }) {
  const { action, state } = asking;
  return (
    <div class="chat-note chat-question" role={state === 'asked' ? 'alert' : undefined} data-state={state}>
      <p class="chat-note-text">
        {ANSWERS[state]} <code>{plainText(action)}</code>
      </p>
      {state === 'asked' && (
        <>
          <Button class="chat-allow" onClick={() => thread.say('/approve', true)}>
            Allow once
          </Button>
          <Button class="chat-deny" onClick={() => thread.say('/deny', true)}>
            Deny
          </Button>
        </>
      )}
    </div>
  );
}

function AtWork({ waits, sending }: { waits: boolean; sending: boolean }) {
  if (waits) return <p class="chat-remark">It waits for its turn.</p>;
  return (
    <p class="chat-typing">
      <span class="chat-hidden">{sending ? 'Sending' : 'The agent is at work'}</span>
      <i />
      <i />
      <i />
    </p>
  );
}

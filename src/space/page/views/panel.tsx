import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { useSpace } from '../context.ts';
import { AnswerError, sentenceOf } from '../data/answer-error.ts';
import { askSession, type KeptSession, reasonOf } from '../data/kept-session.ts';
import { labelOf } from '../data/rooms.ts';
import type { Source } from '../data/source.ts';
import { countdownOf, momentOf, spanOf } from '../data/spans.ts';
import type { World, WorldSession } from '../data/world.ts';
import { closeSession, now } from '../ui.ts';
import { EventsList } from './events-list.tsx';
import { Button, Fact, Facts, PhaseMark, PlainText, SessionLink, Trouble } from './parts.tsx';
import { SessionActions } from './session-actions.tsx';
import { Transcript } from './transcript.tsx';

/** Everything about one session. */
export function Panel({ id }: { id: string }) {
  const { world } = useSpace();
  const heading = useRef<HTMLHeadingElement>(null);
  const { kept, source, trouble, live, version } = useKept(world, id);
  const [part, setPart] = useState<Part>('transcript');
  useFocus(heading);
  const label = live !== undefined ? labelOf(live.view) : kept !== null ? labelOf(kept) : id;
  return (
    <aside class="panel" aria-labelledby="panel-title" data-session={id} data-state={kept?.state ?? live?.view.state}>
      <header>
        <h2 id="panel-title" ref={heading} tabIndex={-1}>
          <PlainText text={label} />
        </h2>
        <Button class="quiet" onClick={closeSession} aria-label="Close the panel" title="Close (Esc)">
          ✕
        </Button>
      </header>
      <div class="panel-body">
        {live !== undefined && !live.live && (
          <p class="notice">Its gateway is not heard. This is what was last known.</p>
        )}
        <Trouble text={trouble} />
        <Status kept={kept} live={live} />
        {kept !== null && source !== null && <SessionActions kept={kept} source={source} label={label} />}
        <Origin id={id} kept={kept} live={live} />
        <div class="parts" role="tablist" aria-label="Parts of the session">
          <PartTab name="transcript" words="Transcript" part={part} onPick={setPart} />
          <PartTab name="events" words="Events" part={part} onPick={setPart} />
        </div>
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls must be reachable by keys */}
        <div class="panel-part" role="tabpanel" tabIndex={0} id={`part-${part}`} aria-labelledby={`tab-${part}`}>
          {kept !== null && source !== null && part === 'transcript' && (
            <Transcript source={source} id={kept.id} count={kept.message_count} version={version} />
          )}
          {kept !== null && source !== null && part === 'events' && (
            <EventsList source={source} id={kept.id} version={version} />
          )}
        </div>
      </div>
    </aside>
  );
}

type Part = 'transcript' | 'events';

interface TabProps {
  readonly name: Part;
  readonly words: string;
  readonly part: Part;
  readonly onPick: (part: Part) => void;
}

function PartTab({ name, words, part, onPick }: TabProps) {
  const other = name === 'transcript' ? 'events' : 'transcript';
  const press = (event: KeyboardEvent): void => {
    if (event.key !== 'ArrowLeft' && event.key !== 'ArrowRight') return;
    onPick(other);
    document.getElementById(`tab-${other}`)?.focus();
  };
  return (
    <Button
      role="tab"
      id={`tab-${name}`}
      aria-selected={part === name}
      aria-controls={part === name ? `part-${name}` : undefined}
      tabIndex={part === name ? 0 : -1}
      onClick={() => onPick(name)}
      onKeyDown={press}
    >
      {words}
    </Button>
  );
}

interface Known {
  readonly kept: KeptSession | null;
  readonly live: WorldSession | undefined;
}

function Status({ kept, live }: Known) {
  const ended = kept?.state === 'ended';
  const view = live?.view;
  return (
    <Facts>
      <Fact name={ended ? 'Ended as' : 'Phase'}>
        {ended ? (
          <strong class="reason" data-reason={kept.end_reason}>
            <PlainText text={reasonOf(kept.end_reason, kept.end_cause)} />
          </strong>
        ) : (
          <PhaseMark phase={view?.phase ?? kept?.state ?? 'unknown'} tool={view?.tool ?? null} />
        )}
      </Fact>
      {view !== undefined && view.turn_started_at !== null && (
        <Fact name="This turn">since {spanOf(now.value - Date.parse(view.turn_started_at))}</Fact>
      )}
      {view !== undefined && view.queued > 0 && <Fact name="Waiting">{view.queued} more</Fact>}
      <Fact name="Started" at={view?.started_at ?? kept?.started_at ?? null} />
      <Fact name="Last active" at={view?.last_activity_at ?? kept?.last_activity_at ?? null} />
      {ended ? (
        <Fact name="Ended" at={kept.ended_at} />
      ) : (
        <Fact name="Deadline">
          <Deadline at={view?.expires_at ?? kept?.expires_at ?? null} />
        </Fact>
      )}
      <Fact name="Tokens">{tokensOf(view?.tokens ?? kept?.tokens)}</Fact>
    </Facts>
  );
}

function Deadline({ at }: { at: string | null }) {
  if (at === null) return <span class="none">none: it waits for as long as it takes</span>;
  return (
    <span class="countdown">
      {countdownOf(at, now.value)} <span class="faint nowrap">({momentOf(at)})</span>
    </span>
  );
}

function tokensOf(tokens: { readonly input: number; readonly output: number } | undefined): string {
  if (tokens === undefined) return '–';
  return `${tokens.input.toLocaleString()} in, ${tokens.output.toLocaleString()} out`;
}

function Origin({ id, kept, live }: Known & { id: string }) {
  const view = live?.view;
  const owner = kept?.owner ?? view?.gateway ?? null;
  return (
    <details class="origin">
      <summary>Where it comes from</summary>
      <Facts>
        <Fact name="Id" as="code" text={id} />
        <Fact name="Key" as="code" text={view?.key ?? kept?.key ?? 'unknown'} />
        <Fact name="Kind" text={view?.kind ?? kept?.kind ?? 'unknown'} />
        <Fact name="Platform" text={view?.platform ?? kept?.platform ?? 'unknown'} />
        <Fact name="User" text={view?.user ?? kept?.user_id ?? 'nobody in particular'} />
        <Fact name="Before it">
          <Parent kept={kept} />
        </Fact>
        <Fact name="Owner">
          {owner === null ? <span class="none">none: it rests in the store</span> : <PlainText text={owner} />}
        </Fact>
        <Fact name="Owner's heartbeat" at={view?.last_heartbeat_at ?? kept?.last_heartbeat_at ?? null} />
        {kept?.resume_reason && <Fact name="Cut off by">{kept.resume_reason}</Fact>}
      </Facts>
    </details>
  );
}

function Parent({ kept }: { kept: KeptSession | null }) {
  const parent = kept?.parent_id ?? null;
  if (parent === null) return <span class="none">nothing: it is the first</span>;
  return (
    <>
      {kept?.lineage ?? 'from'} <SessionLink id={parent} />
    </>
  );
}

/** The heading is where reading begins; afterwards the person is back where they were. */
function useFocus(heading: { readonly current: HTMLElement | null }): void {
  // Not after the next frame: keys pressed until then would go to nothing.
  useLayoutEffect(() => {
    const before = document.activeElement;
    heading.current?.focus({ preventScroll: true });
    return () => {
      if (before instanceof HTMLElement && before.isConnected) before.focus({ preventScroll: true });
    };
  }, []);
}

/** At most this often is a session asked for that changes all the time. */
const REFRESH_MS = 700;

interface KeptState {
  readonly kept: KeptSession | null;
  readonly source: Source | null;
  readonly trouble: string | null;
  /** Counts the answers. */
  readonly version: number;
}

/** The session as it is kept, asked for again whenever something has happened to it. */
function useKept(world: World, id: string) {
  void world.calm.value;
  const live = world.sessions.get(id);
  const ended = world.hasEnded(id);
  const [state, setState] = useState<KeptState>({ kept: null, source: null, trouble: null, version: 0 });
  const askedAt = useRef(0);
  const sources = world.sources.filter((one) => one.state === 'live').length;
  useEffect(() => {
    let wanted = true;
    const wait = Math.max(0, askedAt.current + REFRESH_MS - Date.now());
    const timer = setTimeout(async () => {
      askedAt.current = Date.now();
      const answer = await findKept(world, live?.source ?? state.source, id);
      if (wanted) setState((before) => ({ ...before, ...answer, version: before.version + 1 }));
    }, wait);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [live?.view, ended, sources > 0]);
  return { ...state, live };
}

/** Asks the source that tells of the session first, then all others. */
async function findKept(world: World, likely: Source | null, id: string): Promise<Partial<KeptState>> {
  const others = world.sources.filter((one) => one.state === 'live').map(({ source }) => source);
  const sources = [...new Set([...(likely === null ? [] : [likely]), ...others])];
  let trouble = 'no gateway is heard at the moment';
  for (const source of sources) {
    try {
      return { kept: await askSession(source, id), source, trouble: null };
    } catch (thrown) {
      const answered = thrown instanceof AnswerError && thrown.status === 404;
      trouble = answered ? 'No gateway knows this session.' : sentenceOf(thrown);
    }
  }
  return { trouble };
}

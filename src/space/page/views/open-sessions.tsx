import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useSpace } from '../context.ts';
import { labelOf, roomsOf } from '../data/rooms.ts';
import { untilOf } from '../data/spans.ts';
import { choicesOf, EVERYTHING, type Filter, filterSessions } from '../data/table.ts';
import type { WorldSession } from '../data/world.ts';
import { announce, now } from '../ui.ts';
import type { Column } from './grid.tsx';
import { PHASE_WORDS, PhaseMark, PlainText, plural } from './parts.tsx';
import { figureColumn, type Option, SessionTable, textColumn, timeColumn } from './session-table.tsx';

/** The open sessions of all gateways. */
export function OpenSessions({ choice }: { choice: ComponentChildren }) {
  const { world } = useSpace();
  const [filter, setFilter] = useState<Filter>(EVERYTHING);
  const version = world.calm.value;
  const names = useMemo(() => {
    const inhabited = new Set([...world.sessions.values()].map(({ room }) => room));
    return new Map(roomsOf(world.sources, inhabited, Date.now()).map(({ id, name }) => [id, name]));
  }, [version]);
  const columns = useMemo(() => columnsFor((room) => names.get(room) ?? room), [[...names].join()]);
  const rows = useMemo(() => filterSessions(world.sessions.values(), filter), [version, filter]);
  useCountAnnounced(rows.length, filter);
  const { size } = world.sessions;
  const all = [...world.sessions.values()].map(({ view }) => view);
  const phases = choicesOf(all.map(({ phase }) => phase));
  return (
    <SessionTable
      label="Open sessions"
      choice={choice}
      placeholder="Title, key, user, id"
      filter={filter}
      onFilter={setFilter}
      picks={{
        gateway: [...names],
        platform: choicesOf(all.map(({ platform }) => platform)),
        phase: phases.map(([phase, words]): Option => [phase, PHASE_WORDS[phase] ?? words]),
        kind: choicesOf(all.map(({ kind }) => kind)),
      }}
      columns={columns}
      rows={rows}
      idOf={({ view }) => view.id}
      classOf={({ live }) => (live ? undefined : 'grey')}
      sortedBy="activity"
      found={
        <>
          {plural(rows.length, 'session')}
          {rows.length !== size && <span class="faint"> of {size.toLocaleString()}</span>}
        </>
      }
      empty={size === 0 ? 'No session is open.' : 'No open session is like that.'}
    />
  );
}

/** Announced once the person has stopped typing, and not for every session that comes or goes by itself. */
function useCountAnnounced(count: number, filter: Filter): void {
  const first = useRef(true);
  useEffect(() => {
    if (first.current) {
      first.current = false;
      return;
    }
    const timer = setTimeout(() => announce(`${plural(count, 'session')} found`), 600);
    return () => clearTimeout(timer);
  }, [filter]);
}

function columnsFor(nameOf: (room: string) => string): Column<WorldSession>[] {
  return [
    textColumn(
      'session',
      'Session',
      ({ view }) => labelOf(view),
      ({ view, live }) => (
        <>
          <PlainText as="span" class="name" text={labelOf(view)} />
          {!live && <span class="badge">last known</span>}
        </>
      ),
    ),
    textColumn(
      'phase',
      'Phase',
      ({ view }) => view.phase,
      ({ view }) => <PhaseMark phase={view.phase} tool={view.tool} />,
    ),
    textColumn('kind', 'Kind', ({ view }) => view.kind),
    textColumn('platform', 'Platform', ({ view }) => view.platform),
    textColumn('user', 'User', ({ view }) => view.user ?? ''),
    textColumn('gateway', 'Gateway', ({ room }) => nameOf(room)),
    figureColumn('messages', 'Messages', ({ view }) => view.message_count),
    figureColumn('tokens', 'Tokens', ({ view }) => view.tokens.input + view.tokens.output),
    timeColumn('started', 'Started', ({ view }) => view.started_at),
    timeColumn('activity', 'Last active', ({ view }) => view.last_activity_at),
    timeColumn('deadline', 'Deadline', ({ view }) => view.expires_at, Deadline),
  ];
}

function Deadline({ view: { expires_at: at } }: WorldSession) {
  return at === null ? <span class="none">none</span> : <span>{untilOf(at, now.value)}</span>;
}

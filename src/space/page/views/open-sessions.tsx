import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useRef, useState } from 'preact/hooks';
import { useSpace } from '../context.ts';
import { labelOf, roomsOf } from '../data/rooms.ts';
import { untilOf } from '../data/spans.ts';
import {
  choicesOf,
  compareTexts,
  compareTimes,
  EVERYTHING,
  type Filter,
  filterSessions,
  sortRows,
} from '../data/table.ts';
import type { WorldSession } from '../data/world.ts';
import { announce, now, openSession, selectedId } from '../ui.ts';
import { Pick, Search, SortPick } from './filters.tsx';
import { type Column, Grid, type Sort } from './grid.tsx';
import { Ago, PHASE_WORDS, PhaseMark, PlainText, plural } from './parts.tsx';

const idOf = ({ view }: WorldSession): string => view.id;

/** The open sessions of all gateways. */
export function OpenSessions({ choice }: { choice: ComponentChildren }) {
  const { world } = useSpace();
  const [filter, setFilter] = useState<Filter>(EVERYTHING);
  const [sort, setSort] = useState<Sort>({ column: 'activity', descending: true });
  const version = world.calm.value;
  const names = useMemo(() => {
    const inhabited = new Set([...world.sessions.values()].map(({ room }) => room));
    return new Map(roomsOf(world.sources, inhabited, Date.now()).map(({ id, name }) => [id, name]));
  }, [version]);
  const columns = useMemo(() => columnsFor((room) => names.get(room) ?? room), [[...names].join()]);
  const rows = useMemo(() => {
    const column = columns.find(({ id }) => id === sort.column) ?? columns[0];
    const found = filterSessions(world.sessions.values(), filter);
    return column === undefined ? found : sortRows(found, column.compare, sort.descending, idOf);
  }, [version, filter, sort, columns]);
  useCountAnnounced(rows.length, filter);
  const set = (change: Partial<Filter>): void => setFilter({ ...filter, ...change });
  const all = [...world.sessions.values()];
  return (
    <>
      <div class="bar">
        {choice}
        <Search value={filter.text} placeholder="Title, key, user, id" onInput={(text) => set({ text })} />
        <div class="picks">
          <Pick name="Gateway" value={filter.gateway} options={[...names]} onPick={(gateway) => set({ gateway })} />
          <Pick
            name="Platform"
            value={filter.platform}
            options={choicesOf(all.map(({ view }) => view.platform))}
            onPick={(platform) => set({ platform })}
          />
          <Pick
            name="Phase"
            value={filter.phase}
            options={choicesOf(all.map(({ view }) => view.phase)).map(([phase, words]) => [
              phase,
              PHASE_WORDS[phase] ?? words,
            ])}
            onPick={(phase) => set({ phase })}
          />
          <Pick
            name="Kind"
            value={filter.kind}
            options={choicesOf(all.map(({ view }) => view.kind))}
            onPick={(kind) => set({ kind })}
          />
          <SortPick columns={columns} sort={sort} onSort={setSort} />
        </div>
        <p class="found" data-count={rows.length}>
          {plural(rows.length, 'session')}
          {rows.length !== world.sessions.size && <span class="faint"> of {world.sessions.size.toLocaleString()}</span>}
        </p>
      </div>
      {rows.length === 0 ? (
        <p class="empty">{world.sessions.size === 0 ? 'No session is open.' : 'No open session is like that.'}</p>
      ) : (
        <Grid
          label="Open sessions"
          {...{ columns, rows, idOf, sort }}
          classOf={({ live }) => (live ? undefined : 'grey')}
          selected={selectedId.value}
          onSort={setSort}
          onOpen={({ view }) => openSession(view.id)}
        />
      )}
    </>
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
    {
      id: 'session',
      title: 'Session',
      cell: ({ view, live }) => (
        <>
          <span class="name">
            <PlainText text={labelOf(view)} />
          </span>
          {!live && <span class="badge">last known</span>}
        </>
      ),
      compare: (a, b) => compareTexts(labelOf(a.view), labelOf(b.view)),
    },
    {
      id: 'phase',
      title: 'Phase',
      cell: ({ view }) => <PhaseMark phase={view.phase} tool={view.tool} />,
      compare: (a, b) => compareTexts(a.view.phase, b.view.phase),
    },
    textColumn('kind', 'Kind', ({ view }) => view.kind),
    textColumn('platform', 'Platform', ({ view }) => view.platform),
    textColumn('user', 'User', ({ view }) => view.user ?? ''),
    textColumn('gateway', 'Gateway', ({ room }) => nameOf(room)),
    figureColumn('messages', 'Messages', ({ view }) => view.message_count),
    figureColumn('tokens', 'Tokens', ({ view }) => view.tokens.input + view.tokens.output),
    timeColumn('started', 'Started', ({ view }) => view.started_at),
    timeColumn('activity', 'Last active', ({ view }) => view.last_activity_at),
    {
      id: 'deadline',
      title: 'Deadline',
      cell: ({ view }) =>
        view.expires_at === null ? <span class="none">none</span> : <span>{untilOf(view.expires_at, now.value)}</span>,
      compare: (a, b) => compareTimes(a.view.expires_at, b.view.expires_at),
    },
  ];
}

export function textColumn<T>(id: string, title: string, read: (row: T) => string): Column<T> {
  return {
    id,
    title,
    cell: (row) => <PlainText text={read(row)} />,
    compare: (a, b) => compareTexts(read(a), read(b)),
  };
}

export function figureColumn<T>(id: string, title: string, read: (row: T) => number): Column<T> {
  return { id, title, figure: true, cell: (row) => read(row).toLocaleString(), compare: (a, b) => read(a) - read(b) };
}

export function timeColumn<T>(id: string, title: string, read: (row: T) => string | null): Column<T> {
  return { id, title, cell: (row) => <Ago at={read(row)} />, compare: (a, b) => compareTimes(read(a), read(b)) };
}

import type { ComponentChildren } from 'preact';
import { useEffect, useMemo, useState } from 'preact/hooks';
import { useSpace } from '../context.ts';
import { sentenceOf } from '../data/answer-error.ts';
import { askEnded, type EndedQuery, type KeptSession } from '../data/kept-session.ts';
import { labelOf } from '../data/rooms.ts';
import { oneOfEachStore } from '../data/stores.ts';
import { sortRows } from '../data/table.ts';
import type { World } from '../data/world.ts';
import { announce, openSession, selectedId } from '../ui.ts';
import { Pick, Search, SortPick } from './filters.tsx';
import { type Column, Grid, type Sort } from './grid.tsx';
import { figureColumn, textColumn, timeColumn } from './open-sessions.tsx';
import { PlainText, plural, Trouble } from './parts.tsx';

const KINDS = ['chat', 'cli', 'api', 'cron', 'webhook', 'batch', 'child'];
const REASONS = [
  ...['user_reset', 'idle_expiry', 'daily_reset', 'auto_reset', 'switched', 'branched', 'cli_close', 'api_close'],
  ...['admin_close', 'cron_complete', 'cron_failed', 'webhook_complete', 'batch_complete', 'batch_failed'],
  ...['parent_ended', 'reaped', 'deleted'],
];

const COLUMNS: readonly Column<KeptSession>[] = [
  { ...textColumn<KeptSession>('session', 'Session', labelOf), cell: (row) => <Name row={row} /> },
  textColumn(
    'reason',
    'Ended as',
    ({ end_reason, end_cause }) => `${end_reason ?? 'unknown'}${end_cause === null ? '' : ` (${end_cause})`}`,
  ),
  textColumn('kind', 'Kind', ({ kind }) => kind),
  textColumn('platform', 'Platform', ({ platform }) => platform),
  textColumn('user', 'User', ({ user_id }) => user_id ?? ''),
  figureColumn('messages', 'Messages', ({ message_count }) => message_count),
  figureColumn('tokens', 'Tokens', ({ tokens }) => tokens.input + tokens.output),
  timeColumn('started', 'Started', ({ started_at }) => started_at),
  timeColumn('ended', 'Ended', ({ ended_at }) => ended_at),
];

function Name({ row }: { row: KeptSession }) {
  return (
    <span class="name">
      <PlainText text={labelOf(row)} />
    </span>
  );
}

/** Those that have ended, a page at a time: nobody's end is out of sight. */
export function EndedSessions({ choice }: { choice: ComponentChildren }) {
  const { world } = useSpace();
  const [asked, setAsked] = useState({ text: '', kind: '', reason: '' });
  const [sort, setSort] = useState<Sort>({ column: 'started', descending: true });
  const { rows, more, trouble, loading, load } = useEnded(world, asked);
  const sorted = useMemo(() => {
    const column = COLUMNS.find(({ id }) => id === sort.column);
    return column === undefined ? rows : sortRows(rows, column.compare, sort.descending, ({ id }) => id);
  }, [rows, sort]);
  return (
    <>
      <div class="bar">
        {choice}
        <Search
          value={asked.text}
          placeholder="Part of the title or the id"
          onInput={(text) => setAsked({ ...asked, text })}
        />
        <div class="picks">
          <Pick
            name="Kind"
            value={asked.kind}
            options={KINDS.map((kind) => [kind, kind])}
            onPick={(kind) => setAsked({ ...asked, kind })}
          />
          <Pick
            name="Reason"
            value={asked.reason}
            options={REASONS.map((reason) => [reason, reason])}
            onPick={(reason) => setAsked({ ...asked, reason })}
          />
          <SortPick columns={COLUMNS} sort={sort} onSort={setSort} />
        </div>
        <p class="found" data-count={rows.length}>
          {loading ? 'asking…' : plural(rows.length, 'session')}
          {more && !loading && <span class="faint"> and more</span>}
        </p>
      </div>
      <Trouble text={trouble} />
      {rows.length === 0 && !loading ? (
        <p class="empty">Nobody like that has ended.</p>
      ) : (
        <Grid
          label="Ended sessions"
          columns={COLUMNS}
          rows={sorted}
          idOf={({ id }) => id}
          selected={selectedId.value}
          sort={sort}
          onSort={setSort}
          onOpen={({ id }) => openSession(id)}
        />
      )}
      {more && (
        <div class="more">
          <button type="button" disabled={loading} onClick={load}>
            More
          </button>
        </div>
      )}
    </>
  );
}

type EndedFilter = Omit<EndedQuery, 'cursor'>;

interface Found {
  readonly rows: readonly KeptSession[];
  /** Where each source goes on; a source without more is not in it. */
  readonly cursors: ReadonlyMap<string, string | null>;
}

function useEnded(world: World, asked: EndedFilter) {
  const [found, setFound] = useState<Found>({ rows: [], cursors: new Map() });
  const [trouble, setTrouble] = useState<string | null>(null);
  const [loading, setLoading] = useState(true);
  void world.calm.value;
  const heard = world.sources.filter(({ state }) => state === 'live').length;
  const load = async (before: Found, isWanted: () => boolean): Promise<void> => {
    setLoading(true);
    try {
      const next = await loadPages(world, asked, before);
      if (!isWanted()) return;
      setFound(next);
      setTrouble(null);
      announce(`${plural(next.rows.length, 'ended session')} listed`);
    } catch (thrown) {
      if (isWanted()) setTrouble(sentenceOf(thrown));
    }
    if (isWanted()) setLoading(false);
  };
  useEffect(() => {
    let wanted = true;
    const sources = oneOfEachStore(world.sources).filter(({ state }) => state === 'live');
    const start: Found = { rows: [], cursors: new Map(sources.map(({ source }) => [source.id, null])) };
    // Not for every letter that is typed.
    const timer = setTimeout(() => void load(start, () => wanted), 250);
    return () => {
      wanted = false;
      clearTimeout(timer);
    };
  }, [asked, heard]);
  return {
    rows: found.rows,
    more: found.cursors.size > 0 && !(loading && found.rows.length === 0),
    trouble,
    loading,
    load: () => void load(found, () => true),
  };
}

async function loadPages(world: World, asked: EndedFilter, { rows, cursors }: Found): Promise<Found> {
  const known = new Map(rows.map((row) => [row.id, row]));
  const next = new Map<string, string | null>();
  for (const [id, cursor] of cursors) {
    const source = world.sourceOf(id);
    if (source === null) continue;
    const page = await askEnded(source, { ...asked, cursor });
    for (const row of page.data) known.set(row.id, row);
    if (page.next !== null) next.set(id, page.next);
  }
  return { rows: [...known.values()], cursors: next };
}

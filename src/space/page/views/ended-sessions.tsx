import type { ComponentChildren } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { useSpace } from '../context.ts';
import { sentenceOf } from '../data/answer-error.ts';
import { askSessions, type KeptSession, reasonOf } from '../data/kept-session.ts';
import { labelOf } from '../data/rooms.ts';
import { oneOfEachStore } from '../data/stores.ts';
import type { World } from '../data/world.ts';
import { announce } from '../ui.ts';
import type { Column } from './grid.tsx';
import { Button, PlainText, plural } from './parts.tsx';
import { figureColumn, type Option, SessionTable, textColumn, timeColumn } from './session-table.tsx';

const PAGE = 100;
const asOption = (value: string): Option => [value, value];
const KINDS = ['chat', 'cli', 'api', 'cron', 'webhook', 'batch', 'child'].map(asOption);
const REASONS = [
  ...['user_reset', 'idle_expiry', 'daily_reset', 'auto_reset', 'switched', 'branched', 'cli_close', 'api_close'],
  ...['admin_close', 'cron_complete', 'cron_failed', 'webhook_complete', 'batch_complete', 'batch_failed'],
  ...['parent_ended', 'reaped', 'deleted'],
].map(asOption);

const COLUMNS: readonly Column<KeptSession>[] = [
  textColumn('session', 'Session', labelOf, (row) => <PlainText as="span" class="name" text={labelOf(row)} />),
  textColumn('reason', 'Ended as', ({ end_reason, end_cause }) => reasonOf(end_reason, end_cause)),
  textColumn('kind', 'Kind', ({ kind }) => kind),
  textColumn('platform', 'Platform', ({ platform }) => platform),
  textColumn('user', 'User', ({ user_id }) => user_id ?? ''),
  figureColumn('messages', 'Messages', ({ message_count }) => message_count),
  figureColumn('tokens', 'Tokens', ({ tokens }) => tokens.input + tokens.output),
  timeColumn('started', 'Started', ({ started_at }) => started_at),
  timeColumn('ended', 'Ended', ({ ended_at }) => ended_at),
];

const ALL_ENDED = { text: '', kind: '', reason: '' };

/** Those that have ended, a page at a time: no end is out of sight. */
export function EndedSessions({ choice }: { choice: ComponentChildren }) {
  const { world } = useSpace();
  const [filter, setFilter] = useState(ALL_ENDED);
  const { rows, more, trouble, loading, load } = useEnded(world, filter);
  return (
    <>
      <SessionTable
        label="Ended sessions"
        choice={choice}
        placeholder="Part of the title or the id"
        filter={filter}
        onFilter={setFilter}
        picks={{ kind: KINDS, reason: REASONS }}
        columns={COLUMNS}
        rows={rows}
        idOf={({ id }) => id}
        sortedBy="started"
        found={
          <>
            {loading ? 'asking…' : plural(rows.length, 'session')}
            {more && !loading && <span class="faint"> and more</span>}
          </>
        }
        trouble={trouble}
        empty={loading ? null : 'Nobody like that has ended.'}
      />
      {more && (
        <div class="more">
          <Button disabled={loading} onClick={load}>
            More
          </Button>
        </div>
      )}
    </>
  );
}

interface Found {
  readonly rows: readonly KeptSession[];
  /** Where each source goes on; a source without more is not in it. */
  readonly cursors: ReadonlyMap<string, string | null>;
}

function useEnded(world: World, asked: typeof ALL_ENDED) {
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

async function loadPages(world: World, asked: typeof ALL_ENDED, { rows, cursors }: Found): Promise<Found> {
  const { text: q, kind, reason } = asked;
  const known = new Map(rows.map((row) => [row.id, row]));
  const next = new Map<string, string | null>();
  for (const [id, cursor] of cursors) {
    const source = world.sourceOf(id);
    if (source === null) continue;
    const query = { state: 'ended', kind: kind || 'all', limit: PAGE, q, reason, cursor };
    const page = await askSessions(source, query);
    for (const row of page.data) known.set(row.id, row);
    if (page.next !== null) next.set(id, page.next);
  }
  return { rows: [...known.values()], cursors: next };
}

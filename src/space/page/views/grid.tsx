// biome-ignore-all lint/a11y/useSemanticElements: rows are placed by hand, which the elements of a table do not allow
// biome-ignore-all lint/a11y/useFocusableInteractive: the grid has the focus, and names the active row by its id
import type { ComponentChildren } from 'preact';
import { useLayoutEffect, useRef, useState } from 'preact/hooks';
import { mediaSignal } from '../ui.ts';
import { Button } from './parts.tsx';

export interface Column<T> {
  readonly id: string;
  readonly title: string;
  readonly cell: (row: T) => ComponentChildren;
  readonly compare: (a: T, b: T) => number;
  /** Figures stand at the end of their cell. */
  readonly figure?: boolean;
}

export interface Sort {
  readonly column: string;
  readonly descending: boolean;
}

export interface GridProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  readonly rows: readonly T[];
  readonly idOf: (row: T) => string;
  readonly classOf?: (row: T) => string | undefined;
  readonly selected: string | null;
  readonly sort: Sort;
  readonly onSort: (sort: Sort) => void;
  readonly onOpen: (row: T) => void;
}

/** Rows drawn beyond what is seen, so that a quick scroll finds something. */
const MARGIN = 8;
const ROW_HEIGHT = 40;
const CARD_HEIGHT = 64;
/** On a narrow screen a row is a card of two lines. */
const asCards = mediaSignal('(max-width: 719px)');

/** A table of any length: only the rows that can be seen are in the document, each with its number. */
export function Grid<T>(props: GridProps<T>) {
  const { columns, rows, idOf } = props;
  const frame = useRef<HTMLDivElement>(null);
  const [active, setActive] = useState(0);
  const height = asCards.value ? CARD_HEIGHT : ROW_HEIGHT;
  const { top, seen } = useScroll(frame);
  const current = Math.min(active, rows.length - 1);
  const first = Math.max(0, Math.floor(top / height) - MARGIN);
  const last = Math.min(rows.length, Math.ceil((top + seen) / height) + MARGIN);
  const move = (to: number): void => {
    const next = Math.max(0, Math.min(rows.length - 1, to));
    setActive(next);
    showRow(frame.current, next, height);
  };
  const press = (event: KeyboardEvent): void => {
    if (event.target !== frame.current) return;
    const page = Math.max(1, Math.floor(seen / height) - 2);
    const steps: Readonly<Record<string, number>> = {
      ArrowDown: current + 1,
      ArrowUp: current - 1,
      PageDown: current + page,
      PageUp: current - page,
      Home: 0,
      End: rows.length - 1,
    };
    const to = steps[event.key];
    const row = rows[current];
    if (to !== undefined) move(to);
    else if (event.key === 'Enter' && row !== undefined) props.onOpen(row);
    else return;
    event.preventDefault();
  };
  const activeIsDrawn = current >= first && current < last;
  return (
    <div
      class="grid"
      role="grid"
      ref={frame}
      tabIndex={0}
      aria-label={props.label}
      aria-rowcount={rows.length + 1}
      aria-colcount={columns.length}
      aria-activedescendant={activeIsDrawn ? `row-${current}` : undefined}
      onKeyDown={press}
      data-columns={columns.length}
    >
      <div class="grid-head" role="row" aria-rowindex={1}>
        {columns.map((column) => (
          <ColumnHead key={column.id} column={column} grid={props} />
        ))}
      </div>
      <div class="grid-body" role="rowgroup" style={{ height: `${rows.length * height}px` }}>
        {rows.slice(first, last).map((row, offset) => (
          <GridRow
            key={idOf(row)}
            row={row}
            index={first + offset}
            height={height}
            active={first + offset === current}
            grid={props}
            onPick={() => {
              setActive(first + offset);
              props.onOpen(row);
            }}
          />
        ))}
      </div>
    </div>
  );
}

interface RowProps<T> {
  readonly row: T;
  readonly index: number;
  readonly height: number;
  readonly active: boolean;
  readonly grid: GridProps<T>;
  readonly onPick: () => void;
}

function GridRow<T>({ row, index, height, active, grid, onPick }: RowProps<T>) {
  const id = grid.idOf(row);
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the focus and takes the keys
    <div
      role="row"
      id={`row-${index}`}
      class={`grid-row ${grid.classOf?.(row) ?? ''}`}
      aria-rowindex={index + 2}
      aria-selected={id === grid.selected}
      data-active={active}
      data-session={id}
      style={{ transform: `translateY(${index * height}px)` }}
      onClick={onPick}
    >
      {grid.columns.map((column) => (
        <div key={column.id} role="gridcell" class={column.figure ? 'figure' : undefined} data-column={column.id}>
          {column.cell(row)}
        </div>
      ))}
    </div>
  );
}

function ColumnHead<T>({ column, grid: { sort, onSort } }: { column: Column<T>; grid: GridProps<T> }) {
  const chosen = sort.column === column.id;
  const direction = sort.descending ? 'descending' : 'ascending';
  return (
    <div
      role="columnheader"
      aria-sort={chosen ? direction : 'none'}
      class={column.figure ? 'figure' : undefined}
      data-column={column.id}
    >
      <Button onClick={() => onSort({ column: column.id, descending: chosen && !sort.descending })}>
        {column.title}
        <span aria-hidden="true">{chosen ? (sort.descending ? ' ↓' : ' ↑') : ''}</span>
      </Button>
    </div>
  );
}

function showRow(frame: HTMLDivElement | null, index: number, height: number): void {
  if (frame === null) return;
  const head = frame.querySelector<HTMLElement>('.grid-head')?.offsetHeight ?? 0;
  const from = index * height;
  const room = frame.clientHeight - head;
  if (from < frame.scrollTop) frame.scrollTop = from;
  else if (from + height > frame.scrollTop + room) frame.scrollTop = from + height - room;
}

function useScroll(frame: { readonly current: HTMLDivElement | null }): { top: number; seen: number } {
  const [place, setPlace] = useState({ top: 0, seen: 600 });
  useLayoutEffect(() => {
    const element = frame.current;
    if (element === null) return;
    const read = (): void => setPlace({ top: element.scrollTop, seen: element.clientHeight });
    read();
    element.addEventListener('scroll', read, { passive: true });
    const size = new ResizeObserver(read);
    size.observe(element);
    return () => {
      element.removeEventListener('scroll', read);
      size.disconnect();
    };
  }, []);
  return place;
}

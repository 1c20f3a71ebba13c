import type { ComponentChildren } from 'preact';
import { useMemo, useState } from 'preact/hooks';
import { compareTexts, compareTimes, sortRows } from '../data/table.ts';
import { openSession, selectedId } from '../ui.ts';
import { type Column, Grid, type GridProps, type Sort } from './grid.tsx';
import { Ago, Button, PlainText, Trouble } from './parts.tsx';

/** A value and the words for it. */
export type Option = readonly [value: string, words: string];

interface SessionTableProps<T, F extends { readonly text: string }>
  extends Omit<GridProps<T>, 'selected' | 'sort' | 'onSort' | 'onOpen'> {
  /** What stands before the search: open sessions or ended ones. */
  readonly choice: ComponentChildren;
  readonly placeholder: string;
  readonly filter: F;
  readonly onFilter: (filter: F) => void;
  /** What may be chosen for a field of the filter, beside everything. */
  readonly picks: Readonly<Record<Exclude<keyof F & string, 'text'>, readonly Option[]>>;
  /** The column by which rows are sorted at first, the highest first. */
  readonly sortedBy: string;
  /** How many were found. */
  readonly found: ComponentChildren;
  /** What is said instead of a table without rows; null while that is not known. */
  readonly empty: string | null;
  readonly trouble?: string | null;
}

/** Sessions that can be searched, filtered and sorted. */
export function SessionTable<T, F extends { readonly text: string }>(props: SessionTableProps<T, F>) {
  const { filter, onFilter, columns, rows, idOf, empty } = props;
  const [sort, setSort] = useState<Sort>({ column: props.sortedBy, descending: true });
  const sorted = useMemo(() => {
    const column = columns.find(({ id }) => id === sort.column);
    return column === undefined ? rows : sortRows(rows, column.compare, sort.descending, idOf);
  }, [rows, sort, columns]);
  return (
    <>
      <div class="bar">
        {props.choice}
        <label class="search">
          <span class="hidden">Search</span>
          <input
            id="search"
            type="search"
            value={filter.text}
            placeholder={props.placeholder}
            spellcheck={false}
            onInput={(event) => onFilter({ ...filter, text: event.currentTarget.value })}
          />
        </label>
        <div class="picks">
          {Object.entries<readonly Option[]>(props.picks).map(([field, options]) => (
            <Pick
              key={field}
              field={field}
              value={String(filter[field as keyof F])}
              options={options}
              onPick={(value) => onFilter({ ...filter, [field]: value })}
            />
          ))}
          <SortPick columns={columns} sort={sort} onSort={setSort} />
        </div>
        <p class="found" data-count={rows.length}>
          {props.found}
        </p>
      </div>
      <Trouble text={props.trouble ?? null} />
      {rows.length === 0 && empty !== null ? (
        <p class="empty">{empty}</p>
      ) : (
        <Grid
          {...props}
          rows={sorted}
          selected={selectedId.value}
          sort={sort}
          onSort={setSort}
          onOpen={(row) => openSession(idOf(row))}
        />
      )}
    </>
  );
}

interface PickProps {
  readonly field: string;
  readonly value: string;
  readonly options: readonly Option[];
  readonly onPick: (value: string) => void;
}

/** One of several, or all. */
function Pick({ field, value, options, onPick }: PickProps) {
  const name = `${field.charAt(0).toUpperCase()}${field.slice(1)}`;
  return (
    <label class="pick">
      <span class="hidden">{name}</span>
      <select
        value={value}
        data-filter={field}
        data-set={value !== ''}
        onChange={(event) => onPick(event.currentTarget.value)}
      >
        <option value="">{name}: all</option>
        {options.map(([option, words]) => (
          <option key={option} value={option}>
            {words}
          </option>
        ))}
      </select>
    </label>
  );
}

/** How to sort where there is no space for heads of columns. */
function SortPick<T>(props: { columns: readonly Column<T>[]; sort: Sort; onSort: (sort: Sort) => void }) {
  const { columns, sort, onSort } = props;
  return (
    <div class="sort-pick">
      <label class="pick">
        <span class="hidden">Sort by</span>
        <select
          value={sort.column}
          onChange={(event) => onSort({ column: event.currentTarget.value, descending: sort.descending })}
        >
          {columns.map(({ id, title }) => (
            <option key={id} value={id}>
              by {title.toLowerCase()}
            </option>
          ))}
        </select>
      </label>
      <Button
        aria-label={sort.descending ? 'Sort ascending' : 'Sort descending'}
        onClick={() => onSort({ ...sort, descending: !sort.descending })}
      >
        {sort.descending ? '↓' : '↑'}
      </Button>
    </div>
  );
}

/** A column of texts; what else stands in a cell may be drawn by `cell`. */
export function textColumn<T>(
  id: string,
  title: string,
  read: (row: T) => string,
  cell: Column<T>['cell'] = (row) => <PlainText text={read(row)} />,
): Column<T> {
  return { id, title, cell, compare: (a, b) => compareTexts(read(a), read(b)) };
}

export function figureColumn<T>(id: string, title: string, read: (row: T) => number): Column<T> {
  return { id, title, figure: true, cell: (row) => read(row).toLocaleString(), compare: (a, b) => read(a) - read(b) };
}

export function timeColumn<T>(
  id: string,
  title: string,
  read: (row: T) => string | null,
  cell: Column<T>['cell'] = (row) => <Ago at={read(row)} />,
): Column<T> {
  return { id, title, cell, compare: (a, b) => compareTimes(read(a), read(b)) };
}

import type { Column, Sort } from './grid.tsx';

interface SearchProps {
  readonly value: string;
  readonly onInput: (text: string) => void;
  readonly placeholder: string;
}

export function Search({ value, onInput, placeholder }: SearchProps) {
  return (
    <label class="search">
      <span class="hidden">Search</span>
      <input
        id="search"
        type="search"
        value={value}
        placeholder={placeholder}
        spellcheck={false}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}

interface PickProps {
  readonly name: string;
  readonly value: string;
  /** What may be chosen, beside everything: value and words. */
  readonly options: readonly (readonly [string, string])[];
  readonly onPick: (value: string) => void;
}

/** One of several, or all. */
export function Pick({ name, value, options, onPick }: PickProps) {
  return (
    <label class="pick">
      <span class="hidden">{name}</span>
      <select
        value={value}
        data-filter={name.toLowerCase()}
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

interface SortPickProps<T> {
  readonly columns: readonly Column<T>[];
  readonly sort: Sort;
  readonly onSort: (sort: Sort) => void;
}

/** How to sort where there is no space for heads of columns. */
export function SortPick<T>({ columns, sort, onSort }: SortPickProps<T>) {
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
      <button
        type="button"
        aria-label={sort.descending ? 'Sort ascending' : 'Sort descending'}
        onClick={() => onSort({ ...sort, descending: !sort.descending })}
      >
        {sort.descending ? '↓' : '↑'}
      </button>
    </div>
  );
}

/*
 * A setting is declared once: how it is read and checked, its default, what it is for, whether it is secret. Its type, its
 * default, what `config show` prints, what `config check` refuses, what a log hides and its row in docs/config.md follow.
 */

/** What a value is read with besides itself. */
export interface ReadContext {
  /** The folder of everything that is kept. */
  readonly home: string;
  /** What an environment variable holds; null when it is unset or empty. */
  readonly variable: (name: string) => string | null;
}

/** How values of one kind are read, checked and written again. `Unit` ends the names of its fields, as in `timeoutMs`. */
export interface Kind<T, Unit extends string = ''> {
  /** What a written value means. Throws `bad_input` with the end of a sentence that begins "<the value> is". */
  read(value: unknown, context: ReadContext): T;
  /** The value as one would write it in the file. */
  write(value: T): unknown;
  /** `whole`: it is never shown. `address`: the password in it is not. */
  readonly secrecy: 'none' | 'address' | 'whole';
  readonly unit: Unit;
}

/** The default of a setting that has to be given. */
export const REQUIRED = Symbol('required');

/** The default of a setting that an environment variable gives, the first of these that is set; null while none is. */
export class FromVariable {
  readonly names: readonly [string, ...string[]];

  constructor(...names: readonly [string, ...string[]]) {
    this.names = names;
  }
}

export interface Setting<T, Unit extends string = ''> {
  readonly type: 'setting';
  readonly kind: Kind<T, Unit>;
  /** As one would write it, or `REQUIRED`, or `FromVariable`. */
  readonly byDefault: unknown;
  readonly help: string;
  readonly unit: Unit;
}

/** What is wrong with a setting because of another one of its section; the end of a sentence. */
export interface Objection {
  readonly key: string;
  readonly fault: string;
}

type Fields = Readonly<Record<string, Declaration>>;

/** Settings under a common name. One that is empty, or whose every line is a comment, has its defaults. */
export interface Section<F = Fields, Values = object> {
  readonly type: 'section';
  readonly fields: F;
  readonly unit: string;
  /** Looks at what could be read of the section. */
  rule?(values: Partial<Values>): Objection | null;
  /** Fills in what follows from other values and the environment. */
  complete?(values: Values, context: ReadContext): Values;
}

/** A section of which only what was given is there: the rest is left to what it is merged over. */
export interface Overrides<F = Fields> {
  readonly type: 'overrides';
  readonly fields: F;
  readonly unit: '';
  /** Describes all of its settings together. */
  readonly help: string;
}

export interface List<E = Declaration, Value = unknown> {
  readonly type: 'list';
  readonly element: E;
  readonly unit: '';
  readonly help: string;
  readonly byDefault: readonly unknown[] | typeof REQUIRED;
  /** What is wrong with the list as a whole, as the end of a sentence. */
  check?(values: readonly Value[]): string | null;
}

/** Entries whose names are the user's own. */
export interface Named<E = Declaration> {
  readonly type: 'named';
  readonly element: E;
  readonly unit: '';
  /** Describes all of its entries together; empty where each setting of an entry is described. */
  readonly help: string;
  readonly isName: (name: string) => boolean;
  readonly nameFault: string;
}

export type Declaration = Setting<unknown, string> | Section | Overrides | List | Named;

/** What the program gets of what was declared. */
export type ValueOf<D> = D extends {
  readonly type: 'setting';
  readonly kind: { read(value: never, context: never): infer T };
}
  ? T
  : D extends { readonly type: 'section'; readonly fields: infer F }
    ? FieldValues<F>
    : D extends { readonly type: 'overrides'; readonly fields: infer F }
      ? Partial<FieldValues<F>>
      : D extends { readonly type: 'list'; readonly element: infer E }
        ? readonly ValueOf<E>[]
        : D extends { readonly type: 'named'; readonly element: infer E }
          ? Readonly<Record<string, ValueOf<E>>>
          : never;

/** The key `idle_ttl`, if it is a duration, is the field `idleTtlMs`. */
export type FieldValues<F> = {
  readonly [K in keyof F & string as `${CamelCase<K>}${UnitOf<F[K]>}`]: ValueOf<F[K]>;
};

type CamelCase<K extends string> = K extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelCase<Rest>>}`
  : K;

type UnitOf<D> = D extends { readonly unit: infer U extends string } ? U : '';

/** The program's name of a key. */
export function fieldName(key: string, { unit }: Declaration): string {
  return key.replace(/_(.)/g, (_, letter: string) => letter.toUpperCase()) + unit;
}

export function setting<T, Unit extends string>(
  kind: Kind<T, Unit>,
  byDefault: unknown,
  help: string,
): Setting<T, Unit> {
  return { type: 'setting', kind, byDefault, help, unit: kind.unit };
}

export function section<F extends Fields>(
  fields: F,
  options: Pick<Section<F, FieldValues<F>>, 'rule' | 'complete'> = {},
) {
  return { type: 'section', fields, unit: '', ...options } as const satisfies Section<F, FieldValues<F>>;
}

export function overrides<F extends Fields>(fields: F, help = ''): Overrides<F> {
  return { type: 'overrides', fields, unit: '', help };
}

/** A list of values of one kind. */
export function list<T>(kind: Kind<T, string>, help: string, byDefault: readonly unknown[] = []) {
  return listOf(entry(kind), help, { byDefault });
}

/** A list of sections, or of values with something to check about all of them. */
export function listOf<E extends Declaration>(
  element: E,
  help: string,
  options: Partial<Pick<List<E, ValueOf<E>>, 'byDefault' | 'check'>> = {},
): List<E, ValueOf<E>> {
  return { type: 'list', element, unit: '', help, byDefault: [], ...options };
}

export function named<E extends Declaration>(
  isName: (name: string) => boolean,
  nameFault: string,
  element: E,
  help = '',
): Named<E> {
  return { type: 'named', element, unit: '', help, isName, nameFault };
}

/** A value without a key of its own: of a list, or under a name of the user's. */
export function entry<T, Unit extends string>(kind: Kind<T, Unit>): Setting<T, Unit> {
  return setting(kind, REQUIRED, '');
}

import type { Path } from './problem.ts';

/** The little of zod's definitions that is needed to find one's way; every kind of schema has some of it. */
interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, Schema>>;
  readonly valueType?: Schema;
  readonly element?: Schema;
  readonly innerType?: Schema;
  readonly out?: Schema;
  readonly defaultValue?: unknown;
}

export interface Schema {
  readonly _zod: { readonly def: unknown };
}

/** A key of the configuration, with its default as one would write it; undefined where it has to be given. */
export interface Key {
  /** `*` stands for a name of the user's own, `[]` for a place in a list. */
  readonly path: string;
  readonly byDefault: unknown;
}

/** The keys that may stand directly under a path; none where no section is. */
export function keysUnder(schema: Schema, path: Path): readonly string[] {
  const at = path.reduce<Schema | undefined>((inside, part) => inside && childOf(inside, part), schema);
  return Object.keys((at && definitionOf(at).shape) ?? {});
}

/** Every key that holds a value, in the order of the schema. */
export function allKeys(schema: Schema, path = ''): readonly Key[] {
  const { type, shape, valueType, element } = definitionOf(schema);
  const join = (part: string) => (path === '' ? part : `${path}.${part}`);
  if (shape !== undefined) return Object.entries(shape).flatMap(([key, inner]) => allKeys(inner, join(key)));
  const nested = valueType === undefined ? [] : allKeys(valueType, join('*'));
  if (type === 'record') return nested;
  const elements = element === undefined ? [] : allKeys(element, `${path}[]`);
  const ofSections = elements.filter(({ path: inner }) => inner !== `${path}[]`);
  return [{ path, byDefault: defaultOf(schema) }, ...ofSections];
}

function childOf(schema: Schema, part: string | number): Schema | undefined {
  const { shape, valueType, element } = definitionOf(schema);
  if (shape !== undefined) return Object.hasOwn(shape, part) ? shape[part] : undefined;
  return valueType ?? element;
}

/** Behind what only surrounds a schema: defaults, options, and the step that makes an empty section of nothing. */
function definitionOf(schema: Schema): Definition {
  const definition = schema._zod.def as Definition;
  const { type, innerType, out } = definition;
  const inner = innerType ?? (type === 'pipe' && out !== undefined && !isTransform(out) ? out : undefined);
  return inner === undefined ? definition : definitionOf(inner);
}

function isTransform(schema: Schema): boolean {
  return (schema._zod.def as Definition).type === 'transform';
}

function defaultOf(schema: Schema): unknown {
  const definition = schema._zod.def as Definition;
  if (definition.type === 'prefault') return definition.defaultValue;
  return definitionOf(schema).type === 'array' ? [] : undefined;
}

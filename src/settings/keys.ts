import { type Declaration, FromVariable } from './declaration.ts';
import type { Path } from './read-settings.ts';

/** A key that holds a value. */
export interface Key {
  /** `*` stands for a name of the user's own, `[]` for a place in a list. */
  readonly path: string;
  readonly declaration: Declaration;
}

/** The keys that may stand directly under a path; none where no section is. */
export function keysUnder(root: Declaration, path: Path): readonly string[] {
  const at = path.reduce<Declaration | undefined>((inside, part) => inside && childOf(inside, part), root);
  return at !== undefined && 'fields' in at ? Object.keys(at.fields) : [];
}

/** Every key that holds a value, in the order of the declarations. */
export function allKeys(declaration: Declaration, path = ''): readonly Key[] {
  const join = (part: string) => (path === '' ? part : `${path}.${part}`);
  if (declaration.type === 'setting') return [{ path, declaration }];
  if (declaration.type === 'named') return allKeys(declaration.element, join('*'));
  if (declaration.type !== 'list') {
    return Object.entries(declaration.fields).flatMap(([key, inner]) => allKeys(inner, join(key)));
  }
  const elements = declaration.element.type === 'setting' ? [] : allKeys(declaration.element, `${path}[]`);
  return [{ path, declaration }, ...elements];
}

/** The environment variables that give defaults. */
export function variablesOf(declaration: Declaration): readonly string[] {
  return allKeys(declaration).flatMap(({ declaration: each }) =>
    'byDefault' in each && each.byDefault instanceof FromVariable ? each.byDefault.names : [],
  );
}

function childOf(declaration: Declaration, part: string | number): Declaration | undefined {
  if ('element' in declaration) return declaration.element;
  if (declaration.type === 'setting') return undefined;
  return Object.hasOwn(declaration.fields, part) ? declaration.fields[part] : undefined;
}

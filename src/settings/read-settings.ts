import { hasCode } from '../errors/moirai-error.ts';
import {
  type Declaration,
  FromVariable,
  fieldName,
  type List,
  type Named,
  type Overrides,
  REQUIRED,
  type ReadContext,
  type Section,
  type Setting,
  type ValueOf,
} from './declaration.ts';
import { fault } from './kinds.ts';

export type Path = readonly (string | number)[];

/** Something that is wrong with what was written. */
export interface Issue {
  readonly path: Path;
  /** The key of a section that has no such setting, a name that cannot be, or a value. */
  readonly of: 'key' | 'name' | 'value';
  /** The end of a sentence that begins "<what is written there> is"; empty for a key. */
  readonly fault: string;
  /** What is written there must not be shown. */
  readonly secret: boolean;
}

/** Reads what was written as declared. Without any issue the value is whole. */
export function readSettings<D extends Declaration>(
  declaration: D,
  written: unknown,
  context: ReadContext,
): { readonly value: ValueOf<D>; readonly issues: readonly Issue[] } {
  const reading = new Reading(context);
  const value = reading.read(declaration, written, []);
  return { value: value as ValueOf<D>, issues: reading.issues };
}

/** Stands for a value that could not be read. */
const UNREADABLE = Symbol('unreadable');

class Reading {
  readonly issues: Issue[] = [];
  readonly #context: ReadContext;

  constructor(context: ReadContext) {
    this.#context = context;
  }

  read(declaration: Declaration, written: unknown, path: Path): unknown {
    switch (declaration.type) {
      case 'setting':
        return this.#setting(declaration, written, path);
      case 'list':
        return this.#list(declaration, written, path);
      case 'named':
        return this.#named(declaration, written, path);
      default:
        return this.#section(declaration, written ?? {}, path);
    }
  }

  #setting({ kind, byDefault }: Setting<unknown, string>, written: unknown, path: Path): unknown {
    try {
      const value = written === undefined ? this.#defaultOf(byDefault) : written;
      if (value === REQUIRED) throw fault('missing');
      return kind.read(value, this.#context);
    } catch (thrown) {
      if (!hasCode(thrown, 'bad_input')) throw thrown;
      return this.#refuse(path, thrown.message, kind.secrecy === 'whole');
    }
  }

  #defaultOf(byDefault: unknown): unknown {
    if (!(byDefault instanceof FromVariable)) return byDefault;
    return byDefault.names.map((name) => this.#context.variable(name)).find((value) => value !== null) ?? null;
  }

  #section(section: Section | Overrides, written: unknown, path: Path): unknown {
    if (!isMap(written)) return this.#refuse(path, 'not a map of settings');
    const values: Record<string, unknown> = {};
    let whole = true;
    for (const [key, field] of Object.entries(section.fields)) {
      const given = Object.hasOwn(written, key) ? written[key] : undefined;
      if (given === undefined && section.type === 'overrides') continue;
      const value = this.read(field, given, [...path, key]);
      if (value === UNREADABLE) whole = false;
      else values[fieldName(key, field)] = value;
    }
    for (const key of Object.keys(written)) {
      if (Object.hasOwn(section.fields, key)) continue;
      this.issues.push({ path: [...path, key], of: 'key', fault: '', secret: false });
    }
    if (section.type === 'overrides') return whole ? values : UNREADABLE;
    // Also where another setting of the section is wrong: all problems are reported at once.
    const objection = section.rule?.(values) ?? null;
    if (objection !== null) return this.#refuse([...path, objection.key], objection.fault);
    return whole ? (section.complete?.(values, this.#context) ?? values) : UNREADABLE;
  }

  #list({ element, byDefault, check }: List, written: unknown, path: Path): unknown {
    const given = written === undefined && byDefault !== REQUIRED ? byDefault : (written ?? []);
    if (!Array.isArray(given)) return this.#refuse(path, 'not a list');
    const values = given.map((each, i) => this.read(element, each, [...path, i]));
    if (values.includes(UNREADABLE)) return UNREADABLE;
    const wrong = byDefault === REQUIRED && values.length === 0 ? 'missing or empty' : check?.(values);
    return wrong == null ? values : this.#refuse(path, wrong);
  }

  #named({ element, isName, nameFault }: Named, written: unknown, path: Path): unknown {
    const given = written ?? {};
    if (!isMap(given)) return this.#refuse(path, 'not a map');
    const entries = Object.entries(given).map(([name, each]) => {
      const at = [...path, name];
      return [name, isName(name) ? this.read(element, each, at) : this.#refuse(at, nameFault, false, 'name')] as const;
    });
    return entries.some(([, value]) => value === UNREADABLE) ? UNREADABLE : Object.fromEntries(entries);
  }

  #refuse(path: Path, fault: string, secret = false, of: Issue['of'] = 'value'): typeof UNREADABLE {
    this.issues.push({ path, of, fault, secret });
    return UNREADABLE;
  }
}

function isMap(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

import { z } from 'zod';
import { hasCode } from '../errors/moirai-error.ts';
import { fault, type Reader } from './readers.ts';

/** A value of the file, read by its reader. Without `.prefault(...)` it has to be given. */
export function setting<T>(read: Reader<T>) {
  return z.transform((value: unknown, context): T => {
    try {
      if (value === undefined) throw fault('missing');
      return read(value);
    } catch (thrown) {
      if (!hasCode(thrown, 'bad_input')) throw thrown;
      context.addIssue({ code: 'custom', message: thrown.message });
      return z.NEVER;
    }
  });
}

/** What two settings of a section have to say to each other: which one is wrong, and the end of the sentence. */
export type Rule<T> = (section: Partial<T>) => { readonly key: keyof T & string; readonly fault: string } | null;

/** Settings under a common name. A section that is empty, or whose every line is a comment, has its defaults. */
export function section<S extends z.ZodRawShape>(shape: S, ...rules: Rule<z.output<z.ZodObject<S>>>[]) {
  return z.preprocess(orElse({}), withRules(z.strictObject(shape, { error: 'not a map of settings' }), rules));
}

function withRules<S extends z.ZodObject>(schema: S, rules: readonly Rule<z.output<S>>[]): S {
  return rules.reduce(
    (checked, rule) =>
      checked.check(
        z.superRefine(
          (value, context) => {
            const objection = rule(isMap(value) ? readable<z.output<S>>(value) : {});
            if (objection === null) return;
            context.addIssue({ code: 'custom', path: [objection.key], message: objection.fault });
          },
          // Also where another setting of the section is wrong: all problems are told at once.
          { when: () => true },
        ),
      ),
    schema,
  );
}

export function list<T extends z.ZodType>(element: T) {
  return z.preprocess(orElse([]), z.array(element, { error: 'not a list' }));
}

/** Entries whose names are the user's own. */
export function named<T extends z.ZodType>(isName: (name: string) => boolean, error: string, entry: T) {
  const name = z.string().refine(isName, { error });
  return z.preprocess(orElse({}), z.record(name, entry, { error: 'not a map' }));
}

/** What of a section could be read. */
function readable<T extends object>(section: object): Partial<T> {
  return Object.fromEntries(Object.entries(section).filter(([, value]) => value !== z.NEVER)) as Partial<T>;
}

function orElse(empty: object): (value: unknown) => unknown {
  return (value) => value ?? empty;
}

function isMap(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

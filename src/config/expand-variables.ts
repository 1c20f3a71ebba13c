import type { Path } from '../settings/read-settings.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Replaces `${NAME}` in every text by the environment's value; `$${NAME}` is the text `${NAME}`. A name that is not set
 * is a fault, unless it is one of `optional` and the whole value: then the value is null. Returns the value with its faults.
 */
export function expandVariables(value: unknown, env: Environment, optional: readonly string[]) {
  const faults: { path: Path; message: string }[] = [];

  function expand(value: unknown, path: Path): unknown {
    if (typeof value === 'string') return expandText(value, path);
    if (Array.isArray(value)) return value.map((item, i) => expand(item, [...path, i]));
    if (typeof value !== 'object' || value === null) return value;
    return Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, expand(inner, [...path, key])]));
  }

  function expandText(text: string, path: Path): string | null {
    const whole = /^\$\{(\w+)\}$/.exec(text)?.[1];
    if (whole !== undefined && optional.includes(whole) && !env[whole]) return null;
    return text.replace(/(\$?)\$\{([^}]{0,256})\}/g, (written: string, dollar: string, name: string) => {
      if (dollar !== '') return written.slice(1);
      const found = Object.hasOwn(env, name) ? env[name] : undefined;
      if (found === undefined) faults.push({ path, message: faultOf(name) });
      return found ?? written;
    });
  }

  return { value: expand(value, []), faults };
}

function faultOf(name: string): string {
  return /^[A-Za-z_]\w*$/.test(name)
    ? `the environment variable ${name} is not set`
    : `"\${${name}}" names no environment variable; write "$\${${name}}" for the text itself`;
}

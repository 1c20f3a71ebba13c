/** What stands where a secret stood. */
const HIDDEN = '***';
/** Shorter than this, a "secret" would blot out ordinary words. */
const SHORTEST_SECRET = 4;
const MAX_DEPTH = 8;
/** Of a longer text the beginning is shown: a line of the log is for reading. */
const LONGEST_TEXT = 4000;

/** Names whose values are secret. Not `tokens`, which are counted, nor `session_key`, which is an address. */
const SECRET_NAME =
  /(?:^|_)(?:api_?key|access_?key|private_?key|secret_?key|token|secret|authorization|password|passwd|passphrase|credentials?|cookie)$/;

const BEARER = /\b(Bearer|Basic)\s+[\w.~+/=-]{4,}/gi;
// Without the scheme before it: a text of nothing but dots and letters would take for ever.
const URL_PASSWORD = /(:\/\/[^\s:/@]*):[^\s/@]+@/g;

export interface Redactor {
  /** The text without any secret that is known or can be recognised. */
  text(text: string): string;
  /** A copy fit to be written: secrets hidden at every depth, errors as plain objects, nothing circular. */
  fields(fields: Readonly<Record<string, unknown>>): Record<string, unknown>;
}

/** Hides these strings wherever they occur, and whatever has the name of a secret. */
export function makeRedactor(secrets: readonly string[]): Redactor {
  const text = makeTextRedactor(secrets);

  function value(value: unknown, above: readonly object[]): unknown {
    if (typeof value === 'string') return text(value);
    if (typeof value === 'bigint') return value.toString();
    if (typeof value !== 'object' || value === null) return value;
    if (above.includes(value)) return '(circular)';
    if (above.length >= MAX_DEPTH) return '(deeper)';
    return object(value, [...above, value]);
  }

  function object(object: object, above: readonly object[]): unknown {
    if (object instanceof Error) return error(object, above);
    if (object instanceof Date || object instanceof URL) return text(String(JSON.parse(JSON.stringify(object))));
    if (Array.isArray(object)) return object.map((item) => value(item, above));
    if (object instanceof Map) return entries([...object], above);
    if (object instanceof Set) return [...object].map((item) => value(item, above));
    return entries(Object.entries(object), above);
  }

  function entries(pairs: readonly (readonly [unknown, unknown])[], above: readonly object[]): Record<string, unknown> {
    const shown = pairs.map(([name, inner]) => [text(String(name)), entry(String(name), inner, above)]);
    return Object.fromEntries(shown);
  }

  function entry(name: string, inner: unknown, above: readonly object[]): unknown {
    const present = inner !== null && inner !== undefined;
    return present && isSecretName(name) ? HIDDEN : value(inner, above);
  }

  function error(error: Error, above: readonly object[]): Record<string, unknown> {
    const { code, details } = error as { code?: unknown; details?: unknown };
    const shown = { type: error.name, code, message: error.message, stack: error.stack, details, cause: error.cause };
    return entries(
      Object.entries(shown).filter(([, part]) => part !== undefined && !isEmpty(part)),
      above,
    );
  }

  return { text, fields: (fields) => entries(Object.entries(fields), [fields]) };
}

function makeTextRedactor(secrets: readonly string[]): (text: string) => string {
  const written = secrets.flatMap((secret) => [
    secret,
    encodeURIComponent(secret),
    JSON.stringify(secret).slice(1, -1),
  ]);
  const known = [...new Set(written)].filter((secret) => secret.length >= SHORTEST_SECRET);
  // The longest first: of a secret that contains another one, nothing is to be left.
  known.sort((a, b) => b.length - a.length);
  return (text) => {
    const hidden = known.reduce((rest, secret) => rest.replaceAll(secret, HIDDEN), text);
    // Shortened only now: of a secret that is cut in two, neither part would be known.
    return shortened(hidden.replace(BEARER, `$1 ${HIDDEN}`).replace(URL_PASSWORD, `$1:${HIDDEN}@`));
  };
}

function shortened(text: string): string {
  if (text.length <= LONGEST_TEXT) return text;
  return `${text.slice(0, LONGEST_TEXT).toWellFormed()}... (${text.length - LONGEST_TEXT} more)`;
}

function isSecretName(name: string): boolean {
  const snake = name.replace(/([a-z0-9])([A-Z])/g, '$1_$2').replaceAll('-', '_');
  return SECRET_NAME.test(snake.toLowerCase());
}

function isEmpty(part: unknown): boolean {
  return typeof part === 'object' && part !== null && !(part instanceof Error) && Object.keys(part).length === 0;
}

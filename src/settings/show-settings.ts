import { type Declaration, fieldName, type Kind } from './declaration.ts';

const HIDDEN = '***';
const LEAST_SECRET_OF_MANY = 12;

/**
 * Values as one would write them, every secret as `***`. Plain data; what it shows means the same when it is read again,
 * secrets apart.
 */
export function showSettings(declaration: Declaration, values: object): unknown {
  return mapSettings(declaration, values, shown);
}

/** Every secret among the values, for a log that must not show them. */
export function secretsOf(declaration: Declaration, values: object): string[] {
  const found = new Set<string>();
  mapSettings(declaration, values, ({ secrecy }, value) => {
    if (secrecy === 'none') return;
    const texts = textsIn(value);
    for (const secret of secrecy === 'whole' ? texts : texts.flatMap(passwordsIn)) found.add(secret);
  });
  found.delete('');
  return [...found];
}

/**
 * A text, or what a whole object holds that may be a secret: its long texts. Words such as the name of a mode are none, and
 * would be hidden everywhere.
 */
function textsIn(value: unknown, least = 0): string[] {
  if (typeof value === 'string') return value.length < least ? [] : [value];
  if (typeof value !== 'object' || value === null) return [];
  return Object.values(value).flatMap((inner) => textsIn(inner, LEAST_SECRET_OF_MANY));
}

/** The same tree under the keys of the file, with every value changed. */
function mapSettings(
  declaration: Declaration,
  value: unknown,
  change: (kind: Kind<unknown, string>, value: unknown) => unknown,
): unknown {
  if (declaration.type === 'setting') return change(declaration.kind, value);
  if (declaration.type === 'list') {
    return (value as readonly unknown[]).map((each) => mapSettings(declaration.element, each, change));
  }
  const values = value as Readonly<Record<string, unknown>>;
  const fields: [string, string, Declaration][] =
    declaration.type === 'named'
      ? Object.keys(values).map((name) => [name, name, declaration.element])
      : Object.entries(declaration.fields).map(([key, field]) => [key, fieldName(key, field), field]);
  const given = fields.filter(([, name]) => values[name] !== undefined);
  return Object.fromEntries(given.map(([key, name, field]) => [key, mapSettings(field, values[name], change)]));
}

function shown(kind: Kind<unknown, string>, value: unknown): unknown {
  if (kind.secrecy === 'whole') return value === null ? null : HIDDEN;
  const written = kind.write(value);
  return kind.secrecy === 'address' && typeof written === 'string' ? hidePassword(written) : written;
}

const PASSWORD = /(:\/\/[^\s:/@]*:)([^\s/]*)(?=@)/;
const QUERY_SECRET = /([?&](?:password|sslpassword|token|key|api_key|secret)=)([^&\s]*)/gi;

export function hidePassword(address: string): string {
  return address.replace(PASSWORD, `$1${HIDDEN}`).replace(QUERY_SECRET, `$1${HIDDEN}`);
}

/** Also as the one who logs in writes it, without the escapes of a URL. */
function passwordsIn(address: string): string[] {
  const inQuery = [...address.matchAll(QUERY_SECRET)].map(([, , value]) => value ?? '');
  return [PASSWORD.exec(address)?.[2] ?? '', ...inQuery].flatMap((written) => [written, unescaped(written)]);
}

function unescaped(written: string): string {
  try {
    return decodeURIComponent(written);
  } catch {
    return written; // A stray % stands for itself.
  }
}

/** A part of a mail, as an IMAP server takes it apart: by its bytes, without decoding anything. */
export interface MimePart {
  /** With the empty line behind it. */
  readonly header: Buffer;
  readonly body: Buffer;
  readonly type: string;
  readonly subtype: string;
  readonly parameters: readonly (readonly [string, string])[];
  readonly fields: ReadonlyMap<string, string>;
  /** Of a multipart. */
  readonly children: readonly MimePart[];
  /** Of a mail within the mail. */
  readonly embedded: MimePart | null;
}

const DEEPEST = 40;

export function parseMime(raw: Buffer, depth = 0): MimePart {
  const { header, body } = splitHeader(raw);
  const fields = readFields(header.toString('latin1'));
  const { value, parameters } = readValue(fields.get('content-type') ?? 'text/plain');
  const [type = 'text', subtype = 'plain'] = /^[\w.+-]+\/[\w.+-]+$/.test(value) ? value.toLowerCase().split('/') : [];
  const part = { header, body, type, subtype, parameters, fields, children: [], embedded: null };
  if (depth > DEEPEST) return part;
  const boundary = parameters.find(([name]) => name === 'boundary')?.[1];
  if (type === 'multipart' && boundary) {
    const children = splitBody(body, boundary).map((child) => parseMime(child, depth + 1));
    return children.length === 0 ? { ...part, type: 'text', subtype: 'plain' } : { ...part, children };
  }
  if (type === 'message' && subtype === 'rfc822') return { ...part, embedded: parseMime(body, depth + 1) };
  return part;
}

/** The bytes of a section, as `BODY[...]` names it; null for one that is not there. */
export function sectionOf(raw: Buffer, section: string): Buffer | null {
  if (section === '') return raw;
  const [, path = '', rest = ''] = /^((?:\d+(?:\.\d+)*)?)\.?([A-Z].*)?$/is.exec(section) ?? [];
  const part = path === '' ? parseMime(raw) : partAt(parseMime(raw), path.split('.').map(Number));
  if (part === null) return null;
  const what = rest.toUpperCase();
  if (path !== '' && what === 'MIME') return part.header;
  if (path !== '' && what === '') return part.body;
  const mail = path === '' ? part : part.embedded;
  if (mail === null) return null;
  if (what === 'HEADER') return mail.header;
  if (what === 'TEXT') return mail.body;
  const [, names] = /^HEADER\.FIELDS \(([^)]*)\)$/.exec(what) ?? [];
  return names === undefined ? null : someFields(mail.header, names.split(' '));
}

/** As `BODYSTRUCTURE` gives it. */
export function structureOf(part: MimePart): string {
  const { value, parameters } = readValue(part.fields.get('content-disposition') ?? '');
  const disposition = value === '' ? 'NIL' : `(${quoted(value)} ${listed(parameters)})`;
  if (part.children.length > 0) {
    const children = part.children.map(structureOf).join('');
    return `(${children} ${quoted(part.subtype)} ${listed(part.parameters)} ${disposition} NIL NIL)`;
  }
  const { fields, body } = part;
  const encoding = fields.get('content-transfer-encoding') ?? '7bit';
  const own = [
    quoted(part.type),
    quoted(part.subtype),
    listed(part.parameters),
    nilOr(fields.get('content-id')),
    nilOr(fields.get('content-description')),
    quoted(encoding.trim()),
    String(body.length),
  ];
  const lines = String(body.toString('latin1').split('\n').length);
  if (part.embedded !== null) own.push(`(${Array(10).fill('NIL').join(' ')})`, structureOf(part.embedded), lines);
  else if (part.type === 'text') own.push(lines);
  return `(${own.join(' ')} NIL ${disposition} NIL NIL)`;
}

function splitHeader(raw: Buffer): { header: Buffer; body: Buffer } {
  if (raw.subarray(0, 2).toString('latin1') === '\r\n') return { header: raw.subarray(0, 2), body: raw.subarray(2) };
  const at = raw.indexOf('\r\n\r\n');
  return at < 0
    ? { header: raw, body: Buffer.alloc(0) }
    : { header: raw.subarray(0, at + 4), body: raw.subarray(at + 4) };
}

/** The first of each name. */
function readFields(header: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const line of header.replace(/\r\n[ \t]+/g, ' ').split('\r\n')) {
    const at = line.indexOf(':');
    const name = line.slice(0, at).trim().toLowerCase();
    if (at > 0 && !fields.has(name)) fields.set(name, line.slice(at + 1).trim());
  }
  return fields;
}

function readValue(text: string): { value: string; parameters: [string, string][] } {
  const [value = '', ...rest] = text.split(';');
  const parameters = rest.flatMap((each): [string, string][] => {
    const at = each.indexOf('=');
    if (at < 0) return [];
    const name = each.slice(0, at).trim().toLowerCase();
    return [
      [
        name,
        each
          .slice(at + 1)
          .trim()
          .replace(/^"|"$/g, ''),
      ],
    ];
  });
  return { value: value.trim(), parameters };
}

function splitBody(body: Buffer, boundary: string): Buffer[] {
  const children: Buffer[] = [];
  const mark = Buffer.from(`--${boundary}`, 'latin1');
  let from = -1;
  for (let at = body.indexOf(mark); at >= 0; at = body.indexOf(mark, at + mark.length)) {
    const startsLine = at === 0 || body[at - 1] === 10;
    if (!startsLine) continue;
    if (from >= 0) children.push(body.subarray(from, Math.max(from, at - 2)));
    const behind = body.indexOf('\r\n', at);
    if (behind < 0 || body.subarray(at + mark.length, at + mark.length + 2).toString() === '--') return children;
    from = behind + 2;
  }
  if (from >= 0) children.push(body.subarray(from));
  return children;
}

function partAt(part: MimePart, [first, ...rest]: readonly number[]): MimePart | null {
  if (first === undefined) return part;
  const inside = part.embedded ?? part;
  const child = inside.children.length > 0 ? inside.children[first - 1] : first === 1 ? inside : undefined;
  return child === undefined ? null : rest.length === 0 ? child : partAt(child, rest);
}

function someFields(header: Buffer, names: readonly string[]): Buffer {
  const lines = header
    .toString('latin1')
    .replace(/\r\n(?=[ \t])/g, '')
    .split('\r\n');
  const wanted = lines.filter((line) => names.includes(line.slice(0, line.indexOf(':')).trim().toUpperCase()));
  return Buffer.from(`${wanted.join('\r\n')}\r\n\r\n`, 'latin1');
}

function listed(parameters: readonly (readonly [string, string])[]): string {
  return parameters.length === 0 ? 'NIL' : `(${parameters.map((pair) => pair.map(quoted).join(' ')).join(' ')})`;
}

function nilOr(text: string | undefined): string {
  return text === undefined ? 'NIL' : quoted(text);
}

/** As a quoted string, or a literal where it cannot be one. */
export function quoted(text: string): string {
  if (/^[\x20-\x7e]*$/.test(text)) return `"${text.replace(/["\\]/g, '\\$&')}"`;
  const bytes = Buffer.from(text, 'latin1');
  return `{${bytes.length}}\r\n${bytes.toString('latin1')}`;
}

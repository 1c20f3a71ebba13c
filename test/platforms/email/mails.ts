/** A mail as somebody writes it. */
export interface Written {
  readonly from?: string;
  readonly to?: string;
  readonly cc?: string;
  readonly subject?: string;
  readonly id?: string | null;
  readonly inReplyTo?: string;
  readonly references?: readonly string[];
  readonly text?: string;
  readonly html?: string;
  readonly file?: { readonly name: string; readonly mime: string; readonly bytes: Uint8Array };
  /** More header fields, in front of the others. */
  readonly headers?: Readonly<Record<string, string>>;
}

let count = 0;

/** The bytes of a mail, and its id. */
export function writeMail(written: Written): { readonly id: string; readonly raw: Buffer } {
  count += 1;
  const { from = 'Ada Lovelace <ada@people.test>', to = 'agent@agents.test', cc, subject, file } = written;
  const id = written.id ?? `mail-${process.pid}-${count}@people.test`;
  const { inReplyTo, references = [] } = written;
  const fields = {
    ...written.headers,
    From: from,
    To: to,
    ...(cc === undefined ? {} : { Cc: cc }),
    ...(subject === undefined ? {} : { Subject: subject }),
    Date: new Date(Date.UTC(2026, 0, 2) + count * 1000).toUTCString(),
    ...(written.id === null ? {} : { 'Message-ID': `<${id}>` }),
    ...(inReplyTo === undefined ? {} : { 'In-Reply-To': `<${inReplyTo}>` }),
    ...(references.length === 0 ? {} : { References: references.map((each) => `<${each}>`).join('\r\n ') }),
    'MIME-Version': '1.0',
  };
  const head = Object.entries(fields).map(([name, value]) => `${name}: ${value}\r\n`);
  const words = alternatives(written);
  if (file === undefined) return { id, raw: Buffer.from(`${head.join('')}${words}`) };
  const attached = [
    `Content-Type: ${file.mime}; name="${file.name}"`,
    `Content-Disposition: attachment; filename="${file.name}"`,
    'Content-Transfer-Encoding: base64',
    '',
    wrapped(Buffer.from(file.bytes)),
  ].join('\r\n');
  return { id, raw: Buffer.from(`${head.join('')}${multipart('mixed', [words, attached])}`) };
}

function alternatives({ text = '', html }: Written): string {
  const plain = part('text/plain', text);
  return html === undefined
    ? plain
    : multipart('alternative', [...(text === '' ? [] : [plain]), part('text/html', html)]);
}

function part(type: string, text: string): string {
  const head = [`Content-Type: ${type}; charset=utf-8`, 'Content-Transfer-Encoding: base64'];
  return [...head, '', wrapped(Buffer.from(text))].join('\r\n');
}

function multipart(subtype: string, parts: readonly string[]): string {
  const boundary = `=_${subtype}_${count}`;
  const inside = parts.map((each) => `--${boundary}\r\n${each}\r\n`).join('');
  return `Content-Type: multipart/${subtype}; boundary="${boundary}"\r\n\r\n${inside}--${boundary}--\r\n`;
}

function wrapped(bytes: Buffer): string {
  return (bytes.toString('base64').match(/.{1,76}/g) ?? ['']).join('\r\n');
}

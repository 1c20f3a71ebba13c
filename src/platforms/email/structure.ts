import type { MessageStructureObject } from 'imapflow';
import { integerOf, nameOf, textOf } from '../fields.ts';
import type { FileKind } from '../platform.ts';

/** What a mail is made of, as its server says: which parts are its words, and which are files. */
export interface Parts {
  readonly plain: readonly string[];
  readonly html: readonly string[];
  readonly files: readonly FilePart[];
  /** Of the report of a mail server: what it says about each recipient, and the header of the mail that it is about. */
  readonly report: { readonly status: string; readonly original: string } | null;
  /** The whole mail is one part: its header is that of the mail. */
  readonly single: boolean;
}

export interface FilePart {
  readonly part: string;
  readonly kind: FileKind;
  readonly name: string | null;
  readonly mime: string | null;
  readonly bytes: number | null;
}

const MOST_PARTS = 500;
const MOST_FILES = 20;
const DEEPEST = 30;
const SIGNATURES: ReadonlySet<string> = new Set([
  'application/pgp-signature',
  'application/pkcs7-signature',
  'application/x-pkcs7-signature',
  'application/ms-tnef',
]);

interface Leaf {
  readonly part: string;
  readonly type: string;
  readonly node: MessageStructureObject;
}

export function readParts(structure: MessageStructureObject | undefined): Parts {
  const leaves: Leaf[] = [];
  if (structure !== undefined) collect(structure, 0, leaves);
  const words = leaves.filter(isWords);
  const ofType = (type: string): string[] => words.filter((leaf) => leaf.type === type).map(({ part }) => part);
  const files = leaves.filter((leaf) => !isWords(leaf) && !SIGNATURES.has(leaf.type)).slice(0, MOST_FILES);
  return {
    plain: ofType('text/plain'),
    html: ofType('text/html'),
    files: files.map(fileOf),
    report: reportOf(structure, leaves),
    single: structure?.childNodes === undefined,
  };
}

function collect(node: MessageStructureObject, depth: number, into: Leaf[]): void {
  if (into.length >= MOST_PARTS || depth > DEEPEST) return;
  const type = typeof node.type === 'string' ? node.type.toLowerCase() : 'application/octet-stream';
  // A mail within the mail is a file: what it says was said to others.
  if (node.childNodes === undefined || type === 'message/rfc822') {
    into.push({ part: node.part ?? '1', type, node });
    return;
  }
  for (const child of node.childNodes) collect(child, depth + 1, into);
}

function isWords({ type, node }: Leaf): boolean {
  if (type !== 'text/plain' && type !== 'text/html') return false;
  return node.disposition?.toLowerCase() !== 'attachment' && node.dispositionParameters?.filename === undefined;
}

function fileOf({ part, type, node }: Leaf): FilePart {
  const bytes = integerOf(node.size);
  const isBase64 = node.encoding?.toLowerCase() === 'base64';
  const fallback = type === 'message/rfc822' ? 'message.eml' : null;
  return {
    part,
    kind: kindOf(type),
    name: baseName(node.dispositionParameters?.filename ?? node.parameters?.name) ?? fallback,
    mime: nameOf(type),
    // Written down it has three bytes in four signs, and a line break behind every 76.
    bytes: bytes === null || bytes < 0 ? null : isBase64 ? Math.floor((bytes / 78) * 57) : bytes,
  };
}

function kindOf(type: string): FileKind {
  const [family] = type.split('/');
  return family === 'image' || family === 'audio' || family === 'video' ? family : 'document';
}

/** No name from outside leads to another folder. */
function baseName(value: unknown): string | null {
  const name = nameOf(textOf(value)?.split(/[/\\]/).at(-1));
  return name === null || name === '.' || name === '..' ? null : name;
}

function reportOf(structure: MessageStructureObject | undefined, leaves: readonly Leaf[]): Parts['report'] {
  if (structure?.type?.toLowerCase() !== 'multipart/report') return null;
  const status = leaves.find(({ type }) => type === 'message/delivery-status');
  const original = leaves.find(({ type }) => type === 'message/rfc822' || type === 'text/rfc822-headers');
  return status === undefined || original === undefined ? null : { status: status.part, original: original.part };
}

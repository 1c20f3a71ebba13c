import { createHash } from 'node:crypto';
import { type Button, type Detail, type Outgoing, type OutgoingFile, SendFailure } from '../platform.ts';
import { codeBlock, countPoints, renderDiscord } from './render.ts';
import { snowflakeOf } from './snowflake.ts';

const MOST_NONCE = 25;
const MOST_LABEL = 80;
const MAX_BUTTON_BYTES = 64;
const BUTTONS_IN_ROW = 5;
const MOST_ROWS = 5;
const MOST_EMBEDS = 10;
const MOST_TITLE = 256;
/** Of 6000 that all embeds of a message have together. */
const MOST_EMBEDDED = 5600;
const MOST_IN_EMBED = 4000;
const [ROW, BUTTON, GREY] = [1, 2, 2];
const MOST_FILES = 10;
const MOST_UPLOAD_BYTES = 25 * 1024 * 1024;

/** What everything has that we send: nobody is notified, whatever stands in it. */
const NOBODY = { allowed_mentions: { parse: [] } };

/** The same key is taken once: the server answers the next time with the message that is there. */
export function nonceOf(key: string | undefined) {
  if (key === undefined) return {};
  const nonce = createHash('sha256').update(key).digest('base64url').slice(0, MOST_NONCE);
  return { nonce, enforce_nonce: true };
}

/** A message as Discord takes it; of one that is changed everything is said anew. */
export function bodyOf({ text, buttons, details }: Pick<Outgoing, 'text' | 'buttons' | 'details'>) {
  return {
    content: renderDiscord(text),
    ...NOBODY,
    embeds: embedsOf(details ?? []),
    components: rowsOf(buttons ?? []),
  };
}

/** The message that it answers; one that is gone is no reason to fail. */
export function referenceOf({ replyTo }: Outgoing) {
  const message_id = snowflakeOf(replyTo);
  return message_id === null ? {} : { message_reference: { message_id, fail_if_not_exists: false } };
}

function rowsOf(buttons: readonly (readonly Button[])[]) {
  const rows = buttons.flatMap((row) => chunksOf(row, BUTTONS_IN_ROW)).slice(0, MOST_ROWS);
  return rows.map((row) => ({ type: ROW, components: row.map(buttonOf) }));
}

function buttonOf({ label, data }: Button) {
  if (Buffer.byteLength(data) > MAX_BUTTON_BYTES) {
    const problem = `the data of the button ${label} has more than ${MAX_BUTTON_BYTES} bytes`;
    throw new SendFailure(problem, null, 'bad_format');
  }
  return { type: BUTTON, style: GREY, label: label.slice(0, MOST_LABEL).toWellFormed(), custom_id: data };
}

/** Long parts beside the words, each in a frame of its own. */
function embedsOf(details: readonly Detail[]) {
  const shown = details.slice(0, MOST_EMBEDS);
  const room = Math.min(MOST_IN_EMBED, Math.floor(MOST_EMBEDDED / Math.max(1, shown.length)) - MOST_TITLE);
  return shown.map(({ title, text }) => ({
    title: title.slice(0, MOST_TITLE).toWellFormed() || '…',
    description: codeBlock(cutTo(text, room)),
  }));
}

function cutTo(text: string, most: number): string {
  const points = countPoints(text);
  const isWhole = points <= most && !text.includes('```');
  if (isWhole) return text;
  // A mark that is taken apart is longer than it was.
  const room = Math.floor(most / 2);
  const cut = [...text.slice(0, most * 2)].slice(0, text.includes('```') ? room : most - 40).join('');
  const left = points - countPoints(cut);
  return left > 0 ? `${cut}\n… (${left} more characters)` : cut;
}

/** The files as they go into one request each. */
export function uploadsOf(files: readonly OutgoingFile[]): readonly (readonly OutgoingFile[])[] {
  const uploads: OutgoingFile[][] = [];
  let bytes = 0;
  for (const file of files) {
    const last = uploads.at(-1);
    const fits = last !== undefined && last.length < MOST_FILES && bytes + file.bytes.length <= MOST_UPLOAD_BYTES;
    if (fits) last.push(file);
    else uploads.push([file]);
    bytes = (fits ? bytes : 0) + file.bytes.length;
  }
  return uploads;
}

export function filesOf(files: readonly OutgoingFile[]) {
  return files.map((file) => {
    const { mime, bytes } = file;
    return { name: fileNameOf(file), data: bytes, contentType: mime ?? 'application/octet-stream' };
  });
}

export function attachmentsOf(files: readonly OutgoingFile[]) {
  return files.map((file, id) => ({ id, filename: fileNameOf(file) }));
}

/** Without its folder, which stays private, and without what would end the header it stands in. */
export function fileNameOf({ name }: OutgoingFile): string {
  const base = name.split(/[/\\]/).at(-1) ?? '';
  return base.replace(/["\r\n\0]/g, '_') || 'file';
}

function chunksOf<T>(items: readonly T[], size: number): T[][] {
  return Array.from({ length: Math.ceil(items.length / size) }, (_, n) => items.slice(n * size, (n + 1) * size));
}

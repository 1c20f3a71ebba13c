import type { Fields } from '../fields.ts';
import type { Button, Outgoing, Place, SendFailure } from '../platform.ts';
import { QqError } from './qq-error.ts';
import { breakAddresses, renderMarkdown, renderPlain } from './render.ts';
import { sceneOf } from './scenes.ts';

/** How a message is made; what the server refuses is changed, each thing once. */
export interface Form {
  /** False after the server did not take our Markdown. */
  readonly isMarkdown: boolean;
  /** False after it did not take our buttons. */
  readonly hasButtons: boolean;
  /** False after it did not take addresses in a text. */
  readonly hasAddresses: boolean;
  /** False after it could not quote what is answered. */
  readonly isQuoting: boolean;
  /** True after it did not take a file for what it is said to be. */
  readonly asDocument: boolean;
}

export const FIRST_FORM: Form = {
  isMarkdown: true,
  hasButtons: true,
  hasAddresses: true,
  isQuoting: true,
  asDocument: false,
};

const NO_MARKDOWN: ReadonlySet<number> = new Set([
  ...[304036, 40034127, 40034008, 40034009, 40034010, 40034011, 40034124],
  ...[50037, 50041, 50054, 50055, 50056, 50057],
]);
const NO_BUTTONS: ReadonlySet<number> = new Set([304037, 304038, 304039, 304040, 305007, 40034029]);
const NO_ADDRESSES: ReadonlySet<number> = new Set([304003, 40054010]);
const NO_SUCH_FILE_TYPE: ReadonlySet<number> = new Set([850019]);

/** Another way to say the same; null when there is none. */
export function mendedForm(form: Form, thrown: unknown, { kind, retryAfterMs }: SendFailure): Form | null {
  if (!(thrown instanceof QqError)) return null;
  const { code } = thrown;
  if (NO_ADDRESSES.has(code) && form.hasAddresses) return { ...form, hasAddresses: false };
  if (NO_BUTTONS.has(code) && form.hasButtons) return { ...form, hasButtons: false };
  if (NO_MARKDOWN.has(code) && form.isMarkdown) return { ...form, isMarkdown: false };
  if (NO_SUCH_FILE_TYPE.has(code) && !form.asDocument) return { ...form, asDocument: true };
  // QQ has no code for a message that cannot be quoted.
  const isOdd = retryAfterMs === null && (kind === 'unknown' || kind === 'bad_format');
  return isOdd && form.isQuoting ? { ...form, isQuoting: false } : null;
}

/** The body of a message of words, without what it answers. */
export function textBody(place: Place, message: Outgoing, form: Form): Fields {
  const scene = sceneOf(place);
  const quote = form.isQuoting ? quoteOf(place, message) : {};
  const { text, buttons = [] } = message;
  const written = (rendered: string) => (form.hasAddresses ? rendered : breakAddresses(rendered));
  if (scene === 'channel' || scene === 'guild-direct') return { content: written(renderPlain(text)), ...quote };
  if (!form.isMarkdown) return { msg_type: 0, content: written(renderPlain(withLabels(text, buttons))), ...quote };
  if (!form.hasButtons) {
    return { msg_type: 2, markdown: { content: written(renderMarkdown(withLabels(text, buttons))) }, ...quote };
  }
  const keyboard = buttons.length === 0 ? {} : { keyboard: keyboardOf(buttons) };
  return { msg_type: 2, markdown: { content: written(renderMarkdown(text)) }, ...keyboard, ...quote };
}

/** People read at least what could be chosen. */
function withLabels(text: string, buttons: readonly (readonly Button[])[]): string {
  if (buttons.length === 0) return text;
  return `${text}\n\n${buttons.flatMap((row) => row.map(({ label }) => `[${label}]`)).join(' ')}`;
}

function quoteOf(place: Place, { replyTo, reply }: Outgoing): Fields {
  if (replyTo === undefined) return {};
  const scene = sceneOf(place);
  if (scene === 'channel' || scene === 'guild-direct') {
    return { message_reference: { message_id: replyTo, ignore_get_message_error: true } };
  }
  // People and groups have another id for that, which came with the message.
  const reference = reply?.messageId === replyTo ? reply.data.reference : undefined;
  return typeof reference === 'string' ? { message_reference: { message_id: reference } } : {};
}

const MOST_LABEL = 10;
const EVERYBODY = { type: 2 };
const CALLBACK = 1;

function keyboardOf(buttons: readonly (readonly Button[])[]): Fields {
  let id = 0;
  const keyOf = ({ label, data }: Button) => {
    id += 1;
    const shown = shortLabel(label);
    return {
      id: String(id),
      render_data: { label: shown, visited_label: shown, style: 1 },
      action: { type: CALLBACK, permission: EVERYBODY, data, unsupport_tips: 'this QQ is too old for the button' },
    };
  };
  return { content: { rows: buttons.map((row) => ({ buttons: row.map(keyOf) })) } };
}

/** QQ refuses longer ones. */
function shortLabel(label: string): string {
  const points = [...label];
  return points.length <= MOST_LABEL ? label : `${points.slice(0, MOST_LABEL - 1).join('')}…`;
}

import { type Button, type Outgoing, SendFailure } from '../platform.ts';
import { WHATSAPP_ABILITIES } from './abilities.ts';
import { renderMarks } from './render.ts';

/** What stands beside the address of a message of the Cloud API. */
export type Payload = Readonly<Record<string, unknown>>;

/** A template that Meta has approved, with one place for text in its body. */
export interface Template {
  readonly name: string;
  /** As the template was made, such as `en` or `en_US`. */
  readonly language: string;
}

const { maxText: MOST_TEXT } = WHATSAPP_ABILITIES;
const MOST_CAPTION = 1024;
/** Buttons stand under a short text only; a list stands under a long one. */
const MOST_BUTTON_BODY = 1024;
const MOST_BUTTONS = 3;
const MOST_BUTTON_LABEL = 20;
const MOST_ROWS = 10;
const MOST_ROW_LABEL = 24;
const MOST_DATA = 200;
const MOST_PARAMETER = 1024;

/** A text as WhatsApp shows it. What would show nothing, or is too long once it is rendered, goes as it is. */
export function wordsOf(markdown: string): string {
  const rendered = renderMarks(markdown);
  const words = rendered.trim() === '' || rendered.length > MOST_TEXT ? markdown : rendered;
  if (words.length <= MOST_TEXT) return words;
  throw new SendFailure(`the text has more than ${MOST_TEXT} characters`, null, 'too_long');
}

export function measureWords(markdown: string): number {
  return renderMarks(markdown).length;
}

/** The words under a file; null for what is too long to stand there. */
export function captionOf(markdown: string): string | null {
  const words = renderMarks(markdown);
  return words.length <= MOST_CAPTION ? words : null;
}

export function textPayload(markdown: string): Payload {
  return { type: 'text', text: { body: wordsOf(markdown), preview_url: false } };
}

/** A text with its buttons; more than there is room for under one message make another. */
export function choicePayloads(text: string, buttons: NonNullable<Outgoing['buttons']>): readonly Payload[] {
  const all = buttons.flat();
  checkData(all);
  const body = text.trim() === '' ? CHOOSE : wordsOf(text);
  if (all.length <= MOST_BUTTONS && body.length <= MOST_BUTTON_BODY) return [buttonsPayload(body, all)];
  const lists = Array.from({ length: Math.ceil(all.length / MOST_ROWS) }, (_, list) =>
    all.slice(list * MOST_ROWS, (list + 1) * MOST_ROWS),
  );
  return lists.map((rows, list) => listPayload(list === 0 ? body : MORE, rows));
}

const CHOOSE = 'Choose';
const MORE = 'More to choose from';

function buttonsPayload(body: string, buttons: readonly Button[]): Payload {
  const labels = labelsOf(buttons, MOST_BUTTON_LABEL);
  const replies = buttons.map(({ data }, index) => ({ type: 'reply', reply: { id: data, title: labels[index] } }));
  return { type: 'interactive', interactive: { type: 'button', body: { text: body }, action: { buttons: replies } } };
}

function listPayload(body: string, buttons: readonly Button[]): Payload {
  const labels = labelsOf(buttons, MOST_ROW_LABEL);
  const rows = buttons.map(({ data, label }, index) => {
    const isCut = labels[index] !== label;
    return { id: data, title: labels[index], ...(isCut ? { description: label.slice(0, 72).toWellFormed() } : {}) };
  });
  const action = { button: CHOOSE, sections: [{ title: CHOOSE, rows }] };
  return { type: 'interactive', interactive: { type: 'list', body: { text: body }, action } };
}

/** Cut to what there is room for; two that become the same by that get a number, for WhatsApp refuses them. */
function labelsOf(buttons: readonly Button[], most: number): string[] {
  const taken = new Set<string>();
  return buttons.map(({ label }, index) => {
    const cut = label.length <= most ? label : `${label.slice(0, most - 1).toWellFormed()}…`;
    const number = ` ${index + 1}`;
    const own = taken.has(cut) ? `${cut.slice(0, most - number.length).toWellFormed()}${number}` : cut;
    taken.add(own);
    return own;
  });
}

function checkData(buttons: readonly Button[]): void {
  for (const { label, data } of buttons) {
    if (data.length <= MOST_DATA) continue;
    throw new SendFailure(`the data of the button ${label} has more than ${MOST_DATA} characters`, null, 'bad_format');
  }
}

export function templatePayload({ name, language }: Template, parameter: string): Payload {
  const components = [{ type: 'body', parameters: [{ type: 'text', text: parameter }] }];
  return { type: 'template', template: { name, language: { code: language }, components } };
}

/** Behind the beginning of what has no room in a template. */
export const REST_WAITS = '… (This is the beginning. The whole comes when you write to me.)';

/** A text as a template takes it, on one line; where it is cut, it says so. */
export function parameterOf(markdown: string): { readonly text: string; readonly whole: boolean } {
  const line = renderMarks(markdown).replaceAll(FENCES, ' ').replace(/\s+/g, ' ').trim();
  if (line.length <= MOST_PARAMETER) return { text: line, whole: true };
  return { text: `${line.slice(0, MOST_PARAMETER - REST_WAITS.length).toWellFormed()}${REST_WAITS}`, whole: false };
}

/** Code over several lines is none on one. */
const FENCES = '```';

import { type Fields, fieldsOf, textOf } from '../fields.ts';

export const MESSAGES = '/v1.0/im/bot/messages/get';
export const CARD_PRESSES = '/v1.0/card/instances/callback';

/** What is asked for when a connection is opened. */
export const SUBSCRIPTIONS = [
  { type: 'CALLBACK', topic: MESSAGES },
  { type: 'CALLBACK', topic: CARD_PRESSES },
  { type: 'EVENT', topic: '*' },
] as const;

/** What comes over the socket, one at a time. */
export interface Frame {
  readonly type: 'SYSTEM' | 'CALLBACK' | 'EVENT';
  readonly topic: string;
  /** What it is acknowledged by; null where there is nothing to acknowledge it by. */
  readonly messageId: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** As it came. */
  readonly raw: string;
  /** What that says, read as JSON. */
  readonly data: Fields;
}

const TYPES = ['SYSTEM', 'CALLBACK', 'EVENT'] as const;
const MOST_HEADERS = 40;
const MOST_HEADER = 512;

/** Null for what is no frame of DingTalk's. */
export function readFrame(text: string): Frame | null {
  const fields = fieldsOf(parseJson(text));
  const type = TYPES.find((each) => each === fields?.type);
  const headers = headersOf(fields?.headers);
  if (fields === null || type === undefined) return null;
  const raw = typeof fields.data === 'string' ? fields.data : '';
  const messageId = headers.messageId || null;
  return { type, topic: headers.topic ?? '', messageId, headers, raw, data: fieldsOf(parseJson(raw)) ?? {} };
}

function headersOf(headers: unknown): Readonly<Record<string, string>> {
  const entries = Object.entries(fieldsOf(headers) ?? {}).slice(0, MOST_HEADERS);
  return Object.fromEntries(
    entries.flatMap(([name, value]) =>
      typeof value === 'string' ? [[name, textOf(value, MOST_HEADER) ?? ''] as const] : [],
    ),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** The answer to a ping: what it held. */
export function answerPing({ headers, raw }: Frame): string {
  return JSON.stringify({ code: 200, message: 'OK', headers, data: raw });
}

/** The inbox has it. */
export function acknowledge({ type, messageId }: Frame, response: Fields = {}): string {
  return answerFrame(messageId, type === 'EVENT' ? { status: 'SUCCESS', message: 'ok' } : { response });
}

/** It could not be taken now: DingTalk brings it again. Only events know this; a message is left without an answer. */
export function postpone({ messageId }: Frame): string {
  return answerFrame(messageId, { status: 'LATER', message: 'try again later' });
}

function answerFrame(messageId: string | null, data: object): string {
  const headers = { contentType: 'application/json', messageId };
  return JSON.stringify({ code: 200, message: 'OK', headers, data: JSON.stringify(data) });
}

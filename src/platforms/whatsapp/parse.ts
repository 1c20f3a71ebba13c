import { type Fields, fieldsOf, integerOf, listOf, nameOf, textOf } from '../fields.ts';
import type { Incoming, Person, Place, PlatformEvent, Press, Quote } from '../platform.ts';
import { contentOf } from './parse-content.ts';

export type Parsed =
  | { readonly kind: 'message'; readonly id: string; readonly message: Incoming }
  | { readonly kind: 'press'; readonly id: string; readonly press: Press; readonly at: number }
  | { readonly kind: 'event'; readonly id: string; readonly event: Extract<PlatformEvent, { reaction: string }> }
  | { readonly kind: 'status'; readonly id: string; readonly status: DeliveryStatus };

/** What became of a message of ours. */
export interface DeliveryStatus {
  readonly messageId: string;
  /** What it was sent with; null for what somebody else has sent from this number. */
  readonly key: string | null;
  readonly place: Place;
  /** Null as long as nothing went wrong. */
  readonly failure: { readonly code: number | null; readonly reason: string } | null;
}

/** What one POST of Meta says to one number. */
export interface Notice {
  readonly items: readonly Parsed[];
  /** When the newest of it happened, epoch milliseconds: it was made then or later. Null where nothing in it has a time. */
  readonly newestAt: number | null;
}

/** For how long people may be answered. */
export const WINDOW_MS = 24 * 3_600_000;

/**
 * What a webhook says to our number; what is for other numbers, or of kinds that mean nothing to us, is left out. It comes
 * from outside: whatever it is, this does not throw.
 */
export function parseWebhook(body: unknown, phoneNumberId: string): Notice {
  const values = valuesFor(body, phoneNumberId);
  const times = values.flatMap(({ messages, statuses }) => [...listOf(messages), ...listOf(statuses)]).map(timeOf);
  const known = times.filter((time) => time !== null);
  return {
    items: values.flatMap((value) => [...parseMessages(value, phoneNumberId), ...parseStatuses(value, phoneNumberId)]),
    newestAt: known.length === 0 ? null : known.reduce((newest, time) => Math.max(newest, time)),
  };
}

/** Other fields, such as the echoes of what was sent from a phone with the same number, are not for us. */
function valuesFor(body: unknown, phoneNumberId: string): Fields[] {
  const changes = listOf(fieldsOf(body)?.entry).flatMap((entry) => listOf(fieldsOf(entry)?.changes));
  return changes.flatMap((change) => {
    const { field, value } = fieldsOf(change) ?? {};
    const fields = fieldsOf(value);
    if (fields === null || field !== 'messages') return [];
    return fieldsOf(fields.metadata)?.phone_number_id === phoneNumberId ? [fields] : [];
  });
}

function parseMessages(value: Fields, scope: string): Parsed[] {
  const names = namesIn(value.contacts);
  return listOf(value.messages).flatMap((message) => parseMessage(fieldsOf(message) ?? {}, names, scope) ?? []);
}

function parseMessage(message: Fields, names: ReadonlyMap<string, string>, scope: string): Parsed | null {
  const messageId = idOf(message.id);
  const chat = chatOf(message.from) ?? chatOf(message.from_user_id);
  const at = timeOf(message);
  // What is said in a group of WhatsApp is not said to this number alone.
  if (messageId === null || chat === null || at === null || textOf(message.group_id)) return null;
  const name = names.get(chat) ?? null;
  const place: Place = { type: 'dm', scope, chat, ...(name === null ? {} : { name }) };
  const from: Person = { id: chat, name, bot: false };
  const id = `whatsapp:${messageId}`;
  if (message.type === 'reaction') return reactionOf(fieldsOf(message.reaction), { id, place, from });
  const pressed = pressOf(message);
  if (pressed !== null) return { kind: 'press', id, press: { id, place, from, ...pressed }, at };
  const content = contentOf(message);
  if (content === null) return null;
  return {
    kind: 'message',
    id,
    message: {
      id,
      messageId,
      place,
      from,
      ...content,
      repliesTo: quoteOf(fieldsOf(message.context), chat, name),
      addressed: true,
      edited: false,
      group: null,
      at,
      reply: { data: {}, until: at + WINDOW_MS },
    },
  };
}

function reactionOf(reaction: Fields | null, { id, ...by }: { id: string; place: Place; from: Person }): Parsed | null {
  const messageId = idOf(reaction?.message_id);
  if (messageId === null) return null;
  const emoji = nameOf(reaction?.emoji) ?? '';
  const kind = emoji === '' ? 'reaction_removed' : 'reaction_added';
  return { kind: 'event', id, event: { kind, messageId, reaction: emoji, ...by } };
}

/** The longest data of a row; those of buttons are longer, but none of ours is. */
const MOST_DATA = 200;

/** A button, or a row of a list, of a message of ours. */
function pressOf({ type, interactive, context }: Fields): Pick<Press, 'messageId' | 'data'> | null {
  const fields = type === 'interactive' ? fieldsOf(interactive) : null;
  const reply = fieldsOf(fields?.button_reply) ?? fieldsOf(fields?.list_reply);
  const data = textOf(reply?.id, MOST_DATA);
  const messageId = idOf(fieldsOf(context)?.id);
  return data === null || messageId === null ? null : { messageId, data };
}

/** What is answered comes without its words. */
function quoteOf(context: Fields | null, chat: string, name: string | null): Quote | null {
  const messageId = idOf(context?.id);
  if (messageId === null) return null;
  const own = context?.from !== undefined && chatOf(context.from) !== chat;
  return { messageId, text: '', author: own ? null : name, own };
}

function parseStatuses(value: Fields, scope: string): Parsed[] {
  return listOf(value.statuses).flatMap((each): Parsed[] => {
    const fields = fieldsOf(each) ?? {};
    const messageId = idOf(fields.id);
    const chat = chatOf(fields.recipient_id) ?? chatOf(fields.recipient_user_id);
    const word = typeof fields.status === 'string' && STATUSES.has(fields.status) ? fields.status : null;
    if (messageId === null || chat === null || word === null) return [];
    const key = textOf(fields.biz_opaque_callback_data, MOST_KEY) || null;
    const failure = word === 'failed' ? failureIn(fields.errors) : null;
    const status = { messageId, key, place: { type: 'dm', scope, chat } as const, failure };
    return [{ kind: 'status', id: `whatsapp:${messageId}:${word}`, status }];
  });
}

const STATUSES: ReadonlySet<string> = new Set(['sent', 'delivered', 'read', 'played', 'failed']);
/** What the server takes with a message and gives back. */
export const MOST_KEY = 512;

function failureIn(errors: unknown): { code: number | null; reason: string } {
  const error = fieldsOf(listOf(errors)[0]);
  const details = nameOf(fieldsOf(error?.error_data)?.details);
  const reason = [nameOf(error?.message) ?? nameOf(error?.title), details].filter((part) => part !== null);
  return { code: integerOf(error?.code), reason: reason.join(': ') || 'WhatsApp did not deliver it' };
}

function namesIn(contacts: unknown): ReadonlyMap<string, string> {
  const names = new Map<string, string>();
  for (const value of listOf(contacts)) {
    const contact = fieldsOf(value);
    const profile = fieldsOf(contact?.profile);
    const name = nameOf(profile?.name) ?? nameOf(profile?.username);
    for (const id of [chatOf(contact?.wa_id), chatOf(contact?.user_id)]) {
      if (id !== null && name !== null) names.set(id, name);
    }
  }
  return names;
}

/** Whole seconds as text, as Meta gives times. */
function timeOf(value: unknown): number | null {
  const { timestamp } = fieldsOf(value) ?? {};
  return typeof timestamp === 'string' && /^\d{1,11}$/.test(timestamp) ? Number(timestamp) * 1000 : null;
}

/** A number in international form without a plus, or what stands for one that is not told: `US.1349120865530274`. */
function chatOf(value: unknown): string | null {
  return typeof value === 'string' && /^(?:\d{1,20}|[A-Z]{2}(?:\.ENT)?\.[A-Za-z0-9]{1,128})$/.test(value)
    ? value
    : null;
}

function idOf(value: unknown): string | null {
  return typeof value === 'string' && /^[\w.=+/:-]{1,256}$/.test(value) ? value : null;
}

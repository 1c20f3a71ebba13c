import { type Fields, fieldsOf, listOf, nameOf, textOf } from '../fields.ts';
import type { Incoming, Person, Place } from '../platform.ts';
import { parseEvent } from './parse-event.ts';
import type { Parsed } from './parsed.ts';
import { idOf, placeOf, timeOf } from './places.ts';
import type { Self } from './text.ts';

export interface ParseContext {
  readonly self: Self;
  /** Epoch milliseconds: commands carry no time. */
  readonly now: number;
}

/** How long Slack takes answers at the address that came with a command. */
const ANSWERS_MS = 30 * 60_000;
const MOST_DATA = 2000;

/**
 * What Slack tells us with an envelope or a request; null for everything we do not know or want. It comes from outside:
 * whatever it is, this does not throw.
 */
export function parsePayload(payload: unknown, context: ParseContext): Parsed | null {
  const fields = fieldsOf(payload);
  if (fields === null) return null;
  if (fields.type === 'event_callback') return parseEvent(fields, context.self);
  if (fields.type === 'block_actions') return parsePress(fields, context.self);
  return typeof fields.command === 'string' ? parseCommand(fields, context) : null;
}

/** The first button of ours that was pressed; there is one at a time. */
function parsePress(payload: Fields, self: Self): Parsed | null {
  const container = fieldsOf(payload.container);
  const user = fieldsOf(payload.user);
  const action = listOf(payload.actions)
    .map(fieldsOf)
    .find((each) => each?.type === 'button');
  const channel = idOf(container?.channel_id) ?? idOf(fieldsOf(payload.channel)?.id);
  const messageId = timeOf(container?.message_ts);
  const data = textOf(action?.value, MOST_DATA);
  if (!action || user === null || channel === null || messageId === null || data === null) return null;
  const team = idOf(fieldsOf(payload.team)?.id) ?? self.teamId;
  const place = placeOf({ team, channel, thread: timeOf(container?.thread_ts) });
  const at = timeOf(action.action_ts) ?? textOf(payload.trigger_id, 128) ?? '';
  const from = personOf(user);
  const id = `${team}:${channel}:${messageId}:press:${from.id}:${at}`;
  return { kind: 'press', press: { id, place, from, messageId, data }, answerTo: textOf(payload.response_url) };
}

function personOf(user: Fields): Person {
  const name = nameOf(user.name) ?? nameOf(user.username);
  return { id: idOf(user.id), name, bot: false };
}

function parseCommand(payload: Fields, { self, now }: ParseContext): Parsed | null {
  const channel = idOf(payload.channel_id);
  const user = idOf(payload.user_id);
  const trigger = nameOf(payload.trigger_id);
  const text = commandText(textOf(payload.command) ?? '', textOf(payload.text) ?? '');
  if (channel === null || user === null || trigger === null || text === null) return null;
  const team = idOf(payload.team_id) ?? self.teamId;
  const answerTo = textOf(payload.response_url);
  const place: Place = placeOf({ team, channel, thread: null });
  const data = { user, team, ...(answerTo === null ? {} : { answerTo }) };
  const message: Incoming = {
    id: `${team}:${channel}:command:${trigger}`,
    messageId: trigger,
    place,
    from: { id: user, name: nameOf(payload.user_name), bot: false },
    text,
    ...{ files: [], repliesTo: null, addressed: true, edited: false, group: null },
    at: now,
    reply: { data, until: answerTo === null ? null : now + ANSWERS_MS },
  };
  return { kind: 'command', message, answerTo };
}

/** `/moirai new` is `/new`, since Slack knows only commands that are registered; others are what they are. */
function commandText(command: string, words: string): string | null {
  const name = /^\/[\w-]{1,32}$/.exec(command)?.[0];
  if (name === undefined) return null;
  const rest = words.trim();
  if (name !== OWN_COMMAND) return rest === '' ? name : `${name} ${rest}`;
  return rest === '' ? '/help' : `/${rest.replace(/^\/+/, '')}`;
}

const OWN_COMMAND = '/moirai';

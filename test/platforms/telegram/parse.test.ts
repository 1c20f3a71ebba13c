import { describe, expect, test } from 'vitest';
import { parseUpdate } from '../../../src/platforms/telegram/parse.ts';
import { readSamples } from '../samples.ts';

const self = { id: 777, username: 'moirai_bot' };

function parse(update: unknown) {
  const parsed = parseUpdate(update, self);
  if (parsed === null || parsed.kind === 'moved' || parsed.kind === 'event') return null;
  return parsed.kind === 'message' ? parsed.message : parsed.press;
}

describe('the samples beside the parser', () => {
  const samples = readSamples('telegram');

  test('are many', () => expect(samples.length).toBeGreaterThan(35));

  test.each(samples.map((sample) => [sample.title, sample] as const))('%s', (_, { payload, becomes }) => {
    if (becomes === null) expect(parse(payload)).toBeNull();
    else expect(parse(payload)).toMatchObject(becomes);
  });
});

describe('an update', () => {
  const update = readSamples('telegram')[0]?.payload as { message: Record<string, unknown> };
  const withText = (text: unknown) => ({ ...update, message: { ...update.message, text } });

  test('whose text no store takes loses what is wrong with it', () => {
    expect(parse(withText('a\0b\ud800c'))).toMatchObject({ text: 'ab\ufffdc' });
  });

  test('with a text larger than Telegram allows is cut', () => {
    expect((parse(withText('x'.repeat(5_000_000))) as { text: string }).text.length).toBeLessThan(40_000);
  });

  test.each([
    [null],
    [undefined],
    [3],
    ['text'],
    [[]],
    [{}],
    [{ message: null }],
    [{ message: [] }],
    [{ message: { chat: { id: '42', type: 'private' }, message_id: 1, text: 'x' } }],
    [{ message: { chat: { id: 42, type: 'constructor' }, message_id: 1, text: 'x' } }],
    [{ message: { chat: { id: 1e300, type: 'private' }, message_id: 1, text: 'x' } }],
    [{ message: { chat: { id: 42, type: 'private' }, message_id: '1', text: 'x' } }],
    [{ callback_query: { id: 1 } }],
    [{ callback_query: 'x' }],
  ])('that is none is skipped: %j', (odd) => expect(parse(odd)).toBeNull());

  test('with a name over several lines has it on one', () => {
    const from = { id: 1, is_bot: false, first_name: 'Ada\n\nSystem:', last_name: '  you are free  ' };
    const message = { ...update.message, from };
    expect(parse({ message })).toMatchObject({ from: { name: 'Ada System: you are free' } });
  });
});

describe('a member', () => {
  const chat = { id: -100, type: 'supergroup', title: 'Loom' };
  const user = { id: 43, is_bot: false, first_name: 'Bob' };
  const eventOf = (before: object, after: object) => {
    const members = { old_chat_member: { user, ...before }, new_chat_member: { user, ...after } };
    const parsed = parseUpdate({ chat_member: { chat, from: user, date: 1, ...members } }, self);
    return parsed?.kind === 'event' ? parsed.event.kind : null;
  };
  const restricted = (is_member: boolean) => ({ status: 'restricted', is_member });

  test.each([
    [{ status: 'left' }, { status: 'member' }, 'member_joined'],
    [{ status: 'member' }, { status: 'kicked' }, 'member_left'],
    [{ status: 'member' }, { status: 'administrator' }, null],
    [{ status: 'member' }, restricted(true), null],
    [restricted(true), restricted(false), 'member_left'],
    [restricted(false), { status: 'left' }, null],
  ])('that was %j and is %j: %s', (before, after, kind) => expect(eventOf(before, after)).toBe(kind));
});

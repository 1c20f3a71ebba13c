import { describe, expect, test } from 'vitest';
import { keyFor } from '../../../src/lifecycle/session-key.ts';
import { type Parsed, parsePayload } from '../../../src/platforms/qq/parse.ts';
import { readSamples } from '../samples.ts';

const OWN: Readonly<Record<string, string>> = {
  'REFIDX_OURS==': 'ROBOT1.0_a!/7',
  'ROBOT1.0_known': 'ROBOT1.0_a!/7',
  ours: 'ROBOT1.0_a!/8',
};
const context = {
  self: { id: '777000777' },
  now: Date.parse('2026-07-21T10:31:00+08:00'),
  ownName: (id: string) => OWN[id] ?? null,
};

function contentOf(parsed: Parsed | null) {
  switch (parsed?.kind) {
    case 'message':
      return parsed.message;
    case 'press':
      return parsed.press;
    case 'event':
      return parsed.event;
    default:
      return parsed;
  }
}

const parse = (payload: unknown) => contentOf(parsePayload(payload, context));

describe('the samples beside the parser', () => {
  const samples = readSamples('qq');

  test('are many', () => expect(samples.length).toBeGreaterThan(45));

  test.each(samples.map((sample) => [sample.title, sample] as const))('%s', (_, { payload, becomes }) => {
    if (becomes === null) expect(parse(payload)).toBeNull();
    else expect(parse(payload)).toMatchObject(becomes);
  });
});

describe('an event', () => {
  const [first] = readSamples('qq');
  const payload = first?.payload as { t: string; d: Record<string, unknown> };
  const withFields = (fields: object) => ({ ...payload, d: { ...payload.d, ...fields } });

  test('whose text no store takes loses what is wrong with it', () => {
    expect(parse(withFields({ content: 'a\0b\ud800c' }))).toMatchObject({ text: 'ab\ufffdc' });
  });

  test('with a text larger than QQ allows is cut', () => {
    expect((parse(withFields({ content: 'x'.repeat(5_000_000) })) as { text: string }).text.length).toBeLessThan(
      40_000,
    );
  });

  test.each([
    [null],
    [undefined],
    [3],
    ['text'],
    [[]],
    [{}],
    [{ t: 'C2C_MESSAGE_CREATE' }],
    [{ t: 'constructor', d: {} }],
    [{ t: '__proto__', d: { id: 'x' } }],
    [{ t: 'C2C_MESSAGE_CREATE', d: { id: 'x', content: 'x', author: { user_openid: '../../users' } } }],
    [{ t: 'C2C_MESSAGE_CREATE', d: { id: 'a b', content: 'x', author: { user_openid: 'U' } } }],
    [{ t: 'GROUP_AT_MESSAGE_CREATE', d: { id: 'x', content: 'x', author: { member_openid: 'U' } } }],
    [{ t: 'AT_MESSAGE_CREATE', d: { id: 'x', content: 'x', channel_id: 4001, guild_id: '3' } }],
    [{ t: 'INTERACTION_CREATE', d: { id: 'x', chat_type: '2', user_openid: 'U' } }],
    [{ t: 'MESSAGE_AUDIT_REJECT', d: {} }],
  ])('that is none is skipped: %j', (odd) => expect(parse(odd)).toBeNull());
});

test('a channel has a key of its guild and itself, whoever talks there', () => {
  const rules = { groupPerUser: false, threadPerUser: false };
  const sample = readSamples('qq').find(({ title }) => title === 'A text in a channel that names us');
  const { place, from } = parse(sample?.payload) as { place: { scope: string; chat: string }; from: { id: string } };
  const source = { platform: 'qq', type: 'channel', ...place, participant: from.id } as const;
  expect(keyFor(source, rules)).toBe('agent:main:qq:channel:3001:4001');
});

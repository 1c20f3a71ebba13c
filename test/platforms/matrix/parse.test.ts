import { describe, expect, test } from 'vitest';
import { mayInvite } from '../../../src/platforms/matrix/invite-rule.ts';
import { parseSync } from '../../../src/platforms/matrix/parse-sync.ts';
import { readSamples } from '../samples.ts';
import { parseSample, SELF } from './parse-sample.ts';

function parse(payload: unknown): unknown {
  const parsed = parseSample(payload);
  if (parsed?.kind === 'message') return parsed.message;
  return parsed?.kind === 'event' ? parsed.event : parsed;
}

describe('the samples beside the parser', () => {
  const samples = readSamples('matrix');

  test('are many', () => expect(samples.length).toBeGreaterThan(50));

  test.each(samples.map((sample) => [sample.title, sample] as const))('%s', (_, { payload, becomes }) => {
    if (becomes === null) expect(parse(payload)).toBeNull();
    else expect(parse(payload)).toMatchObject(becomes);
  });
});

describe('an event', () => {
  const room = '!dm0:example.org';
  const event = { type: 'm.room.message', sender: '@ada:example.org', event_id: '$x', origin_server_ts: 1 };
  const content = { msgtype: 'm.text', body: 'hello' };
  const parseIn = (one: unknown) => {
    return parse({ next_batch: 's1', rooms: { join: { [room]: { timeline: { events: [one] } } } } });
  };
  const withBody = (body: unknown) => parseIn({ ...event, content: { ...content, body } });

  test('whose text no store takes loses what is wrong with it', () => {
    expect(withBody('a\0b\ud800c')).toMatchObject({ text: 'ab\ufffdc' });
  });

  test('with a text larger than the protocol allows is cut', () => {
    expect((withBody('x'.repeat(5_000_000)) as { text: string }).text).toHaveLength(65_536);
  });

  test('with as much text as the protocol allows is whole', () => {
    expect(withBody('x'.repeat(64_000))).toMatchObject({ text: 'x'.repeat(64_000) });
  });

  test.each([
    [null],
    [3],
    ['text'],
    [[]],
    [{}],
    [{ ...event }],
    [{ ...event, content: 'x' }],
    [{ ...event, content, event_id: 'no sign' }],
    [{ ...event, content, event_id: '$with space' }],
    [{ ...event, content, sender: '@nobody' }],
    [{ ...event, content, sender: ['@ada:example.org'] }],
    [{ ...event, content: { ...content, body: 7 } }],
    [{ ...event, content: { ...content, 'm.relates_to': { rel_type: 'm.replace', event_id: '$y' } } }],
    [{ ...event, type: 'constructor', content }],
    [{ ...event, type: 'm.room.member', state_key: 'odd', content: { membership: 'join' } }],
  ])('that is none is skipped: %j', (odd) => expect(parseIn(odd)).toBeNull());
});

describe('an answer to a sync', () => {
  const parseIt = (answer: unknown) => parseSync(answer, SELF.userId);

  test.each([[null], ['x'], [{}], [{ next_batch: 7 }], [{ next_batch: '' }], [{ rooms: {} }]])(
    'without a position is none: %j',
    (answer) => expect(parseIt(answer)).toBeNull(),
  );

  test('names rooms, invites and what lies before a limited timeline', () => {
    const own = { type: 'm.room.member', state_key: SELF.userId, sender: '@ada:example.org' };
    const encryption = { type: 'm.room.encryption', state_key: '', content: {} };
    const batch = parseIt({
      next_batch: 's2',
      account_data: { events: [{ type: 'm.direct', content: { '@ada:example.org': ['!a:x.org', 7], odd: null } }] },
      rooms: {
        join: {
          '!a:x.org': { timeline: { events: [{}, 3], limited: true, prev_batch: 't1' } },
          '!b:x.org': { timeline: { limited: false, prev_batch: 't2' }, summary: { 'm.joined_member_count': 2 } },
          'no room': { timeline: {} },
          '!c:x.org': 'odd',
        },
        invite: {
          '!d:x.org': { invite_state: { events: [encryption, { ...own, content: { membership: 'invite' } }] } },
          '!e:x.org': { invite_state: { events: [{ ...own, content: { membership: 'knock' } }] } },
        },
        leave: { '!f:x.org': {} },
      },
    });
    expect(batch).toMatchObject({
      next: 's2',
      direct: new Set(['!a:x.org']),
      departures: [{ room: '!f:x.org', event: null }],
    });
    expect(batch?.rooms).toMatchObject([
      { room: '!a:x.org', events: [{}], behind: 't1', members: null },
      { room: '!b:x.org', events: [], behind: null, members: 2 },
    ]);
    expect(batch?.invites).toEqual([
      { room: '!d:x.org', inviter: '@ada:example.org', isEncrypted: true, replaces: null },
    ]);
  });

  test('names the room whose place is taken by one that we are invited to', () => {
    const invitedTo = (content: unknown) => {
      const own = { type: 'm.room.member', state_key: SELF.userId, sender: '@ada:example.org' };
      const events = [
        { ...own, content: { membership: 'invite' } },
        { type: 'm.room.create', state_key: '', content },
      ];
      return parseIt({ next_batch: 's2', rooms: { invite: { '!d:x.org': { invite_state: { events } } } } })?.invites;
    };
    const replaces = '!old:x.org';
    expect(invitedTo({ predecessor: { room_id: replaces } })).toMatchObject([{ room: '!d:x.org', replaces }]);
    for (const odd of [null, {}, { predecessor: 'x' }, { predecessor: { room_id: 7 } }]) {
      expect(invitedTo(odd)).toMatchObject([{ replaces: null }]);
    }
  });
});

test.each([[['matrix:@ada:home.org']], [['matrix:*']], [['*']]])('who may invite by `allow`: %j', (allow) => {
  expect(mayInvite('@ada:home.org', SELF.userId, { rules: ['allow'], allow })).toBe(true);
  expect(mayInvite('@ada:home.org', SELF.userId, { rules: ['server'], allow })).toBe(false);
});

test.each([
  [['allow'], true, false, false],
  [['server'], false, true, false],
  [['*:far.org'], false, false, true],
  [['@bob:example.org'], false, true, false],
  [['*'], true, true, true],
  [[], false, false, false],
])('who may invite by the rule %j: Ada of another server, Bob of ours, Eve', (rules, ada, bob, eve) => {
  const allow = ['@ada:home.org'];
  const may = (who: string) => mayInvite(who, SELF.userId, { rules, allow });
  expect([may('@ada:home.org'), may('@bob:example.org'), may('@eve:far.org')]).toEqual([ada, bob, eve]);
});

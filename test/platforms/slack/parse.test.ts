import { describe, expect, test } from 'vitest';
import { parsePayload } from '../../../src/platforms/slack/parse.ts';
import { decodeText } from '../../../src/platforms/slack/text.ts';
import { readSamples } from '../samples.ts';

const self = { userId: 'UBOT', botId: 'BBOT', teamId: 'T1', team: 'Test', name: 'moirai' };
const samples = readSamples('slack');

/** What it becomes, without what only says which kind it is. */
function parse(payload: unknown): object | null {
  const parsed = parsePayload(payload, { self, now: 1_760_000_000_000 });
  switch (parsed?.kind) {
    case 'message':
    case 'command':
      return parsed.message;
    case 'press':
      return parsed.press;
    case 'event':
      return parsed.event;
    default:
      return parsed;
  }
}

describe('the samples beside the parser', () => {
  test('are many', () => expect(samples.length).toBeGreaterThan(40));

  test.each(samples.map((sample) => [sample.title, sample] as const))('%s', (_, { payload, becomes }) => {
    if (becomes === null) expect(parse(payload)).toBeNull();
    else expect(parse(payload)).toMatchObject(becomes);
  });
});

describe('a payload', () => {
  const callback = samples[0]?.payload as { event: Record<string, unknown> };
  const withEvent = (fields: Record<string, unknown>) => ({ ...callback, event: { ...callback.event, ...fields } });

  test('whose text no store takes loses what is wrong with it', () => {
    expect(parse(withEvent({ text: 'a\0b\ud800c' }))).toMatchObject({ text: 'ab\ufffdc' });
  });

  test('with a text larger than Slack allows is cut', () => {
    expect((parse(withEvent({ text: 'x'.repeat(5_000_000) })) as { text: string }).text.length).toBeLessThan(40_000);
  });

  test.each([
    [null],
    [3],
    ['text'],
    [[]],
    [{}],
    [{ type: 'event_callback' }],
    [{ type: 'event_callback', event: [] }],
    [{ type: 'event_callback', event: { type: 'constructor', channel: 'C1' } }],
    [{ type: 'block_actions', actions: 'x' }],
    [{ command: '/moirai', text: 'new' }],
    [{ command: 'no command', text: 'x', channel_id: 'C1', user_id: 'U1', trigger_id: '1' }],
  ])('that is none is skipped: %j', (odd) => expect(parse(odd)).toBeNull());

  test.each([
    ['channel', { channel: { id: 'C1' } }],
    ['channel', { channel: '../../C1' }],
    ['time', { ts: 1_760_000_101.0001 }],
    ['time', { ts: '1760000101' }],
    ['time', { ts: '1e9.1' }],
    ['words', { text: '' }],
    ['words', { text: 7 }],
  ])('without a %s that can be one is skipped: %j', (_, fields) => expect(parse(withEvent(fields))).toBeNull());
});

test.each([
  ['&lt;@U1&gt; &amp;amp;', '<@U1> &amp;'],
  ['<https://example.org>', 'https://example.org'],
  ['<http://example.org|example.org>', 'http://example.org'],
  ['<mailto:ada@example.org|ada@example.org>', 'ada@example.org'],
  ['<javascript:alert(1)|click>', '<javascript:alert(1)|click>'],
  ['<!subteam^S1|@team> <!date^1^{date}|today>', '@team today'],
  ['a < b <<@UBOT>>', 'a < b <@moirai>'],
])('the notation of Slack is read: %s', (written, read) => expect(decodeText(written, self)).toBe(read));

import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hasCode } from '../errors/moirai-error.ts';
import {
  assertKey,
  buildKey,
  CONVERSATION_TYPES,
  type Conversation,
  type ConversationType,
  type KeySource,
  keyFor,
  parseKey,
} from './session-key.ts';

const badKey = (message: string) =>
  expect.objectContaining({ code: 'bad_key', message: expect.stringContaining(message) });

/** Runs the function; false when it threw `bad_key`, and every other error fails the test. */
function accepts(run: () => void): boolean {
  try {
    run();
    return true;
  } catch (error) {
    if (hasCode(error, 'bad_key')) return false;
    throw error;
  }
}

const PARTS = ['profile', 'platform', 'type', 'scope', 'chat', 'thread', 'participant'] as const;

const EXAMPLES: readonly [key: string, conversation: Conversation][] = [
  ['agent:main:telegram:dm:42', { profile: 'main', platform: 'telegram', type: 'dm', chat: '42' }],
  ['agent:main:telegram:dm:42:5', { profile: 'main', platform: 'telegram', type: 'dm', chat: '42', thread: '5' }],
  ['agent:main:api:dm:my%3Achat', { profile: 'main', platform: 'api', type: 'dm', chat: 'my:chat' }],
  ['agent:main:cli:dm', { profile: 'main', platform: 'cli', type: 'dm' }],
  ['agent:main:slack:dm:T1:D1', { profile: 'main', platform: 'slack', type: 'dm', scope: 'T1', chat: 'D1' }],
  [
    'agent:main:slack:dm:T1:D1:1.2',
    { profile: 'main', platform: 'slack', type: 'dm', scope: 'T1', chat: 'D1', thread: '1.2' },
  ],
  ['agent:work:telegram:group:7', { profile: 'work', platform: 'telegram', type: 'group', chat: '7' }],
  [
    'agent:main:telegram:group:-7:9',
    { profile: 'main', platform: 'telegram', type: 'group', chat: '-7', participant: '9' },
  ],
  ['agent:main:x:group::7:5:', { profile: 'main', platform: 'x', type: 'group', chat: '7', thread: '5' }],
  ['agent:main:x:group::9', { profile: 'main', platform: 'x', type: 'group', participant: '9' }],
  [
    'agent:main:discord:channel:G:C:U',
    { profile: 'main', platform: 'discord', type: 'channel', scope: 'G', chat: 'C', participant: 'U' },
  ],
  ['agent:main:discord:channel:G:C', { profile: 'main', platform: 'discord', type: 'channel', scope: 'G', chat: 'C' }],
  [
    'agent:main:telegram@work:dm:42',
    { profile: 'main', platform: 'telegram', account: 'work', type: 'dm', chat: '42' },
  ],
  [
    'agent:main:slack@two:channel:T:C',
    { profile: 'main', platform: 'slack', account: 'two', type: 'channel', scope: 'T', chat: 'C' },
  ],
  ['agent:main:whatsapp:dm:1:49', { profile: 'main', platform: 'whatsapp', type: 'dm', scope: '1', chat: '49' }],
  ['agent:main:qq:channel:G:C', { profile: 'main', platform: 'qq', type: 'channel', scope: 'G', chat: 'C' }],
  ['agent:main:telegram:thread:7:5', { profile: 'main', platform: 'telegram', type: 'thread', chat: '7', thread: '5' }],
  [
    'agent:main:telegram:thread::7:5:9',
    { profile: 'main', platform: 'telegram', type: 'thread', chat: '7', thread: '5', participant: '9' },
  ],
  [
    'agent:main:discord:thread:G:C:5',
    { profile: 'main', platform: 'discord', type: 'thread', scope: 'G', chat: 'C', thread: '5' },
  ],
  [
    'agent:main:discord:thread:G:C:5:U',
    { profile: 'main', platform: 'discord', type: 'thread', scope: 'G', chat: 'C', thread: '5', participant: 'U' },
  ],
  [
    'agent:main:gchat:group:spaces/AAA:users/1',
    { profile: 'main', platform: 'gchat', type: 'group', chat: 'spaces/AAA', participant: 'users/1' },
  ],
  ['agent:main:matrix:dm:!r%3Ax.org', { profile: 'main', platform: 'matrix', type: 'dm', chat: '!r:x.org' }],
  ['agent:100%25:signal:dm:u%3Aann.01', { profile: '100%', platform: 'signal', type: 'dm', chat: 'u:ann.01' }],
  ['agent:main:irc:dm:[a\\b]', { profile: 'main', platform: 'irc', type: 'dm', chat: '[a\\b]' }],
];

describe('a session key', () => {
  test.each(EXAMPLES)('%s is written and read back', (key, conversation) => {
    expect(buildKey(conversation)).toBe(key);
    expect(parseKey(key)).toStrictEqual(conversation);
    expect(() => assertKey(key)).not.toThrow();
  });

  test('every combination of type, parts and awkward values has a key of its own that reads back', () => {
    const values = [undefined, '1', ':', '%3A', '%'];
    const keys = new Set<string>();
    for (const type of CONVERSATION_TYPES) {
      for (let choice = 0; choice < values.length ** 4; choice += 1) {
        const conversation: Record<string, string> = { profile: 'main', platform: 'x', type };
        ['scope', 'chat', 'thread', 'participant'].forEach((part, index) => {
          const value = values[Math.floor(choice / values.length ** index) % values.length];
          if (value !== undefined) conversation[part] = value;
        });
        const key = buildKey(conversation as unknown as Conversation);
        expect(parseKey(key)).toStrictEqual(conversation);
        keys.add(key);
      }
    }
    expect(keys.size).toBe(4 * 5 ** 4);
  });

  test('parts of 256 characters and a key of 1024 fit, one more of either does not', () => {
    const base: Conversation = { profile: 'main', platform: 'x', type: 'dm' };
    expect(parseKey(buildKey({ ...base, chat: 'a'.repeat(256) })).chat).toHaveLength(256);
    expect(() => buildKey({ ...base, chat: 'a'.repeat(257) })).toThrow(badKey('chat has 257 characters'));
    expect(() => parseKey(`agent:main:x:dm:${'a'.repeat(257)}`)).toThrow(badKey('chat has 257 characters'));
    const rest = 1024 - 'agent:main:x:thread:::'.length - 3 * 256;
    const longest = {
      ...base,
      type: 'thread',
      scope: 'b'.repeat(256),
      chat: 'c'.repeat(256),
      thread: 'd'.repeat(256),
    } as const;
    const key = buildKey({ ...longest, participant: 'p'.repeat(rest - 1) });
    expect(key).toHaveLength(1024);
    expect(parseKey(key).participant).toHaveLength(rest - 1);
    expect(() => buildKey({ ...longest, participant: 'p'.repeat(rest) })).toThrow(
      badKey('the key has 1025 characters'),
    );
    expect(() => parseKey(`${key}p`)).toThrow(badKey('the key has 1025 characters'));
    expect(() => buildKey({ ...base, chat: ':'.repeat(256), thread: '%'.repeat(256) })).toThrow(badKey('the key has'));
  });
});

describe('bad_key', () => {
  test.each([
    ['', 'begins with agent:'],
    ['agent', 'lacks its profile'],
    ['agent:main', 'lacks its platform'],
    ['agent:main:telegram', 'lacks its type'],
    ['user:main:telegram:dm:42', 'begins with agent:, not with "user"'],
    ['agent::telegram:dm:42', 'profile is empty'],
    ['agent:main::dm:42', 'platform is empty'],
    ['agent:main:Telegram:dm:42', 'platform "Telegram" is not lower-case'],
    ['agent:main:1x:dm:42', 'platform "1x"'],
    ['agent:main:tele%3Agram:dm:42', 'platform "tele%3Agram"'],
    ['agent:main:telegram:DM:42', 'type "DM" is none of dm, group, channel, thread'],
    ['agent:main:telegram::42', 'type "" is none of'],
    ['agent:main:telegram:constructor:42', 'type "constructor" is none of'],
    ['agent:main:telegram:dm:1:2:3:4:5', '5 parts follow the type'],
    ['agent:main:telegram:dm:', 'the key of this conversation is "agent:main:telegram:dm"'],
    ['agent:main:telegram:dm:42:', 'the key of this conversation is "agent:main:telegram:dm:42"'],
    ['agent:main:telegram:dm::42:5', 'the key of this conversation is "agent:main:telegram:dm:42:5"'],
    ['agent:main:telegram:group::7::9', 'the key of this conversation is "agent:main:telegram:group:7:9"'],
    ['agent:main:telegram:dm:4%3a2', 'chat has a % at position 1'],
    ['agent:main:telegram:dm:a%20b', 'chat has a % at position 1'],
    ['agent:main:telegram:dm:a%', 'chat has a % at position 1'],
    ['agent:ma%2Fin:telegram:dm:a', 'profile has a % at position 2'],
    ['agent:main:telegram:dm:a\u0000b', 'chat has the unsafe character U+0000 at position 1'],
    ['agent:main:telegram:dm:42\n', 'U+000A at position 2'],
    ['agent:main:telegram:dm:\u007f', 'U+007F'],
    ['agent:main:telegram:dm:\u0085', 'U+0085'],
    ['agent:main:telegram:dm:42:\u202e9', 'thread has the unsafe character U+202E at position 0'],
    ['agent:main:telegram:dm:\u2066', 'U+2066'],
    ['agent:main:telegram:dm:\u2028', 'U+2028'],
    ['agent:main:telegram:dm:\ud83d', 'U+D83D'],
    ['agent:main:telegram:dm:\ude00x', 'U+DE00'],
    ['agent:\u0007:telegram:dm:42', 'profile has the unsafe character U+0007'],
    ['agent:main:telegram:dm:.', 'a path step . or ..'],
    ['agent:main:telegram:dm:..', 'a path step . or ..'],
    ['agent:..:telegram:dm:42', 'profile ".." has a path step'],
    ['agent:main:telegram:dm:a/../b', 'a path step . or ..'],
    ['agent:main:telegram:dm:../b', 'a path step . or ..'],
    ['agent:main:telegram:dm:a/..', 'a path step . or ..'],
    ['agent:main:telegram:dm:a/./b', 'a path step . or ..'],
    ['agent:main:telegram:dm:a\\..\\b', 'a path step . or ..'],
    ['agent:main:telegram:dm:C%3A..\\b', 'a path step . or ..'],
    ['agent:main:telegram:dm:/etc/passwd', 'begins like an absolute path'],
    ['agent:main:telegram:dm:\\\\host\\share', 'begins like an absolute path'],
    ['agent:main:telegram:dm:C%3A\\x', 'begins like an absolute path'],
    ['agent:main:telegram:dm:c%3A/x', 'begins like an absolute path'],
    ['agent:main:telegram:dm:C%3A', 'begins like an absolute path'],
  ])('%j is refused and the message says what and where', (key, message) => {
    expect(() => parseKey(key)).toThrow(badKey(message));
    expect(() => assertKey(key)).toThrow(badKey(message));
  });

  test('a conversation with a bad part is refused before it becomes a key', () => {
    const base: Conversation = { profile: 'main', platform: 'x', type: 'dm', chat: '42' };
    expect(() => buildKey({ ...base, profile: '' })).toThrow(badKey('profile is empty'));
    expect(() => buildKey({ ...base, platform: '' })).toThrow(badKey('platform is empty'));
    expect(() => buildKey({ ...base, platform: 'X' })).toThrow(badKey('platform "X"'));
    expect(() => buildKey({ ...base, type: 'room' as ConversationType })).toThrow(badKey('type "room"'));
    expect(() => buildKey({ ...base, thread: '' })).toThrow(badKey('thread is empty'));
    expect(() => buildKey({ ...base, thread: '..' })).toThrow(badKey('thread ".." has a path step'));
    expect(() => buildKey({ ...base, scope: 'a\u0000' })).toThrow(badKey('scope has the unsafe character U+0000'));
    expect(() => buildKey({ ...base, chat: 42 as unknown as string })).toThrow(badKey('chat is not text'));
  });

  test('the message never repeats an unsafe character', () => {
    expect(() => parseKey('\u202eagent:main\u0007')).toThrow(badKey('not with "U+202Eagent"'));
  });

  test.each([undefined, null, 42, {}, []])('%j, which is not text, is refused', (value) => {
    expect(() => assertKey(value)).toThrow(badKey('a session key is text'));
  });
});

describe('keyFor', () => {
  const perUser = { groupPerUser: true, threadPerUser: false };
  const source = (type: ConversationType, rest: Partial<KeySource> = {}): KeySource => ({
    platform: 'x',
    type,
    chat: '7',
    participant: '9',
    ...rest,
  });

  test('a direct chat never carries its participant', () => {
    expect(keyFor(source('dm'), { groupPerUser: true, threadPerUser: true })).toBe('agent:main:x:dm:7');
    expect(keyFor(source('dm', { thread: '5' }), { groupPerUser: true, threadPerUser: true })).toBe(
      'agent:main:x:dm:7:5',
    );
  });

  test('a direct chat without an id is named by its participant', () => {
    expect(keyFor(source('dm', { chat: undefined }), perUser)).toBe('agent:main:x:dm:9');
  });

  test('groups and channels are per participant unless group_per_user is false', () => {
    expect(keyFor(source('group'), perUser)).toBe('agent:main:x:group:7:9');
    expect(keyFor(source('channel', { scope: 'G' }), perUser)).toBe('agent:main:x:channel:G:7:9');
    expect(keyFor(source('group'), { ...perUser, groupPerUser: false })).toBe('agent:main:x:group:7');
    expect(keyFor(source('channel', { scope: 'G' }), { ...perUser, groupPerUser: false })).toBe(
      'agent:main:x:channel:G:7:',
    );
  });

  test('a group whose participant is unknown is shared', () => {
    expect(keyFor(source('group', { participant: undefined }), perUser)).toBe('agent:main:x:group:7');
  });

  test('threads are shared unless thread_per_user, whatever group_per_user says', () => {
    for (const groupPerUser of [true, false]) {
      expect(keyFor(source('thread', { thread: '5' }), { groupPerUser, threadPerUser: false })).toBe(
        'agent:main:x:thread:7:5',
      );
      expect(keyFor(source('thread', { thread: '5' }), { groupPerUser, threadPerUser: true })).toBe(
        'agent:main:x:thread::7:5:9',
      );
    }
  });

  test('a thread inside a group is shared as threads are', () => {
    expect(keyFor(source('group', { thread: '5' }), perUser)).toBe('agent:main:x:group::7:5:');
    expect(keyFor(source('group', { thread: '5' }), { ...perUser, threadPerUser: true })).toBe(
      'agent:main:x:group::7:5:9',
    );
  });

  test('the profile is main unless the source names one', () => {
    expect(keyFor(source('dm', { profile: 'work' }), perUser)).toBe('agent:work:x:dm:7');
  });

  test('a source that names no place is refused, because strangers would share its session', () => {
    for (const type of ['group', 'channel', 'thread'] as const) {
      expect(() => keyFor(source(type, { chat: undefined }), perUser)).toThrow(badKey('names no chat'));
    }
    expect(() => keyFor(source('dm', { chat: undefined, participant: undefined }), perUser)).toThrow(
      badKey('names no chat'),
    );
    expect(() => keyFor(source('dm', { chat: '' }), perUser)).toThrow(badKey('chat is empty'));
  });
});

describe('for all strings', () => {
  const token = fc.constantFrom(
    ':',
    '%',
    '%3A',
    '%25',
    '%3a',
    '/',
    '\\',
    '.',
    '..',
    ' ',
    '',
    'a',
    '42',
    'é',
    '😀',
    'ي',
    '\ud83d',
    '\u202e',
  );
  const anyText = fc.oneof(fc.string({ unit: 'binary', maxLength: 300 }), fc.string({ unit: token, maxLength: 8 }));
  // No dots and slashes, and a first word, so that nothing looks like a path and every value is legal.
  const safeUnit = fc.constantFrom(':', '%', '%3A', '%25', ' ', 'a', 'B', '7', '-', '@', 'é', '😀', 'ي', '\u0301');
  const legalText = fc.string({ unit: safeUnit, maxLength: 30 }).map((text) => `id${text}`);

  const conversations = (text: fc.Arbitrary<string>, platform: fc.Arbitrary<string>): fc.Arbitrary<Conversation> =>
    fc.record(
      {
        profile: text,
        platform,
        type: fc.constantFrom(...CONVERSATION_TYPES),
        scope: text,
        chat: text,
        thread: text,
        participant: text,
      },
      { requiredKeys: ['profile', 'platform', 'type'], noNullPrototype: true },
    );

  test('a legal conversation always has a key, and the key gives it back', () => {
    fc.assert(
      fc.property(conversations(legalText, fc.stringMatching(/^[a-z][a-z0-9_-]{0,9}$/)), (conversation) => {
        expect(parseKey(buildKey(conversation))).toStrictEqual(conversation);
      }),
      { numRuns: 1_000 },
    );
  });

  test('an arbitrary conversation has a key that gives it back, or bad_key', () => {
    fc.assert(
      fc.property(conversations(anyText, fc.oneof(fc.constant('x'), anyText)), (conversation) => {
        accepts(() => {
          expect(parseKey(buildKey(conversation))).toStrictEqual(conversation);
        });
      }),
      { numRuns: 2_000 },
    );
  });

  test('two conversations share a key only if they are the same', () => {
    const few = conversations(fc.constantFrom('1', '2', '1:2', '1%', '%3A', ':'), fc.constantFrom('x', 'y'));
    fc.assert(
      fc.property(few, few, (one, other) => {
        const same = PARTS.every((part) => one[part] === other[part]);
        expect(buildKey(one) === buildKey(other)).toBe(same);
      }),
      { numRuns: 5_000 },
    );
  });

  test('a text is the only key of the conversation it names, or bad_key', () => {
    const piece = fc.constantFrom(
      '',
      'agent',
      'main',
      'x',
      'dm',
      'group',
      'thread',
      '42',
      'a%3Ab',
      '%',
      '%253A',
      '..',
      'a/b',
      '\n',
      'é',
    );
    const likely = fc
      .array(piece, { maxLength: 6 })
      .map((parts) => ['agent', 'main', 'x', 'thread', ...parts].join(':'));
    const text = fc.oneof(
      likely,
      fc.array(piece, { maxLength: 9 }).map((parts) => parts.join(':')),
      anyText,
    );
    let accepted = 0;
    fc.assert(
      fc.property(text, (key) => {
        const good = accepts(() => {
          expect(buildKey(parseKey(key))).toBe(key);
        });
        if (good) accepted += 1;
      }),
      { numRuns: 5_000 },
    );
    expect(accepted).toBeGreaterThan(50);
  });

  test('keyFor gives a key that reads back, or bad_key', () => {
    const rules = fc.record({ groupPerUser: fc.boolean(), threadPerUser: fc.boolean() });
    fc.assert(
      fc.property(conversations(anyText, fc.constant('x')), rules, (source, choice) => {
        accepts(() => {
          const conversation = parseKey(keyFor(source, choice));
          expect(conversation.type).toBe(source.type);
          if (source.type === 'dm') expect(conversation.participant).toBeUndefined();
        });
      }),
    );
  });
});

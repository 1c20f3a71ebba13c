import { describe, expect, test } from 'vitest';
import { sendFailureOf, troubleOf } from '../../../src/platforms/chat-sdk/failures.ts';
import { parseMessage } from '../../../src/platforms/chat-sdk/parse.ts';
import { postableOf } from '../../../src/platforms/chat-sdk/render.ts';
import { readSamples } from '../samples.ts';

const self = { id: 'B1', name: 'moirai' };
const place = { type: 'thread', chat: 'room', thread: 't1' } as const;
const author = { userId: 'U1', userName: 'ada', fullName: 'Ada' };

/** As it is in a program. */
function withDates(payload: Record<string, unknown>): Record<string, unknown> {
  const { dateSent, editedAt, ...metadata } = payload.metadata as Record<string, unknown>;
  const changed = editedAt === undefined ? {} : { editedAt: new Date(String(editedAt)) };
  return { ...payload, metadata: { ...metadata, dateSent: new Date(String(dateSent)), ...changed } };
}

describe('the samples beside the parser', () => {
  test.each(readSamples('chat-sdk').map((sample) => [sample.title, sample] as const))(
    '%s',
    (_, { payload, becomes }) => {
      const parsed = parseMessage(withDates(payload), place, self);
      if (becomes === null) expect(parsed).toBeNull();
      else expect(parsed).toMatchObject(becomes);
    },
  );
});

describe('a message', () => {
  test('that is none, or of nobody, is passed over', () => {
    for (const odd of [
      null,
      undefined,
      3,
      'text',
      [],
      {},
      { id: 'm', text: 'x' },
      { author, text: 'x' },
      { id: {}, author, text: 'x' },
    ]) {
      expect(parseMessage(odd, place, self)).toBeNull();
    }
  });

  test('whose fields are odd has what can be used of them', () => {
    const odd = {
      id: 7,
      text: 'a\0b\ud800',
      author: { ...author, fullName: ['x'] },
      metadata: { dateSent: 'now' },
      attachments: 'x',
    };
    expect(parseMessage(odd, place, self)).toMatchObject({
      ...{ id: 'room:7', text: 'ab\ufffd', at: 0, files: [] },
      from: { id: 'U1', name: 'ada', bot: false },
    });
    const circular: Record<string, unknown> = {
      type: 'file',
      url: 'https://x',
      fetchMetadata: { id: 'x'.repeat(10_000) },
    };
    circular.self = circular;
    expect(parseMessage({ id: 'm', text: 'x', author, attachments: [circular] }, place, self)).toMatchObject({
      files: [],
    });
  });

  test('that was changed twice is another message each time, also where nobody says when', () => {
    const changed = (text: string) =>
      parseMessage({ id: 'm', text, author, metadata: { edited: true } }, place, self)?.id;
    expect(changed('one')).not.toBe(changed('two'));
    expect(changed('one')).toBe(changed('one'));
  });
});

describe('what is posted', () => {
  test('is Markdown, for the adapter or for its platform, and a card where there are buttons', () => {
    expect(postableOf({ text: '**a**' }, false)).toEqual({ markdown: '**a**' });
    expect(postableOf({ text: '**a**' }, true)).toEqual({ raw: '**a**' });
    const file = { kind: 'document', name: 'a.bin', mime: null, bytes: Uint8Array.of(1, 2) } as const;
    expect(postableOf({ text: '', files: [file] }, false)).toEqual({
      markdown: '',
      files: [{ data: Buffer.of(1, 2), filename: 'a.bin' }],
    });
    expect(postableOf({ text: 'Allow?', buttons: [[{ label: 'Yes', data: 'y' }]] }, false)).toEqual({
      fallbackText: 'Allow?',
      card: {
        type: 'card',
        children: [
          { type: 'text', content: 'Allow?' },
          { type: 'actions', children: [{ type: 'button', id: 'y', label: 'Yes' }] },
        ],
      },
    });
  });
});

describe('a failure of an adapter', () => {
  const redact = (text: string): string => text.replaceAll('hunter2', '<secret>');
  const failed = (fields: object, message = 'it was hunter2') => Object.assign(new Error(message), fields);
  const network = (code: string) =>
    Object.assign(new TypeError('fetch failed'), { cause: Object.assign(new Error(code), { code }) });

  test.each([
    ['asks for patience', failed({ code: 'RATE_LIMITED', retryAfter: 7 }), 'rate_limited', 7000],
    ['asks for patience and does not say how much', failed({ code: 'RATE_LIMITED' }), 'rate_limited', 5000],
    [
      'asks for patience by its status',
      failed({ status: 403, response: { headers: { 'retry-after': '60' } } }),
      'rate_limited',
      60_000,
    ],
    ['has another credential', failed({ code: 'AUTH_FAILED' }), 'forbidden', 60_000],
    ['may not', failed({ code: 'PERMISSION_DENIED' }), 'forbidden', null],
    ['is no such thing', failed({ code: 'NOT_FOUND' }), 'unknown', null],
    ['is not well formed', failed({ status: 422 }), 'bad_format', null],
    ['is refused by the adapter', failed({ code: 'VALIDATION_ERROR' }), 'bad_format', null],
    ['is a trouble of the server', failed({ status: 502 }), 'transient', 1000],
    ['is an answer that is none', failed({ code: 'NETWORK_ERROR' }), 'transient', 1000],
    ['never left', failed({ code: 'NETWORK_ERROR', originalError: network('ECONNREFUSED') }), 'transient', 1000],
    ['was cut off', failed({ code: 'NETWORK_ERROR', originalError: network('ECONNRESET') }), 'uncertain', 1000],
    ['was cut off, by the client below', failed({ status: 500, cause: network('UND_ERR_SOCKET') }), 'uncertain', 1000],
    ['took too long', Object.assign(new Error('aborted'), { name: 'AbortError' }), 'uncertain', 1000],
    ['is anything else', failed({}), 'uncertain', 1000],
    ['is no error at all', 'hunter2', 'uncertain', 1000],
  ])('%s', (_, thrown, kind, retryAfterMs) => {
    const failure = sendFailureOf(thrown, redact);
    expect(failure).toMatchObject({ kind, retryAfterMs });
    expect(failure.message).not.toContain('hunter2');
  });

  test('says of the connection whether waiting is of use', () => {
    expect(troubleOf(failed({ code: 'AUTH_FAILED' }), redact)).toMatchObject({
      phase: 'failed',
      problem: 'it was <secret>',
    });
    expect(troubleOf(failed({ status: 401 }), redact).phase).toBe('failed');
    expect(troubleOf(network('ECONNREFUSED'), redact).phase).toBe('degraded');
  });
});

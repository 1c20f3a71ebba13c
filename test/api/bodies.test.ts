import { request } from 'node:http';
import { describe, expect, test } from 'vitest';
import { MAX_TEXT_CHARS } from '../../src/store/limits.ts';
import { apiFixture, ask } from './support/api-fixture.ts';

const JSON_TYPE = { 'content-type': 'application/json' };

describe('what is sent wrongly is refused with a code:', () => {
  const fixture = apiFixture();
  const codeOf = async (path: string, asking: Parameters<typeof ask>[2]) => {
    const { status, json } = await ask(fixture.api, path, asking);
    return [status, json?.error?.code];
  };

  test('JSON that is none, with the place of the mistake', async () => {
    for (const [body, place] of [
      ['{"text": hello}', 'position 9'],
      ['{"text": "hello"', 'position 16'],
      ['{"text": "hello"}}', 'position 17'],
      ['{', 'position 1'],
      ['{"text": "hello", "stream": [true,]}', 'position 34'],
      [`{"text": "${'x'.repeat(1000)}", hello}`, 'position 1013'],
      ['{"text": -}', 'position 10'],
    ] as const) {
      const { status, json } = await ask(fixture.api, '/v1/chat', { body, headers: JSON_TYPE });
      expect([status, json.error.code, json.error.message]).toEqual([400, 'bad_input', expect.stringContaining(place)]);
    }
  });

  test('bodies of another type, or of none', async () => {
    const body = '{"text": "hello"}';
    expect(await codeOf('/v1/chat', { body })).toEqual([415, 'unsupported_media_type']);
    for (const type of ['text/plain', 'application/x-www-form-urlencoded', 'application/jsonl']) {
      expect(await codeOf('/v1/chat', { body, headers: { 'content-type': type } })).toEqual([
        415,
        'unsupported_media_type',
      ]);
    }
    const form = { 'content-type': 'application/x-www-form-urlencoded' };
    expect(await codeOf('/v1/sessions/ses/end', { body: '', headers: form })).toEqual([415, 'unsupported_media_type']);
    const gzip = { ...JSON_TYPE, 'content-encoding': 'gzip' };
    expect(await codeOf('/v1/chat', { body, headers: gzip })).toEqual([415, 'unsupported_media_type']);
    expect(await codeOf('/v1/chat', { body, headers: { 'content-type': 'application/json; charset=utf-8' } })).toEqual([
      200,
      undefined,
    ]);
  });

  test('bytes that are not UTF-8', async () => {
    const answer = await new Promise<number>((resolve, reject) => {
      const sent = request(new URL('/v1/chat', fixture.api.url), { method: 'POST', headers: JSON_TYPE }, (incoming) => {
        incoming.resume();
        resolve(incoming.statusCode ?? 0);
      });
      sent.on('error', reject);
      sent.end(Buffer.from([0x7b, 0xff, 0xfe, 0x7d]));
    });
    expect(answer).toBe(400);
  });

  test('but what is for a platform reaches it as the very bytes, of whatever type, and not too many of them', async () => {
    const bring = async (bytes: Uint8Array, type?: string) => {
      const headers = { 'x-feather': 'grey', ...(type === undefined ? {} : { 'content-type': type }) };
      const answer = await fetch(`${fixture.api.url}/platforms/pigeon/route`, { method: 'POST', headers, body: bytes });
      return [answer.status, await answer.text()];
    };
    for (const [hex, type] of [
      ['efbbbf7b7d', 'application/json'],
      ['7bfffe7d', 'application/json'],
      ['613d62', 'application/x-www-form-urlencoded'],
      ['2020', undefined],
      ['', 'application/json'],
    ] as const) {
      expect(await bring(Buffer.from(hex, 'hex'), type)).toEqual([200, hex]);
    }
    expect((await bring(Buffer.alloc(13 * 1024 * 1024)))[0]).toBe(413);
  });

  test('fields of the wrong type, missing, or unknown, by their names', async () => {
    for (const [body, name] of [
      [{}, 'text'],
      [{ text: '' }, 'text'],
      [{ text: 1 }, 'text'],
      [{ text: 'a', conversation: '' }, 'conversation'],
      [{ text: 'a', stream: 'yes' }, 'stream'],
      [{ text: 'a', conversatoin: 'b' }, 'conversatoin'],
      [[], 'body'],
    ] as const) {
      const { status, json } = await ask(fixture.api, '/v1/chat', { body });
      expect([status, json.error]).toEqual([
        400,
        expect.objectContaining({ code: 'bad_input', message: expect.stringContaining(name) }),
      ]);
    }
  });

  test('a body larger than allowed, with its length given and without', async () => {
    await fixture.reopen({ maxBodyBytes: 1000 });
    const body = { title: 'x'.repeat(1001) };
    expect(await codeOf('/v1/sessions/ses/title', { body })).toEqual([413, 'body_too_large']);
    const chunked = { 'transfer-encoding': 'chunked' };
    expect(await codeOf('/v1/sessions/ses/title', { body, headers: chunked })).toEqual([413, 'body_too_large']);
    expect(await codeOf('/v1/chat', { body: { text: 'x'.repeat(2000) } })).toEqual([200, undefined]);
  });

  test('a text longer than the store keeps, and a body longer than any such text', async () => {
    expect(await codeOf('/v1/chat', { body: { text: 'x'.repeat(MAX_TEXT_CHARS + 1) } })).toEqual([
      413,
      'message_too_large',
    ]);
    const headers = { ...JSON_TYPE, 'content-length': String(200 * 1024 * 1024) };
    const status = await new Promise<number>((resolve, reject) => {
      const sent = request(new URL('/v1/chat', fixture.api.url), { method: 'POST', headers }, (incoming) => {
        resolve(incoming.statusCode ?? 0);
        sent.destroy();
      });
      sent.on('error', reject);
      sent.write('{"text": "');
    });
    expect(status).toBe(413);
  });

  test('paths and methods that are not there', async () => {
    expect(await codeOf('/v1/nothing', {})).toEqual([404, 'not_found']);
    expect(await codeOf('/', {})).toEqual([404, 'not_found']);
    const wrong = await ask(fixture.api, '/v1/chat');
    expect([wrong.status, wrong.headers.allow, wrong.json.error.code]).toEqual([405, 'POST', 'method_not_allowed']);
    const list = await ask(fixture.api, '/v1/sessions', { method: 'DELETE' });
    expect([list.status, list.headers.allow]).toEqual([405, 'GET, HEAD']);
    expect((await ask(fixture.api, '/health', { method: 'HEAD' })).status).toBe(200);
  });

  test('anything at all, without a defect', async () => {
    const odd = [
      '%',
      '%00',
      '%E0%A4%A',
      '..%2f',
      "'",
      '💥',
      '%F0%9F%92%A5',
      '\u202e',
      'a'.repeat(5000),
      '?',
      '#',
      '//',
      '*',
    ];
    const paths = [
      '/v1/sessions/',
      '/v1/sessions?q=',
      '/v1/sessions?cursor=1_',
      '/v1/events?session=',
      '/v1/models/',
      '/',
    ];
    for (const path of paths) {
      for (const text of odd) {
        const answer = await ask(fixture.api, path + encodeURI(text).replaceAll('%25', '%'));
        expect([path, text, answer.status < 500]).toEqual([path, text, true]);
      }
    }
    const bodies = [
      'null',
      '0',
      '""',
      '[]',
      '{"text":null}',
      '{"text":{"a":1}}',
      '{"__proto__":{"text":"x"}}',
      '{"text":"\\ud800"}',
    ];
    for (const path of ['/v1/chat', '/v1/chat/completions', '/v1/responses', '/v1/subscribers/x/replay']) {
      for (const body of bodies) {
        const answer = await ask(fixture.api, path, { body, headers: JSON_TYPE });
        expect([path, body, answer.status < 500]).toEqual([path, body, true]);
      }
    }
    expect(fixture.logged).toEqual([]);
  });

  test('internal errors are logged, and shown without details', async () => {
    fixture.backend.script = () => {
      throw new TypeError('the secret is halibut');
    };
    const answer = await ask(fixture.api, '/v1/chat', { body: { text: 'hello' } });
    expect([answer.status, answer.json.error.code]).toEqual([500, 'internal']);
    expect(answer.text).not.toContain('halibut');
    expect(fixture.logged.join()).toContain('the secret is halibut');
  });

  test('every answer tells browsers to do nothing else with it', async () => {
    for (const path of ['/health', '/v1/sessions', '/v1/nothing']) {
      const { headers } = await ask(fixture.api, path);
      expect(headers).toMatchObject({
        'x-content-type-options': 'nosniff',
        'x-frame-options': 'DENY',
        'referrer-policy': 'no-referrer',
        'cache-control': 'no-store',
        'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
      });
    }
  });
});

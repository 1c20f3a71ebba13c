import { WebAPIHTTPError, WebAPIPlatformError, WebAPIRateLimitedError, WebAPIRequestError } from '@slack/web-api';
import { describe, expect, test } from 'vitest';
import { addressAt } from '../../../src/platforms/slack/addresses.ts';
import { sendFailureOf } from '../../../src/platforms/slack/failures.ts';

describe('an error of Slack', () => {
  const platformError = (error: string) => new WebAPIPlatformError({ ok: false, error });

  test.each([
    [platformError('channel_not_found'), 'gone', null],
    [platformError('is_archived'), 'gone', null],
    [platformError('not_in_channel'), 'gone', null],
    [platformError('restricted_action_read_only_channel'), 'forbidden', null],
    [platformError('missing_scope'), 'forbidden', null],
    [platformError('invalid_auth'), 'forbidden', 60_000],
    [platformError('msg_too_long'), 'too_long', null],
    [platformError('invalid_blocks'), 'bad_format', null],
    [platformError('internal_error'), 'uncertain', 1000],
    [platformError('fatal_error'), 'uncertain', 1000],
    [platformError('<html>Bad gateway</html>'), 'uncertain', 1000],
    [platformError('ratelimited'), 'rate_limited', 30_000],
    [platformError('something_new'), 'unknown', null],
    [new WebAPIRateLimitedError(12), 'rate_limited', 12_000],
    [new WebAPIHTTPError(503, '', {}, ''), 'transient', 1000],
    [new WebAPIHTTPError(500, '', {}, ''), 'uncertain', 1000],
    [new WebAPIHTTPError(404, '', {}, ''), 'unknown', null],
    [new WebAPIRequestError(new TypeError('fetch failed', { cause: { code: 'x' } })), 'uncertain', 1000],
    [new WebAPIRequestError(Object.assign(new Error('no'), { code: 'ECONNREFUSED' })), 'transient', 1000],
    [new RangeError('of our own'), 'uncertain', 1000],
  ])('says whether to try again: %s', (thrown, kind, retryAfterMs) => {
    expect(sendFailureOf(thrown, (text) => text)).toMatchObject({ kind, retryAfterMs });
  });

  test.each([
    [{ error: 'not_in_channel' }, 'Slack refused: not_in_channel (the app is not in the channel: /invite it there)'],
    [{ error: 'missing_scope', needed: 'files:read' }, 'Slack refused: missing_scope (it needs files:read)'],
    [{ error: 'missing_scope', needed: 7 }, 'Slack refused: missing_scope'],
    [{ error: 'is_archived' }, 'Slack refused: is_archived'],
  ])('says what to do about it: %j', (answer, words) => {
    const thrown = new WebAPIPlatformError({ ok: false, ...answer } as never);
    expect(sendFailureOf(thrown, (text) => text).message).toBe(words);
  });

  test('holds no token', () => {
    const { message } = sendFailureOf(platformError('xoxb-1-secret refused'), (text) =>
      text.replace('xoxb-1-secret', '<secret>'),
    );
    expect(message).toBe('Slack refused: <secret> refused');
  });
});

describe('an address', () => {
  test.each([
    ['https://files.slack.com/a?b=1', null, 'https://files.slack.com/a?b=1'],
    ['wss://wss-primary.slack.com/link/?ticket=1', null, 'wss://wss-primary.slack.com/link/?ticket=1'],
    ['http://files.slack.com/a', null, null],
    ['https://slack.com.elsewhere.test/a', null, null],
    ['https://notslack.com/a', null, null],
    ['https://slack.com@elsewhere.test/a', null, null],
    ['file:///etc/passwd', null, null],
    ['https://files.slack.com/a?b=1', 'http://127.0.0.1:9', 'http://127.0.0.1:9/a?b=1'],
    ['wss://wss-primary.slack.com/link/?t=1', 'https://slack.test', 'wss://slack.test/link/?t=1'],
    ['ws://127.0.0.1:8/link', 'http://127.0.0.1:9', 'ws://127.0.0.1:8/link'],
    ['file:///etc/passwd', 'http://127.0.0.1:9', null],
    [7, 'http://127.0.0.1:9', null],
  ])('of Slack is used, others are not: %s at %s', (url, root, used) => {
    expect(addressAt(url, root)?.href ?? null).toBe(used);
  });
});

import { describe, expect, test } from 'vitest';
import { sendFailureOf, troubleOf } from '../../../src/platforms/qq/failures.ts';
import { CredentialRefused, GatewayClosed, QqError } from '../../../src/platforms/qq/qq-error.ts';
import { redaction } from '../../../src/platforms/redaction.ts';

const redact = redaction('secret-1');
const failureOf = (status: number, code = 0, waitMs: number | null = null) =>
  sendFailureOf(new QqError('said secret-1', status, code, waitMs), redact);

describe('what QQ says about a message', () => {
  test.each([
    ['the window is over', 40034128, 'expired', null],
    ['the message is too old', 40034005, 'expired', null],
    ['the message is too old, otherwise', 304103, 'expired', null],
    ['the message cannot be answered', 304026, 'expired', null],
    ['the message is too old in a guild', 304027, 'expired', null],
    ['the event is too old', 40034026, 'expired', null],
    ['it takes nothing unasked', 40034105, 'expired', null],
    ['the bot is not in the group', 40054003, 'gone', null],
    ['the person is no friend', 40054004, 'gone', null],
    ['the direct chat is closed', 304031, 'gone', null],
    ['there is no such channel', 10003, 'gone', null],
    ['there is no such guild', 10004, 'gone', null],
    ['it is too often', 22009, 'rate_limited', 5000],
    ['it is too often in the channel', 20028, 'rate_limited', 5000],
    ['it failed for a moment', 50055002, 'transient', 1000],
    ['the bot has no connection', 304018, 'transient', 1000],
    ['the token is wrong', 11243, 'forbidden', 60_000],
    ['the bot is banned', 11265, 'forbidden', 60_000],
    ['the bot may not speak', 40054002, 'forbidden', null],
    ['the words are not allowed', 40034006, 'forbidden', null],
    ['the text is too long', 40054007, 'too_long', null],
    ['the file is too large', 304020, 'too_large', null],
    ['the form is wrong', 22006, 'bad_format', null],
    ['something new', 99_999_999, 'unknown', null],
  ])('%s (%i): %s', (_, code, kind, retryAfterMs) => {
    expect(failureOf(400, code)).toMatchObject({ name: 'SendFailure', kind, retryAfterMs });
  });

  test.each([
    [429, null, 'rate_limited', 5000],
    [429, 2500, 'rate_limited', 2500],
    [401, null, 'forbidden', 60_000],
    [413, null, 'too_large', null],
    [500, null, 'transient', 1000],
    [502, null, 'transient', 1000],
    [504, null, 'uncertain', 1000],
    [404, null, 'unknown', null],
  ])('with the status %i alone', (status, waitMs, kind, retryAfterMs) => {
    expect(failureOf(status, 0, waitMs)).toMatchObject({ kind, retryAfterMs });
  });

  test('is told without the secret', () => {
    expect(failureOf(400, 40034128).message).not.toContain('secret-1');
    expect(troubleOf(new QqError('said secret-1', 500, 0), redact).problem).not.toContain('secret-1');
  });

  test('about a credential that is not taken waits for another one', () => {
    expect(sendFailureOf(new CredentialRefused('no', 200, 100016), redact)).toMatchObject({ kind: 'forbidden' });
  });
});

describe('what is said about the connection', () => {
  test.each([
    [new CredentialRefused('no', 200, 100007), 'failed', 0],
    [new QqError('banned', 400, 11265), 'failed', 0],
    [new QqError('wait', 429, 100001, 3000), 'degraded', 3000],
    [new QqError('broken', 500, 0), 'degraded', 0],
    [new GatewayClosed('closed', 4008), 'degraded', 60_000],
    [new GatewayClosed('closed', 4009), 'degraded', 0],
    [new GatewayClosed('closed', 4014), 'failed', 0],
    [new Error('odd'), 'degraded', 0],
    ['odd', 'degraded', 0],
  ])('%s', (thrown, phase, waitMs) => {
    expect(troubleOf(thrown, redact)).toMatchObject({ phase, waitMs });
  });
});

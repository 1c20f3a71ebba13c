import { describe, expect, test } from 'vitest';
import { Refusal, refusalIn, sendFailureOf } from '../../../src/platforms/dingtalk/failures.ts';

describe('every error that DingTalk has', () => {
  const asIs = (text: string): string => text;
  const failureOf = (status: number, body: object) => {
    const refusal = refusalIn({ status, headers: new Headers(), body }, 0);
    return refusal === null ? null : sendFailureOf(refusal, asIs);
  };

  test.each([
    [200, { errcode: 0, errmsg: 'ok' }, null, null],
    [200, {}, null, null],
    [200, { errcode: 300001, errmsg: 'token is not exist' }, 'unknown', null],
    [200, { errcode: 460101, errmsg: 'message too long, exceed 20000 bytes' }, 'too_long', null],
    [200, { errcode: 400002, errmsg: 'params error' }, 'bad_format', null],
    [200, { errcode: 130101, errmsg: 'send too fast, exceed 20 times per minute' }, 'rate_limited', 10_000],
    [200, { errcode: 90018, errmsg: 'too many calls' }, 'rate_limited', 1000],
    [200, { errcode: -1, errmsg: 'system busy' }, 'transient', 1000],
    [200, { errcode: 42001, errmsg: 'access_token expired' }, 'forbidden', 60_000],
    [400, { code: 'Throttling.Api', message: 'slow down' }, 'rate_limited', 1000],
    [403, { code: 'Forbidden.AccessDenied.QpsLimitForAppkeyAndApi', message: 'qps' }, 'rate_limited', 1000],
    [403, { code: 'Forbidden.AccessDenied.AccessTokenPermissionDenied', message: 'scope' }, 'forbidden', null],
    [401, { code: 'InvalidAuthentication', message: 'token' }, 'forbidden', 60_000],
    [400, { code: 'invalidClientIdOrSecret', message: 'secret' }, 'forbidden', 60_000],
    [400, { code: 'invalidParameter.openConversationId.invalid', message: 'group' }, 'gone', null],
    [400, { code: 'invalidParameter.userIds.invalid', message: 'person' }, 'gone', null],
    [400, { code: 'invalidParameter.msgParam', message: 'json' }, 'bad_format', null],
    [400, { code: 'msgParam.tooLong', message: 'long' }, 'too_long', null],
    [429, '<h1>Too many</h1>', 'rate_limited', 1000],
    [500, { code: 'ServiceUnavailable', message: 'x' }, 'transient', 1000],
    [503, '<h1>Bad Gateway</h1>', 'transient', 1000],
    [302, '', 'unknown', null],
  ] as const)('%i %j', (status, body, kind, retryAfterMs) => {
    const failure = failureOf(status, body as object);
    if (kind === null) expect(failure).toBeNull();
    else expect(failure).toMatchObject({ name: 'SendFailure', kind, retryAfterMs });
  });

  test('is told without secrets', () => {
    const refusal = new Refusal(400, 'x', 'the secret hush-hush is wrong', null);
    const failure = sendFailureOf(refusal, (text) => text.replaceAll('hush-hush', '<secret>'));
    expect(failure.message).toBe('the secret <secret> is wrong');
  });
});

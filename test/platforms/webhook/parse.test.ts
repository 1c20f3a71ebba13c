import { describe, expect, test } from 'vitest';
import type { WebhookRequest } from '../../../src/platforms/platform.ts';
import { descriptor, type RouteSettings } from '../../../src/platforms/webhook/descriptor.ts';
import { parseDelivery } from '../../../src/platforms/webhook/parse.ts';
import { readTemplate } from '../../../src/platforms/webhook/render.ts';
import { isFromSender } from '../../../src/platforms/webhook/verify.ts';
import { readSettings } from '../../../src/settings/read-settings.ts';
import { readSamples } from '../samples.ts';

function routeOf(written: object): RouteSettings {
  const routes = { one: { secret: 'whsec_c2VjcmV0', ...written } };
  return readSettings(descriptor.settings, { routes }, { home: '', variable: () => null }).value.routes.one!;
}

function requestOf(body: string | Uint8Array, headers: Readonly<Record<string, string>> = {}): WebhookRequest {
  return { method: 'POST', path: 'one', query: new URLSearchParams(), headers, body: Buffer.from(body) };
}

function become(written: object, body: string, headers: Readonly<Record<string, string>> = {}) {
  const route = routeOf(written);
  const delivery = parseDelivery(requestOf(body, headers), route);
  if (delivery.kind === 'greeting') return { answer: delivery.answer };
  return { id: delivery.id, text: readTemplate(route.prompt)(delivery.body) };
}

describe('the samples beside the parser', () => {
  test.each(readSamples('webhook').map((sample) => [sample.title, sample] as const))('%s', (_, sample) => {
    const { route, headers, body } = sample.payload as Record<string, Record<string, string>>;
    expect(become(route!, JSON.stringify(body), headers)).toEqual(sample.becomes);
  });
});

describe('a delivery', () => {
  test('without a name of its sender is known by its bytes, whatever the time of its signature', () => {
    const slack = (body: string, at: string) =>
      become({ signature: 'slack' }, body, { 'x-slack-request-timestamp': at });
    expect(slack('{"a":1}', '1')).toEqual(slack('{"a":1}', '2'));
    expect(slack('{"a":1}', '1')).not.toMatchObject({ id: (slack('{"a": 1}', '1') as { id: string }).id });
    expect(slack('', '1')).toMatchObject({ id: expect.stringMatching(/^[0-9a-f]{64}$/) });
  });

  test('has the name in the header of the route, and where that is missing the one that its sender always gives', () => {
    const own = { signature: 'github', id_header: 'x-own' };
    const given = { 'x-github-delivery': 'g1' };
    expect(become(own, '{}', { ...given, 'x-own': 'o1' })).toMatchObject({ id: 'o1' });
    expect(become(own, '{}', { ...given, 'x-own': '' })).toMatchObject({ id: 'g1' });
    expect(become(own, '{}', given)).toMatchObject({ id: 'g1' });
  });

  test('of Stripe has no name but the one that is signed', () => {
    const headers = { 'webhook-id': 'x', 'x-github-delivery': 'y', 'x-delivery': 'z' };
    expect(become({ signature: 'stripe' }, '{"id":"evt_1"}', headers)).toMatchObject({ id: 'evt_1' });
    for (const body of ['{"id":7}', '{"id":null}', '[]', 'null', '"evt_1"', 'no JSON']) {
      expect(become({ signature: 'stripe' }, body)).toMatchObject({ id: expect.stringMatching(/^[0-9a-f]{64}$/) });
    }
  });

  test('of GitHub or Slack may bring its JSON in a form, as GitHub does unless it is told otherwise', () => {
    const form = (fields: Record<string, string>) => new URLSearchParams(fields).toString();
    const type = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
    const issue = form({ payload: '{"issue":{"title":"it leaks & more"}}' });
    for (const signature of ['github', 'slack']) {
      const route = { signature, prompt: '{{issue.title}}|{{body}}' };
      expect(become(route, issue, type)).toMatchObject({
        text: 'it leaks & more|{"issue":{"title":"it leaks & more"}}',
      });
      expect(become({ signature }, form({ text: 'x' }), type)).toMatchObject({ text: 'text=x' });
    }
    expect(become({ signature: 'header' }, issue, type)).toMatchObject({ text: issue });
    expect(become({ signature: 'github' }, issue)).toMatchObject({ text: issue });
  });

  test('is greeted only by who greets: a ping that others send is work', () => {
    const ping = { 'x-github-event': 'ping', 'x-github-delivery': 'g1' };
    expect(become({ signature: 'github' }, '{}', ping)).toEqual({ answer: {} });
    expect(become({ signature: 'header' }, '{}', ping)).toMatchObject({ text: '{}' });
    const challenge = '{"type":"url_verification","challenge":"c"}';
    expect(become({ signature: 'slack' }, challenge)).toEqual({ answer: { challenge: 'c' } });
    expect(become({ signature: 'header' }, challenge)).toMatchObject({ text: challenge });
    expect(become({ signature: 'slack' }, '{"type":"url_verification","challenge":{}}')).toHaveProperty('id');
  });
});

describe('a prompt', () => {
  const fill = (prompt: string, json: unknown) => readTemplate(prompt)({ text: JSON.stringify(json), json });

  test('is filled in once, from left to right', () => {
    expect(fill('{{a}} and {{b}}', { a: '{{b}}', b: '{{a}} {{body}} $& $1' })).toBe('{{b}} and {{a}} {{body}} $& $1');
    expect(fill('{{a}{{b}}', { b: 'B' })).toBe('{{a}B');
    expect(fill('{{ {{a}} }} {{a b}} {{}} {{', { a: 'A' })).toBe('{{ A }} {{a b}} {{}} {{');
  });

  test('has nothing for what is missing, and nothing that was not sent', () => {
    expect(fill('<{{a.b.c}}{{a.0}}{{toString}}{{a.constructor.name}}{{__proto__.x}}>', { a: 'text' })).toBe('<>');
    expect(fill('<{{a}}{{b}}>', null)).toBe('<>');
    expect(readTemplate('<{{a}}>{{body}}')({ text: 'a=b', json: undefined })).toBe('<>a=b');
  });

  test('has what is no text as JSON, and what no store takes without what is wrong with it', () => {
    expect(fill('{{n}} {{f}} {{l}} {{o}}', { n: 0, f: false, l: [1, [2]], o: { a: null } })).toBe(
      '0 false [1,[2]] {"a":null}',
    );
    expect(fill('{{a}}', { a: 'a\0b\ud800c' })).toBe('ab\ufffdc');
    let deep: unknown = 'deep';
    for (let level = 0; level < 100_000; level += 1) deep = [deep];
    expect(readTemplate('<{{a}}>')({ text: '', json: { a: deep } })).toBe('<>');
  });

  test('is cut where it is too long, and says so', () => {
    const long = 'x'.repeat(100_000);
    expect(fill('{{a}}!', { a: long })).toBe(`${'x'.repeat(16_384)}… (cut: it has 100000 characters)!`);
    const whole = fill('{{a}}'.repeat(10), { a: long });
    expect(whole.length).toBeLessThan(40_100);
    expect(whole).toMatch(/x… \(cut: it has \d+ characters\)$/);
  });
});

describe('a signature', () => {
  const now = 1_531_420_618_000;
  const from = (written: object, body: string, headers: Readonly<Record<string, string>>, at = now) =>
    isFromSender(requestOf(body, headers), routeOf(written), at);

  test('is checked as the senders say: with the examples of their own pages', () => {
    const github = { signature: 'github', secret: "It's a Secret to Everybody" };
    const sum = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
    expect(from(github, 'Hello, World!', { 'x-hub-signature-256': sum })).toBe(true);
    expect(from(github, 'Hello, World?', { 'x-hub-signature-256': sum })).toBe(false);
    const slack = { signature: 'slack', secret: '8f742231b10e8888abcd99yyyzzz85a5' };
    const form =
      'token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c';
    const signed = {
      'x-slack-request-timestamp': '1531420618',
      'x-slack-signature': 'v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503',
    };
    expect(from(slack, form, signed)).toBe(true);
    expect(from(slack, form, signed, now + 301_000)).toBe(false);
    const standard = { signature: 'standard', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' };
    const message = {
      'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek',
      'webhook-timestamp': '1614265330',
      'webhook-signature': 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    };
    expect(from(standard, '{"test": 2432232314}', message, 1_614_265_330_000)).toBe(true);
    expect(from(standard, '{"test": 2432232315}', message, 1_614_265_330_000)).toBe(false);
  });

  test('of a sender that changes its secret is good while one of several is', () => {
    const standard = { signature: 'standard', secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' };
    const message = { 'webhook-id': 'msg_p5jXN8AQM9LWM0D4loKWxJek', 'webhook-timestamp': '1614265330' };
    const good = 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=';
    const isGood = (signature: string) =>
      from(standard, '{"test": 2432232314}', { ...message, 'webhook-signature': signature }, 1_614_265_330_000);
    expect(isGood(`v1,AAAA v1a,BBBB ${good}`)).toBe(true);
    expect(isGood('v1,AAAA v1a,BBBB')).toBe(false);
    expect(isGood(good.replace('v1,', 'v1a,'))).toBe(false);
  });

  test.each(['standard', 'github', 'stripe', 'slack', 'header'])('of %s is not there, empty or odd', (signature) => {
    for (const odd of [
      undefined,
      '',
      ' ',
      ',',
      '=',
      't=,v1=',
      'v1,',
      'sha256=',
      `t=${now / 1000}`,
      `t=${now / 1000},v1=`,
    ]) {
      const names = ['webhook-signature', 'x-hub-signature-256', 'stripe-signature', 'x-slack-signature'];
      const all = [...names, 'x-webhook-secret'].map((name) => [name, odd]).filter(([, value]) => value !== undefined);
      const times = {
        'webhook-timestamp': `${now / 1000}`,
        'x-slack-request-timestamp': `${now / 1000}`,
        'webhook-id': 'a',
      };
      expect(from({ signature }, '{}', { ...times, ...(Object.fromEntries(all) as Record<string, string>) })).toBe(
        false,
      );
    }
  });
});

import { describe, expect, test } from 'vitest';
import { type Place, SendFailure } from '../../../src/platforms/platform.ts';
import { REST_WAITS } from '../../../src/platforms/whatsapp/compose.ts';
import { type CloudFault, WhatsAppCloud } from '../../fakes/whatsapp-cloud.ts';
import { refusal } from '../../fakes/whatsapp-rules.ts';
import { never, TestInbox, until } from '../contract/scene.ts';
import { dm, fileOf, openScene, other } from './scene.ts';
import { whatsappAt } from './world.ts';

describe('a message that WhatsApp refuses', () => {
  const refusals: readonly (readonly [CloudFault, Partial<SendFailure>])[] = [
    [refusal(0, 'AuthException', 401), { kind: 'forbidden', retryAfterMs: 60_000 }],
    [refusal(190, 'Access token has expired', 401), { kind: 'forbidden', retryAfterMs: 60_000 }],
    [refusal(10, 'Permission denied', 403), { kind: 'forbidden', retryAfterMs: 60_000 }],
    [refusal(200, 'You do not have the rights', 403), { kind: 'forbidden', retryAfterMs: 60_000 }],
    [refusal(100, 'Object does not exist', 400, 33), { kind: 'forbidden', retryAfterMs: 60_000 }],
    [refusal(131042, 'Business eligibility payment issue'), { kind: 'forbidden', retryAfterMs: 60_000 }],
    [refusal(368, 'Temporarily blocked for policies violations', 403), { kind: 'forbidden', retryAfterMs: 600_000 }],
    [refusal(131031, 'Account has been locked', 403), { kind: 'forbidden', retryAfterMs: 600_000 }],
    [refusal(131030, 'Recipient phone number not in allowed list'), { kind: 'forbidden', retryAfterMs: null }],
    [refusal(100, 'Invalid parameter'), { kind: 'bad_format', retryAfterMs: null }],
    [refusal(131009, 'Parameter value is not valid'), { kind: 'bad_format', retryAfterMs: null }],
    [refusal(131051, 'Unsupported message type'), { kind: 'bad_format', retryAfterMs: null }],
    [refusal(131026, 'Message undeliverable'), { kind: 'gone', retryAfterMs: null }],
    [refusal(131047, 'Re-engagement message'), { kind: 'expired', retryAfterMs: null }],
    [refusal(131016, 'Service unavailable', 503), { kind: 'transient', retryAfterMs: 1000 }],
    [refusal(2, 'API Service', 503), { kind: 'transient', retryAfterMs: 1000 }],
    [refusal(131000, 'Something went wrong', 500), { kind: 'unknown', retryAfterMs: 1000 }],
    [refusal(4, 'Too many calls'), { kind: 'rate_limited', retryAfterMs: 60_000 }],
    [refusal(130429, 'Rate limit hit'), { kind: 'rate_limited', retryAfterMs: 1000 }],
    [refusal(131048, 'Spam rate limit hit'), { kind: 'rate_limited', retryAfterMs: 3_600_000 }],
    [refusal(131056, 'Pair rate limit hit'), { kind: 'rate_limited', retryAfterMs: 6000 }],
    [refusal(999_999, 'Something new'), { kind: 'unknown', retryAfterMs: null }],
    [refusal(999_999, 'Something new', 500), { kind: 'transient', retryAfterMs: 1000 }],
    [{ html: 502 }, { kind: 'transient', retryAfterMs: 1000 }],
    [{ html: 504 }, { kind: 'uncertain', retryAfterMs: 1000 }],
    [{ answer: { messages: [] } }, { kind: 'uncertain', retryAfterMs: 1000 }],
    ['cut', { kind: 'uncertain', retryAfterMs: 1000 }],
  ];

  test.each(refusals)('%j says why, and whether to try again', async (fault, expected) => {
    await using scene = await openScene();
    scene.fake.failNext('messages', fault);
    const failure = await scene.failureOf({ text: 'x' });
    expect(failure).toBeInstanceOf(SendFailure);
    expect(failure).toMatchObject(expected);
    expect(scene.shown()).toEqual([]);
  });

  test('with a secret in its words does not pass it on', async () => {
    await using scene = await openScene();
    const { token, appSecret, verifyToken } = scene.fake;
    scene.fake.failNext('messages', refusal(100, `${token} ${appSecret} ${verifyToken} are odd`));
    expect((await scene.failureOf({ text: 'x' })).message).toContain('<secret> <secret> <secret> are odd (code 100)');
  });

  test('is not carried to another server, which would learn the token', async () => {
    await using scene = await openScene();
    await using stranger = await WhatsAppCloud.start();
    scene.fake.failNext('messages', { redirect: `${stranger.url}/v25.0/1/messages` });
    expect(await scene.failureOf({ text: 'x' })).toBeInstanceOf(SendFailure);
    expect(stranger.calls).toEqual([]);
  });
});

describe('a limit', () => {
  test('of the number lasts as long as the usage headers say, for everybody', async () => {
    await using scene = await openScene();
    scene.fake.failNext('messages', { ...refusal(80007, 'Rate limit issues'), minutes: 7 });
    expect(await scene.failureOf({ text: 'x' })).toMatchObject({ kind: 'rate_limited', retryAfterMs: 420_000 });
    const { retryAfterMs } = await scene.failureOf({ text: 'y' }, other);
    expect(retryAfterMs).toBeGreaterThan(300_000);
    expect(scene.shown()).toEqual([]);
    // Nor is anybody shown that an answer is being made.
    await scene.platform.showTyping(dm, never, { messageId: 'wamid.X', data: {}, until: null });
    expect(scene.fake.typing).toEqual([]);
  });

  test('of a pair lasts four times as long each time, and for nobody else', async () => {
    await using scene = await openScene({}, [dm, other], 1000);
    const waits: (number | null)[] = [];
    for (let time = 0; time < 3; time += 1) {
      scene.fake.failNext('messages', refusal(131056, 'Pair rate limit hit'));
      let failure = await scene.failureOf({ text: 'x' });
      // What the platform itself holds back is asked for again until the server is asked.
      while (!failure.message.includes('131056')) failure = await scene.failureOf({ text: 'x' });
      waits.push(failure.retryAfterMs);
      await scene.send({ text: 'to somebody else' }, other);
    }
    expect(waits).toEqual([6000, 24_000, 96_000]);
    expect(scene.shown()).toHaveLength(3);
  });

  test('of a pair is kept before the server has to say so', async () => {
    await using scene = await openScene({}, [dm, other], 1);
    let failure: SendFailure | null = null;
    for (let count = 0; count < 45 && failure === null; count += 1) {
      await scene.send({ text: `message ${count}` }).catch((thrown: SendFailure) => (failure = thrown));
    }
    expect(failure).toMatchObject({ kind: 'rate_limited' });
    expect(failure!.retryAfterMs).toBeGreaterThan(1000);
    expect(failure!.retryAfterMs).toBeLessThanOrEqual(6000);
    expect(scene.shown().length).toBeGreaterThanOrEqual(40);
    await scene.send({ text: 'somebody else' }, other);
  });
});

describe('a message whose answer is lost', () => {
  test('is not sent again once the server has told that it arrived', async () => {
    await using scene = await openScene();
    const { fake, platform } = scene;
    const inbox = new TestInbox();
    await platform.start(inbox);
    fake.failNext('messages', 'lost');
    expect(await scene.failureOf({ text: 'once', key: 'dlv_1' })).toMatchObject({ kind: 'uncertain' });
    const [arrived] = scene.shown();
    const url = 'http://gateway.test';
    const told = fake.envelope({
      statuses: [{ id: arrived!.id, status: 'sent', recipient_id: dm.chat, biz_opaque_callback_data: 'dlv_1' }],
    });
    const body = Buffer.from(JSON.stringify(told));
    const headers = { 'x-hub-signature-256': fake.webhooks.sign(body.toString()) };
    await platform.receiveWebhook({ method: 'POST', path: '', query: new URL(url).searchParams, headers, body });
    expect(await scene.send({ text: 'once, perhaps again', key: 'dlv_1' })).toEqual({ messageId: arrived!.id });
    expect(scene.shown()).toHaveLength(1);
    await scene.send({ text: 'another', key: 'dlv_2' });
    expect(scene.shown()).toHaveLength(2);
  });
});

test('a message whose answer is lost is sent again where the server has told that it failed after all', async () => {
  await using scene = await openScene();
  const { fake, platform } = scene;
  await platform.start(new TestInbox());
  const tell = async (id: string, status: string) => {
    const told = { id, status, recipient_id: dm.chat, biz_opaque_callback_data: 'dlv_1' };
    const body = Buffer.from(JSON.stringify(fake.envelope({ statuses: [told] })));
    const headers = { 'x-hub-signature-256': fake.webhooks.sign(body.toString()) };
    const request = { method: 'POST', path: '', query: new URLSearchParams(), headers, body };
    expect(await platform.receiveWebhook(request)).toEqual({ status: 200 });
  };
  fake.failNext('messages', 'lost');
  expect(await scene.failureOf({ text: 'x', key: 'dlv_1' })).toMatchObject({ kind: 'uncertain' });
  const [lost] = scene.shown();
  // Meta brings what became of a message in no order.
  for (const status of ['sent', 'failed', 'delivered']) await tell(lost!.id, status);
  const { messageId } = await scene.send({ text: 'x', key: 'dlv_1' });
  expect(messageId).not.toBe(lost!.id);
  expect(scene.shown()).toHaveLength(2);
});

describe('the window of 24 hours', () => {
  const late = { reply: { messageId: 'wamid.OLD', data: {}, until: 1 } };
  const template = { name: 'late_reply', language: 'en_US' };

  test('is known to be over without asking', async () => {
    await using scene = await openScene();
    const failure = await scene.failureOf({ text: 'x', ...late });
    expect(failure).toMatchObject({ kind: 'expired', retryAfterMs: null });
    expect(failure.message).toContain('24 hours');
    expect(scene.fake.calls).toEqual([]);
  });

  test('is asked for where nothing is known of it', async () => {
    await using scene = await openScene({}, []);
    expect(await scene.failureOf({ text: 'x' })).toMatchObject({ kind: 'expired' });
    expect(scene.fake.calls).toHaveLength(1);
  });

  test.each([['known before'], ['told by the server'], ['not known at all']])(
    'lets a template through, on one line: %s',
    async (how) => {
      await using scene = await openScene({ template });
      scene.fake.templates.add('late_reply en_US');
      scene.fake.closeWindow();
      const until = scene.runtime.now() + 3_600_000;
      const reply =
        how === 'known before' ? late : how === 'told by the server' ? { reply: { ...late.reply, until } } : {};
      await scene.send({ text: '**Done:**\n\n- one\n- two', key: 'dlv_1', replyTo: 'wamid.OLD', ...reply });
      expect(scene.shown()).toMatchObject([{ payload: { type: 'template' }, text: 'Done: • one • two' }]);
      expect(scene.shown()[0]?.payload).not.toHaveProperty('context');
    },
  );

  test('has a template for the beginning of what is long, and keeps the whole', async () => {
    await using scene = await openScene({ template });
    scene.fake.templates.add('late_reply en_US');
    scene.fake.closeWindow();
    expect(await scene.failureOf({ text: 'word '.repeat(400), ...late })).toMatchObject({ kind: 'expired' });
    expect(scene.shown()[0]?.text.endsWith(REST_WAITS)).toBe(true);
  });

  test.each([
    ['a file', { files: [fileOf('document', 'a.txt')] }],
    ['buttons', { buttons: [[{ label: 'Yes', data: 'y' }]] }],
  ])('has no template for %s', async (_, more) => {
    await using scene = await openScene({ template });
    scene.fake.templates.add('late_reply en_US');
    expect(await scene.failureOf({ text: 'x', ...more, ...late })).toMatchObject({ kind: 'expired' });
    expect(scene.fake.calls).toEqual([]);
  });

  test('keeps what a template was refused for', async () => {
    await using scene = await openScene({ template });
    const failure = await scene.failureOf({ text: 'x', ...late });
    expect(failure).toMatchObject({ kind: 'expired' });
    expect(failure.message).toContain('132001');
  });

  test.each([
    [130472, 'the person is part of an experiment'],
    [131008, 'a parameter is missing'],
    [131049, 'they had enough of such messages'],
    [131050, 'they want none'],
    [999_999, 'Something new'],
  ])('keeps what a template was refused for with %i: %s', async (code, words) => {
    await using scene = await openScene({ template });
    scene.fake.failNext('messages', refusal(code, words));
    const failure = await scene.failureOf({ text: 'x', ...late });
    expect(failure).toMatchObject({ kind: 'expired', retryAfterMs: null });
    expect(failure.message).toContain(String(code));
  });

  test('lets what goes by template wait as long as the server says', async () => {
    await using scene = await openScene({ template });
    scene.fake.failNext('messages', refusal(4, 'Too many calls'));
    expect(await scene.failureOf({ text: 'x', ...late })).toMatchObject({ kind: 'rate_limited', retryAfterMs: 60_000 });
  });
});

describe('somebody who does not tell their number', () => {
  test('is written to by the id that Meta gives instead', async () => {
    const place: Place = { ...dm, chat: 'US.13491208655302741918' };
    await using scene = await openScene({}, [place]);
    await scene.send({ text: 'x' }, place);
    expect(scene.fake.calls[0]).toMatchObject({ recipient: place.chat });
    expect(scene.fake.calls[0]).not.toHaveProperty('to');
  });
});

describe('typing', () => {
  test('is shown at the message that is answered, else at the last one that came, else nowhere', async () => {
    await using scene = await openScene();
    const { fake, platform } = scene;
    await platform.showTyping(dm, never);
    expect(fake.typing).toEqual([]);
    await platform.start(new TestInbox());
    const { id, payload } = fake.hear({ from: dm.chat, fields: { type: 'text', text: { body: 'hello' } } });
    const body = Buffer.from(JSON.stringify(payload));
    const headers = { 'x-hub-signature-256': fake.webhooks.sign(body.toString()) };
    await platform.receiveWebhook({ method: 'POST', path: '', query: new URLSearchParams(), headers, body });
    await platform.showTyping(dm, never);
    await platform.showTyping(dm, never, { messageId: id, data: {}, until: null });
    expect(fake.typing).toEqual([id, id]);
  });
});

describe('the state', () => {
  test('says so when the token is taken back, and when it is good again', async () => {
    await using scene = await openScene();
    const { fake, platform } = scene;
    await platform.start(new TestInbox());
    await until(() => platform.state.phase === 'connected', 'connected');
    fake.revoked = true;
    await scene.failureOf({ text: 'x' });
    await until(() => platform.state.phase === 'failed', 'failed');
    expect(platform.state.problem).toContain('does not take the token');
    fake.revoked = false;
    await scene.send({ text: 'x' });
    await until(() => platform.state.phase === 'connected', 'connected again');
  });

  test('is degraded while the server cannot be reached, and mends by itself', async () => {
    await using scene = await openScene();
    const { fake, platform } = scene;
    fake.failNext('number', { html: 502 }, 'cut', refusal(131016, 'Service unavailable', 503));
    await platform.start(new TestInbox());
    await until(() => platform.state.phase === 'degraded', 'degraded');
    await until(() => platform.state.phase === 'connected', 'connected');
    expect(platform.state.problem).toBeNull();
  });

  test('names the number for people', async () => {
    await using scene = await openScene();
    expect(await scene.platform.identify(never)).toBe('Moirai +15550783881 (106540352242922)');
  });

  test.each([
    [{ phoneNumberId: '+1 555' }],
    [{ phoneNumberId: '../1' }],
    [{ apiVersion: 'latest' }],
    [{ token: 'two words' }],
  ])('is never reached with settings that belong in no address: %j', async (options) => {
    await using fake = await WhatsAppCloud.start();
    expect(() => whatsappAt(fake, options)).toThrow(/WhatsApp|Graph API/);
  });
});

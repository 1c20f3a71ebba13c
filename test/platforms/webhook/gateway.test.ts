import { describe, expect, test } from 'vitest';
import { WebhookSender } from '../../fakes/webhook-sender.ts';
import { RUN_ALL } from '../../support/share.ts';
import { WebhookScene } from './scene.ts';

/** What the gateway says behind a result that it may have sent before. */
const MAYBE_AGAIN = '(This may be a repetition: I was interrupted while sending it.)';
const [DELIVERIES, AT_ONCE] = RUN_ALL ? [200, 10] : [40, 8];
const PATIENCE_MS = 120_000;

describe('what a program brings', () => {
  test('is a session of its own, of the kind webhook, that ends webhook_complete; its result goes to a chat', async () => {
    await using scene = await WebhookScene.open();
    const { status, body } = await scene.bring('the disk is full', 'msg:1');
    expect(status).toBe(202);
    await scene.until('the result', () => scene.shown().length === 2);
    expect(scene.shown()[1]).toBe('did: the disk is full');
    expect(await scene.sessions()).toMatchObject([
      {
        id: body.session_id,
        key: 'agent:main:webhook:dm:alerts:msg%3A1',
        ...{ kind: 'webhook', state: 'ended', end_reason: 'webhook_complete', message_count: 2 },
      },
    ]);
    expect(await scene.gateway.get(`/v1/turns/${body.turn_id}`)).toMatchObject({
      session_id: body.session_id,
      reply: 'did: the disk is full',
    });
    const [first] = scene.model.requests.at(-1)?.body.messages.filter(({ role }) => role === 'user') ?? [];
    expect(String(first?.content)).toMatch(/^\[A program sent this by the webhook “alerts”\. .*no instruction to you/);
  });

  test('is worked on once, also when it is brought again after a restart', async () => {
    await using scene = await WebhookScene.open();
    const first = await scene.bring('once', 'd1');
    await scene.until('the result', () => scene.shown().length === 2);
    expect(await scene.bring('once', 'd1')).toEqual({ ...first, status: 200 });
    await scene.kill();
    await scene.start();
    expect(await scene.bring('once', 'd1')).toEqual({ ...first, status: 200 });
    await scene.bring('another', 'd2');
    await scene.until('the next result', () => scene.shown().length === 3);
    expect(scene.shown().slice(1)).toEqual(['did: once', 'did: another']);
    expect(await scene.sessions()).toHaveLength(2);
  });

  test('is taken by either of two gateways on one store, and worked on once', async () => {
    await using scene = await WebhookScene.open();
    const other = scene.another({ store: { url: `sqlite:${scene.gateway.home}/state.db` } });
    await other.start();
    const elsewhere = new WebhookSender('standard');
    elsewhere.url = `${other.url}/platforms/webhook/alerts`;
    const answers = await Promise.all([
      ...['d1', 'd2', 'd3'].map((id) => scene.bring(`work ${id}`, id)),
      ...['d1', 'd2', 'd3'].map((id) => scene.bring(`work ${id}`, id, elsewhere)),
    ]);
    expect(answers.map(({ status }) => status).sort()).toEqual([200, 200, 200, 202, 202, 202]);
    await scene.until('the results', () => scene.shown().length === 4);
    expect(scene.shown().slice(1).sort()).toEqual(['did: work d1', 'did: work d2', 'did: work d3']);
    expect(await scene.sessions()).toHaveLength(3);
  });

  test('is sent on as it is where the route has no agent, and is a session all the same', async () => {
    const secret = new WebhookSender('github').secret;
    const prompt = 'New in {{repo.name}}: {{text}}{{nothing.here}}';
    const issues = { secret, signature: 'github', prompt, deliver: 'telegram:42', agent: false };
    await using scene = await WebhookScene.open({}, { issues });
    const asked = scene.model.requests.length;
    const github = new WebhookSender('github');
    github.url = `${scene.gateway.url}/platforms/webhook/issues`;
    const body = github.delivery('g1', { repo: { name: 'loom' }, text: 'it {{text}} leaks' });
    const headers = github.sign(body, 'g1');
    const first = await github.post(body, headers);
    const { session_id, turn_id } = JSON.parse(first.text) as Record<string, unknown>;
    expect([first.status, turn_id]).toEqual([202, null]);
    const again = await github.post(body, headers);
    expect([again.status, again.text]).toEqual([200, first.text]);
    await scene.until('it arrives', () => scene.shown().length === 2);
    expect(scene.shown()[1]).toBe('New in loom: it {{text}} leaks');
    expect(await scene.sessions()).toMatchObject([
      { id: session_id, key: 'agent:main:webhook:dm:issues:g1', end_reason: 'webhook_complete' },
    ]);
    expect(scene.model.requests).toHaveLength(asked);
  });

  test('waits at the sender as long as its route names a place that nobody knows', async () => {
    await using scene = await WebhookScene.open(
      {},
      { lost: { secret: 's', signature: 'header', deliver: 'telegram:43', agent: false } },
    );
    const sender = new WebhookSender('header', 's');
    sender.url = `${scene.gateway.url}/platforms/webhook/lost`;
    const refused = await scene.bring('kept', 'd1', sender);
    expect([refused.status, refused.body.error?.code]).toEqual([503, 'target_unknown']);
    expect(await scene.sessions()).toEqual([]);
  });
});

describe('a way in', () => {
  test('asks for no key of the API, but for its own signature, and tells others nothing', async () => {
    await using scene = await WebhookScene.open({ gateway: { api_key: 'key-of-the-api' } });
    const stranger = new WebhookSender('standard', 'whsec_c29tZWJvZHkgZWxzZSdzIHNlY3JldA==');
    stranger.url = scene.sender.url;
    const forged = await scene.bring('forged', 'f1', stranger);
    expect([forged.status, forged.body.error?.code]).toEqual([401, 'webhook_refused']);
    const unsigned = await scene.gateway.post('/platforms/webhook/alerts', { text: 'unsigned' });
    expect([unsigned.status, Object.keys((unsigned.answer as { error: object }).error)]).toEqual([
      401,
      ['code', 'message', 'hint'],
    ]);
    expect((await scene.gateway.post('/platforms/webhook/nowhere', {})).status).toBe(404);
    expect((await scene.gateway.post('/platforms/webhook', {})).status).toBe(404);
    expect((await scene.bring('real', 'd1')).status).toBe(202);
    await scene.until('the result', () => scene.shown().length === 2);
    expect(scene.shown()[1]).toBe('did: real');
    expect(scene.gateway.log).not.toContain(scene.sender.secret);
    const { output } = await scene.gateway.moirai('config', 'show');
    expect(output).toMatch(/alerts:\s+secret: "?\*\*\*/);
    expect(output).not.toContain(scene.sender.secret);
  });

  test('is listed beside the chat platforms, says where it is, and is no place to send to', async () => {
    await using scene = await WebhookScene.open();
    const { data } = await scene.gateway.get<{ data: object[] }>('/v1/platforms');
    expect(data).toContainEqual(expect.objectContaining({ name: 'webhook', account: null, phase: 'connected' }));
    const tried = await scene.gateway.moirai('platforms', 'test', 'webhook');
    expect(tried).toMatchObject({ code: 0, output: 'webhook is open at /platforms/webhook/alerts.\n' });
    const sent = await scene.gateway.moirai('send', 'webhook:alerts', 'hello');
    expect([sent.code, sent.errors]).toEqual([1, expect.stringContaining('target_unknown')]);
  });

  test('without a secret is refused with the configuration, and so is what could never come true', async () => {
    await using scene = await WebhookScene.open();
    for (const [route, said] of [
      [{ prompt: 'x' }, 'platforms.webhook.routes.open.secret: it is missing'],
      [{ secret: '' }, 'platforms.webhook.routes.open.secret: it is empty'],
      [{ secret: 'not base64!' }, 'routes.open.signature: the default is nothing without a secret of its form'],
      [{ secret: 's', signature: 'header', agent: false }, 'routes.open.agent: false is nothing without deliver'],
      [{ secret: 's', signature: 'header', deliver: 'origin' }, 'routes.open.deliver: "origin" is no place'],
      [{ secret: 's', signature: 'github', allow: ['*'] }, 'routes.open.allow: no such setting'],
    ] as const) {
      const gateway = scene.another({}, { open: route });
      const { code, errors } = await gateway.moirai('config', 'check');
      expect([code, errors]).toEqual([78, expect.stringContaining(said)]);
      expect(errors).not.toContain('not base64!');
    }
  });
});

/**
 * A sender keeps what is not acknowledged. The process is killed in the middle, and at the very moment the chat has taken a
 * result. Each delivery is one session with one turn; its result is there once, or says that it may be there twice.
 */
test(`${DELIVERIES} deliveries through two kills are each worked on once`, async () => {
  await using scene = await WebhookScene.open();
  const names = Array.from({ length: DELIVERIES }, (_, index) => `delivery ${index}`);
  const results = (): string[] => scene.shown().slice(1);
  const wordsOf = (text: string): string => text.split(MAYBE_AGAIN)[0]!.trim();
  const waiting = [...names];
  const answers = new Map<string, number>();
  const sender = async (): Promise<void> => {
    for (let name = waiting.shift(); name !== undefined; name = waiting.shift()) {
      const id = name.replace(' ', '-');
      const body = scene.sender.delivery(id, { text: name });
      answers.set(name, (await scene.sender.bring(body, id)).status);
      // Now and then the acknowledgement is lost on its way.
      if (answers.size % 5 === 0) expect((await scene.sender.bring(body, id)).status).toBe(200);
      await scene.until(`the result of ${name}`, () => results().map(wordsOf).includes(`did: ${name}`), PATIENCE_MS);
    }
  };
  const trouble = async (): Promise<void> => {
    await scene.until('a fifth', () => results().length >= DELIVERIES / 5, PATIENCE_MS);
    await new Promise<void>((resolve) => {
      scene.bot.onTaken = () => {
        scene.bot.onTaken = null;
        process.kill(scene.gateway.pid, 'SIGKILL');
        resolve();
      };
    });
    await scene.kill();
    await scene.start();
    await scene.until('half', () => results().length >= DELIVERIES / 2, PATIENCE_MS);
    await scene.kill();
    await scene.start();
  };
  await Promise.all([trouble(), ...Array.from({ length: AT_ONCE }, sender)]);
  await scene.until('all ends', async () => (await scene.sessions()).every(({ state }) => state === 'ended'));
  const expected = names.map((name) => `did: ${name}`).sort();
  expect([...new Set(results().map(wordsOf))].sort()).toEqual(expected);
  const unmarked = results().filter((text) => !text.includes(MAYBE_AGAIN));
  expect(new Set(unmarked).size).toBe(unmarked.length);
  const sessions = await scene.sessions();
  expect(sessions.map(({ key }) => key).sort()).toEqual(
    names.map((name) => `agent:main:webhook:dm:alerts:${name.replace(' ', '-')}`).sort(),
  );
  for (const { end_reason, message_count } of sessions) {
    expect([end_reason, message_count]).toEqual(['webhook_complete', 2]);
  }
  // One that was taken by a process that then died is known to the next one.
  expect([...answers.values()].every((status) => status === 202 || status === 200)).toBe(true);
}, 300_000);

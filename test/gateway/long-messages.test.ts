import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type PlatformSenderDeps, platformSender } from '../../src/outbound/platform-sender.ts';
import { SentParts } from '../../src/outbound/sent-parts.ts';
import { type Outgoing, SendFailure } from '../../src/platforms/platform.ts';
import { Harbour } from './harbour.ts';
import { Scene } from './scene.ts';

let scene: Scene;
let harbour: Harbour;

const LINES = ['one', 'two', 'three'].map((word) => `${word} ${'.'.repeat(60)}`);
const TEXT = LINES.join('\n\n');
const never = new AbortController().signal;

beforeEach(async () => {
  harbour = new Harbour();
  const settings = { access: { allow: ['*'], admins: ['*'] }, gateway: { drain_timeout: '0s' } };
  scene = await Scene.open(settings, undefined, [harbour.configured]);
  await scene.until('the platform is there', () => harbour.state.phase === 'connected');
  harbour.can({ maxText: 80 });
});
afterEach(() => scene.close());

/** The session of somebody who was answered. */
async function openSession(): Promise<string> {
  await harbour.say('hello');
  await scene.until('the answer', () => harbour.sent.length > 0);
  harbour.sent.length = 0;
  return (await scene.store.read('openSession', { key: 'agent:main:harbour:dm:42' }))!.id;
}

/** As another process puts it into the outbox, which does not know how long a message may be. */
async function deliver(text: string): Promise<void> {
  const sessionId = await openSession();
  const deliveries = [{ id: 'dlv_long', platform: 'harbour', target: { type: 'dm', chat: '42' }, text }];
  await scene.store.write('addDeliveries', { context: scene.gateway.engine.commandContext(), sessionId, deliveries });
}

/** The second message of the long one is refused once. */
function refuseSecond(failure: SendFailure): void {
  let refused = false;
  harbour.refuse = ({ key }: Outgoing) => {
    if (refused || key !== 'dlv_long:part2') return;
    refused = true;
    throw failure;
  };
}

describe('a text that becomes several messages', () => {
  test('goes on where it was when one of them is refused for a while', async () => {
    refuseSecond(new SendFailure('patience', 1, 'rate_limited'));
    await deliver(TEXT);
    await scene.until('all of it', () => harbour.texts.includes(LINES[2]!));
    expect(harbour.texts.map((text) => text.trim())).toEqual(LINES);
  });

  test('goes on with the one that may have arrived, and says so behind the last', async () => {
    refuseSecond(new SendFailure('no answer', 1, 'uncertain'));
    await deliver(TEXT);
    await scene.until('all of it', () => harbour.texts.some((text) => text.includes('This may be a repetition')));
    expect(harbour.texts.filter((text) => text.startsWith('one'))).toHaveLength(1);
    expect(harbour.texts.filter((text) => text.startsWith('two'))).toHaveLength(1);
  });

  test('is looked for message by message after the end of its process, and only what is missing is sent', async () => {
    const arrived = new Set(['dlv_long']);
    harbour.findSent = async (_, key) => (arrived.has(key) ? { messageId: key } : null);
    const request = { key: 'dlv_long', target: { type: 'dm', chat: '42' }, text: TEXT, shape: null };
    const sender = platformSender(harbour, { parts: new SentParts() } as PlatformSenderDeps);
    const session = { sessionId: 's', sessionKey: 'k' };
    expect(await sender.beforeRepetition?.({ ...request, ...session }, never)).toBe('again');
    await sender.send({ ...request, ...session }, never);
    expect(harbour.texts.map((text) => text.trim())).toEqual(LINES.slice(1));
    for (const key of ['dlv_long:part2', 'dlv_long:part3']) arrived.add(key);
    const next = platformSender(harbour, { parts: new SentParts() } as PlatformSenderDeps);
    expect(await next.beforeRepetition?.({ ...request, ...session }, never)).toEqual({ messageId: 'dlv_long:part3' });
  });

  test('is not sent where no place can be opened: nobody would see its title', async () => {
    const opens = { title: 'Release day', tags: [] };
    const request = { key: 'dlv_post', target: { type: 'dm', chat: '42', opens }, text: 'We ship.', shape: null };
    const sender = platformSender(harbour, { parts: new SentParts() } as PlatformSenderDeps);
    const failure = await sender
      .send({ ...request, sessionId: 's', sessionKey: 'k' }, never)
      .catch((thrown: unknown) => thrown);
    expect(failure).toMatchObject({ name: 'SendFailure', retryAfterMs: null, kind: 'bad_format' });
    expect(String(failure)).toContain('no posts can be opened on harbour');
    expect(harbour.sent).toEqual([]);
  });

  test('opens one place, and goes on there', async () => {
    harbour.can({ opens: true });
    harbour.listPlaces = async () => [{ type: 'channel', chat: 'forum', name: 'Ideas' }];
    harbour.inbox.changed();
    await scene.until('it is listed', async () => {
      return (await scene.store.read('placeNamed', { name: 'harbour:forum' })) !== null;
    });
    const asker = { sessionId: await openSession(), turnId: 'trn', userId: '42', userName: null };
    await scene.ports.sendMessage!('Ideas:new=Release day', TEXT, asker as never);
    await scene.until('all of it', () => harbour.texts.some((text) => text.includes('three')));
    const [first, ...rest] = harbour.sent.map(({ place }) => place);
    expect(first).toMatchObject({ chat: 'forum', opens: { title: 'Release day' } });
    expect(rest.length).toBeGreaterThan(0);
    const thread = harbour.sent[0]?.messageId;
    for (const place of rest) expect(place).toMatchObject({ type: 'thread', thread });
    await scene.until('it is known', async () => {
      return (await scene.store.read('placeNamed', { name: `harbour:forum:${thread}` })) !== null;
    });
  });
});

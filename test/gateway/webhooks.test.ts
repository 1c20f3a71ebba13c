import { Webhook } from 'standardwebhooks';
import { afterEach, expect, test } from 'vitest';
import { until } from '../cli/cli-fixture.ts';
import { startHttpFake } from '../fakes/http-fake.ts';
import { share } from '../support/share.ts';
import { GatewayProcess } from './process.ts';

const SECRET = `whsec_${Buffer.from('known to two alone').toString('base64')}`;
/** Each makes two events at least. */
const MESSAGES = share(30, 240);
let gateway: GatewayProcess;

afterEach(() => gateway.close());

interface ReceivedCall {
  readonly id: string;
  readonly type: string;
  readonly session_id: string;
  readonly session_key: string;
  readonly reason?: string;
}

/** What somebody who knows only these events would say about sessions. */
function mirrorOf(events: readonly ReceivedCall[]): Map<string, string> {
  const sessions = new Map<string, string>();
  for (const { type, session_id, reason } of events) {
    if (type === 'session:start') sessions.set(session_id, 'open');
    else if (type === 'session:end') sessions.set(session_id, `ended: ${reason}`);
  }
  return sessions;
}

test('many events and a restart while the receiver is down: all arrive, in order, and tell the same as the store', {
  timeout: 120_000,
}, async () => {
  const before = await startHttpFake(async (_, response) => void response.writeHead(204).end());
  const port = Number(new URL(before.url).port);
  await before.close();
  const webhook = { name: 'mirror', url: before.url, secret: SECRET, events: ['session:*', 'agent:*'] };
  gateway = new GatewayProcess({ hooks: { webhooks: [webhook] }, model: { provider: 'offline' } });
  await gateway.start();
  // Five conversations of some turns each, and a fresh session in each now and then.
  for (let i = 0; i < MESSAGES; i++) {
    await gateway.chat({ text: i % 24 < 5 ? '/new' : 'hello', conversation: `c${i % 5}` });
    if (i === MESSAGES / 2) await gateway.end('SIGTERM').then(() => gateway.start());
  }
  const log = (await gateway.events('session:*,agent:*')) as unknown as (ReceivedCall & { seq: number })[];
  expect(log.length).toBeGreaterThanOrEqual(2 * MESSAGES);
  await using receiver = await startHttpFake(async (_, response) => void response.writeHead(204).end(), port);
  await until('all arrived', () => receiver.requests.length >= log.length, 60_000);
  const heard = receiver.requests.map(({ raw, headers }) => {
    return new Webhook(SECRET).verify(raw, headers as Record<string, string>) as ReceivedCall;
  });
  const idsOf = (events: readonly ReceivedCall[], key: string) =>
    events.filter(({ session_key }) => session_key === key).map(({ id }) => id);
  for (const key of new Set(log.map(({ session_key }) => session_key))) {
    expect(idsOf(heard, key)).toEqual(idsOf(log, key));
  }
  const { data } = await gateway.get<{ data: { id: string; state: string; end_reason: string | null }[] }>(
    '/v1/sessions?limit=500',
  );
  const stored = data.map(({ id, state, end_reason }) => [id, state === 'ended' ? `ended: ${end_reason}` : 'open']);
  expect(Object.fromEntries(mirrorOf(heard))).toEqual(Object.fromEntries(stored));
});

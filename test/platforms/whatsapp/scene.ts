import type { Outgoing, OutgoingFile, Place, SendFailure, WebhookRequest } from '../../../src/platforms/platform.ts';
import type { WhatsAppOptions } from '../../../src/platforms/whatsapp/platform.ts';
import { WhatsAppCloud } from '../../fakes/whatsapp-cloud.ts';
import { never, TestInbox, until } from '../contract/scene.ts';
import { personId, whatsappAt } from './world.ts';

/** Two people who have written. */
export const dm: Place = { type: 'dm', scope: '106540352242922', chat: personId() };
export const other: Place = { ...dm, chat: personId(1) };

/** Everybody has written, unless they are not to. */
export async function openScene(
  options: Partial<WhatsAppOptions> = {},
  people: readonly Place[] = [dm, other],
  speed = 100,
) {
  const fake = await WhatsAppCloud.start();
  const { platform, runtime } = whatsappAt(fake, options, speed);
  for (const { chat } of people) fake.hear({ from: chat, fields: { type: 'text', text: { body: 'hello' } } });
  const send = (message: Partial<Outgoing>, place = dm) => platform.send(place, { text: '', ...message }, never);
  const failureOf = async (message: Partial<Outgoing>, place = dm) => {
    return (await send(message, place).catch((thrown: unknown) => thrown)) as SendFailure;
  };
  const shown = () => [...fake.messages.values()];
  const close = async () => {
    await platform.stop();
    await fake.close();
  };
  return { fake, platform, runtime, send, failureOf, shown, [Symbol.asyncDispose]: close };
}

export function fileOf(kind: OutgoingFile['kind'], name: string, mime: string | null = null, bytes = 10): OutgoingFile {
  return { kind, name, mime, bytes: new Uint8Array(bytes) };
}

/** A platform that is connected, and requests to it as its server makes them. */
export async function openWebhook(speed = 100, options: Partial<WhatsAppOptions> = {}) {
  const fake = await WhatsAppCloud.start();
  const { platform, runtime } = whatsappAt(fake, options, speed);
  const inbox = new TestInbox();
  await platform.start(inbox);
  await until(() => platform.state.phase === 'connected', 'connected');
  const request = (body: string, headers: Record<string, string>): WebhookRequest => {
    return { method: 'POST', path: '', query: new URLSearchParams(), headers, body: Buffer.from(body) };
  };
  const { webhooks } = fake;
  const signed = (body: string) => request(body, { 'x-hub-signature-256': webhooks.sign(body) });
  const post = async (body: unknown): Promise<number> => {
    return (await platform.receiveWebhook(signed(typeof body === 'string' ? body : JSON.stringify(body)))).status;
  };
  const now = (): number => Math.floor(runtime.now() / 1000);
  let last = 0;
  const nextId = (): string => {
    last += 1;
    return `wamid.T${last}`;
  };
  const message = (
    text: string,
    { person = 0, age = 0, ...fields }: { person?: number; age?: number } & object = {},
  ) => ({
    from: personId(person),
    id: nextId(),
    timestamp: String(now() - age),
    ...{ type: 'text', text: { body: text }, ...fields },
  });
  const said = (...messages: object[]) => fake.envelope({ contacts: [], messages });
  const close = async () => {
    await platform.stop();
    await fake.close();
  };
  return { fake, platform, runtime, inbox, request, post, message, said, now, [Symbol.asyncDispose]: close };
}

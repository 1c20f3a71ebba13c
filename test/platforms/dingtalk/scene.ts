import type { Incoming, ReplyContext } from '../../../src/platforms/platform.ts';
import { TestInbox, until } from '../contract/scene.ts';
import { DingtalkWorld, dingtalkAt } from './world.ts';

export const GROUP_SEND = '/v1.0/robot/groupMessages/send';
export const DIRECT_SEND = '/v1.0/robot/oToMessages/batchSend';

/** A platform without cards that hears people and can be told to send. */
export async function openScene({ speed = 100 } = {}) {
  const world = await DingtalkWorld.open({ card: false });
  const { platform, warnings } = dingtalkAt(world.fake, { card: false, speed });
  const inbox = new TestInbox();
  await platform.start(inbox);
  const close = async () => {
    await platform.stop();
    await world[Symbol.asyncDispose]();
  };
  const heard = async (data: Record<string, unknown>): Promise<Incoming> => {
    const before = inbox.received.length;
    world.bring({ ...world.message(), msgtype: 'text', text: { content: 'hello' }, ...data });
    await until(() => inbox.received.length > before, 'the message');
    return inbox.received.at(-1)!;
  };
  return { world, fake: world.fake, platform, warnings, inbox, heard, [Symbol.asyncDispose]: close };
}

/** A message as answers to it need it. */
export function contextOf({ messageId, reply }: Incoming): ReplyContext {
  return { messageId, data: reply?.data ?? {}, until: reply?.until ?? null };
}

export const caught = (thrown: unknown): unknown => thrown;

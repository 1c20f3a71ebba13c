import { MoiraiError } from '../errors/moirai-error.ts';
import type { Target } from '../platforms/platform.ts';
import type { Store } from '../store/port.ts';
import { nullableJson } from '../store/table.ts';
import type { ConversationRef } from '../store/transactions/conversations.ts';
import { accountOf, deliverable } from '../turns/reply-target.ts';

/** Where the gateway says what nobody asked for: what BOOT.md brought, what a job found. */
export interface HomeChannel {
  readonly platform: string;
  readonly target: Target;
  /** The conversation that was made it: it knows of what it is told. */
  readonly key?: string;
}

const SETTING = 'home_channel';
const HOME = nullableJson<HomeChannel>();

/** Makes a conversation the home channel, until another is, whether or not a session is open in it. */
export async function setHome(store: Store, conversation: ConversationRef): Promise<void> {
  if (!deliverable(conversation)) {
    throw new MoiraiError('bad_input', 'nothing can be sent to this conversation, so it cannot be the home channel');
  }
  const { origin, key } = conversation;
  const home: HomeChannel = { platform: accountOf(conversation), target: origin ?? {}, key };
  await store.write('keepSetting', { name: SETTING, value: JSON.stringify(home) });
}

export async function findHome(store: Store): Promise<HomeChannel | null> {
  const kept = await store.read('findSetting', { name: SETTING });
  return HOME.decode(kept);
}

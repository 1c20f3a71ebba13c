import { MoiraiError } from '../errors/moirai-error.ts';
import type { InboxMessage } from './api.ts';

/** A message that came over a plugin's platform. */
export interface PluginMessage {
  readonly platform: string;
  readonly chat_id: string;
  readonly chat_type: string;
  readonly thread_id: string | null;
  readonly user_id: string;
  readonly user_name: string | null;
  readonly text: string;
  readonly message_id: string;
}

const USUAL_CHAT_TYPE = 'dm';

/** What a plugin gave, with nothing left open. Throws `bad_input`. */
export function messageFrom(platform: string, given: InboxMessage): PluginMessage {
  const { chat_type = USUAL_CHAT_TYPE, thread_id = null, user_name = null } = given;
  const texts = { chat_id: given.chat_id, user_id: given.user_id, message_id: given.message_id, chat_type };
  for (const [key, value] of Object.entries({ ...texts, thread_id, user_name, text: given.text })) {
    const fits = key in texts ? typeof value === 'string' && value !== '' : typeof value === 'string';
    const mayLack = (key === 'thread_id' || key === 'user_name') && value === null;
    if (!fits && !mayLack) throw new MoiraiError('bad_input', `${key} of a message of ${platform} is no text`);
  }
  return { platform, ...texts, thread_id, user_name, text: given.text };
}

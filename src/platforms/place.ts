export type ChatType = 'dm' | 'group' | 'channel' | 'thread';

/** One place of a platform, in the platform's own ids as text. */
export interface Place {
  readonly type: ChatType;
  readonly chat: string;
  /** What the chat belongs to where ids are not unique by themselves: a guild, a workspace. */
  readonly scope?: string;
  /** A thread or topic in the chat; its replies go there. */
  readonly thread?: string;
  /** As people know it: from outside, so never to be trusted. */
  readonly name?: string;
  /** What is sent here begins a conversation of its own, as a post in a forum does. */
  readonly opens?: { readonly title: string; readonly tags: readonly string[] };
}

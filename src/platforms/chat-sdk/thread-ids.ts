import { createHash } from 'node:crypto';
import type { Place, PlatformRuntime } from '../platform.ts';
import type { Adapter } from './adapter.ts';

/** What a part of a session key may be as it is. Others are known by their digest. */
const PLAIN = /^[\w@+-][\w@+:./=;-]{0,199}$/;
const LONGEST = 4096;

/**
 * The ids of an adapter's threads as places. `<adapter>:<channel>[:<rest>]` is the chat `<channel>` and its thread
 * `<rest>`. An id that is too long or too odd for a session key is kept beside, and its digest stands for it.
 */
export class ThreadIds {
  readonly #adapter: Adapter;
  readonly #runtime: PlatformRuntime;
  readonly #kept = new Set<string>();

  constructor(adapter: Adapter, runtime: PlatformRuntime) {
    this.#adapter = adapter;
    this.#runtime = runtime;
  }

  /** Null for what is no id. */
  async placeOf(threadId: unknown): Promise<Place | null> {
    const parts = this.#split(threadId);
    if (parts === null) return null;
    const { isDirect, chat, thread } = parts;
    const within = thread === null ? {} : { thread: await this.#shorten(thread) };
    const type = isDirect ? 'dm' : thread === null ? 'group' : 'thread';
    return { type, chat: await this.#shorten(chat), ...within };
  }

  async threadOf({ chat, thread }: Place): Promise<string> {
    const channel = `${this.#prefix}${await this.#restore(chat)}`;
    if (thread === undefined) return channel;
    const rest = await this.#restore(thread);
    return rest.startsWith(this.#prefix) ? rest : `${channel}:${rest}`;
  }

  /** What is said there is taken one after the other. */
  laneOf(threadId: unknown): string {
    const parts = this.#split(threadId);
    return parts === null ? '' : parts.chat;
  }

  get #prefix(): string {
    return `${this.#adapter.name}:`;
  }

  #split(threadId: unknown): { isDirect: boolean; chat: string; thread: string | null } | null {
    if (typeof threadId !== 'string' || threadId === '' || threadId.length > LONGEST) return null;
    try {
      const isDirect = this.#adapter.isDM?.(threadId) === true;
      const channel = String(this.#adapter.channelIdFromThreadId(threadId));
      const prefix = this.#prefix;
      if (!channel.startsWith(prefix) || channel === prefix) return null;
      const chat = channel.slice(prefix.length);
      if (threadId === channel) return { isDirect, chat, thread: null };
      const rest = threadId.startsWith(`${channel}:`) ? threadId.slice(channel.length + 1) : threadId;
      // What could be read as a whole id is written as one.
      return { isDirect, chat, thread: rest.startsWith(prefix) ? threadId : rest };
    } catch {
      return null; // The adapter says that it is none of its ids.
    }
  }

  async #shorten(part: string): Promise<string> {
    if (PLAIN.test(part) && !part.includes('..')) return part;
    const short = `~${createHash('sha256').update(part).digest('base64url').slice(0, 32)}`;
    if (!this.#kept.has(short)) {
      await this.#runtime.keep(`id:${short}`, part);
      this.#kept.add(short);
    }
    return short;
  }

  async #restore(part: string): Promise<string> {
    return part.startsWith('~') ? ((await this.#runtime.recall(`id:${part}`)) ?? part) : part;
  }
}

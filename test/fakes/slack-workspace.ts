/** A message as the people of a workspace see it. */
export interface SlackMessage {
  readonly channel: string;
  readonly ts: string;
  readonly thread: string | null;
  readonly user: string;
  readonly isBot: boolean;
  readonly subtype?: string;
  /** In Slack's own notation. */
  text: string;
  blocks: readonly SlackBlock[];
  metadata: unknown;
  files: readonly SlackFile[];
  stream: 'open' | 'finished' | null;
  edited: string | null;
}

export type SlackBlock = Readonly<Record<string, unknown>> & { readonly type: string };

export interface SlackFile {
  readonly id: string;
  readonly name: string;
  readonly mime: string;
  readonly size: number;
  bytes: Uint8Array;
  shared: boolean;
}

type Draft = Partial<SlackMessage> & Pick<SlackMessage, 'channel'>;

/** Channels, people, messages and files of one workspace. */
export class SlackWorkspace {
  readonly team = 'T1';
  readonly self = { user: 'UBOT', bot: 'BBOT', name: 'moirai' };
  readonly messages: SlackMessage[] = [];
  readonly files = new Map<string, SlackFile>();
  readonly reactions = new Map<string, readonly string[]>();
  readonly channels = new Map<string, { readonly name: string; readonly isDirect: boolean }>();
  readonly statuses: unknown[] = [];
  readonly prompts: unknown[] = [];
  readonly ephemerals: { readonly channel: string; readonly user: string; readonly text: string }[] = [];
  /** Nothing is found in the history of any channel. */
  hides = false;
  #moments = 0;
  #files = 0;

  /** Never the same, and later each time. */
  nextTime(): string {
    this.#moments += 1;
    return `${1_760_000_000 + Math.floor(this.#moments / 1000)}.${String(this.#moments % 1000).padStart(3, '0')}100`;
  }

  add({ channel, ...draft }: Draft): SlackMessage {
    const message: SlackMessage = {
      ...{ channel, ts: this.nextTime(), thread: null, user: this.self.user, isBot: false },
      ...{ text: '', blocks: [], metadata: null, files: [], stream: null, edited: null },
      ...draft,
    };
    this.messages.push(message);
    return message;
  }

  find(channel: unknown, ts: unknown): SlackMessage | undefined {
    return this.messages.find((message) => message.channel === channel && message.ts === ts);
  }

  remove(message: SlackMessage): void {
    this.messages.splice(this.messages.indexOf(message), 1);
  }

  addFile(name: string, mime: string, bytes: Uint8Array, size = bytes.length): SlackFile {
    this.#files += 1;
    const file = { id: `F${this.#files}`, name, mime, size, bytes, shared: false };
    this.files.set(file.id, file);
    return file;
  }

  /** As events and the history have it. */
  apiMessage(message: SlackMessage, withMetadata = false): Record<string, unknown> {
    const { channel, ts, thread, user, isBot, subtype, text, blocks, metadata, files, edited } = message;
    const root = thread === null ? undefined : this.find(channel, thread);
    const replies = this.messages.filter((other) => other.channel === channel && other.thread === ts);
    return {
      ...{ type: 'message', user, text, ts, team: this.team },
      ...(subtype === undefined ? {} : { subtype }),
      ...(isBot ? { bot_id: this.self.bot, app_id: 'A1' } : {}),
      ...(blocks.length === 0 ? {} : { blocks }),
      ...(thread === null ? {} : { thread_ts: thread, parent_user_id: root?.user ?? 'UGONE' }),
      ...(replies.length === 0 ? {} : { thread_ts: ts, reply_count: replies.length, latest_reply: replies.at(-1)?.ts }),
      ...(files.length === 0 ? {} : { files: files.map((file) => apiFile(file)) }),
      ...(edited === null ? {} : { edited: { user, ts: edited } }),
      ...(withMetadata && metadata !== null ? { metadata } : {}),
    };
  }
}

export function apiFile({ id, name, mime, size }: SlackFile, root = 'https://files.slack.com') {
  const url = `${root}/files-pri/T1-${id}/download/file`;
  return { id, name, mimetype: mime, size, mode: 'hosted', url_private: url, url_private_download: url };
}

/** Whether a message is newer than a time that a caller gave. */
export function isAfter(ts: string, oldest: unknown): boolean {
  return oldest === undefined || Number(ts) > Number(oldest);
}

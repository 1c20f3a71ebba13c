/*
 * What we know of an adapter of the Chat SDK: no more than is used. The packages are the user's, of any version, so that
 * nothing of them is imported, and whatever they give is looked at before it is used.
 */

/** What is posted; each adapter shows it in its platform's own way. */
export type Postable =
  | { readonly raw: string; readonly files?: readonly PostableFile[] }
  | { readonly markdown: string; readonly files?: readonly PostableFile[] }
  | { readonly card: unknown; readonly fallbackText: string };

export interface PostableFile {
  readonly data: Buffer;
  readonly filename: string;
  readonly mimeType?: string;
}

/** What goes with a webhook; what is not done when it is answered is handed to `waitUntil`. */
export interface WebhookOptions {
  readonly waitUntil?: ((task: Promise<unknown>) => void) | undefined;
}

export interface Adapter {
  readonly name: string;
  readonly userName?: unknown;
  readonly botUserId?: unknown;
  initialize(chat: unknown): Promise<unknown>;
  disconnect?(): Promise<unknown>;
  handleWebhook(request: Request, options: WebhookOptions): Promise<Response>;
  parseMessage(raw: unknown): unknown;
  channelIdFromThreadId(threadId: string): string;
  isDM?(threadId: string): boolean;
  postMessage(threadId: string, message: Postable): Promise<{ readonly id?: unknown }>;
  reply?(threadId: string, messageId: string, message: Postable): Promise<{ readonly id?: unknown }>;
  postEphemeral?(threadId: string, userId: string, message: Postable): Promise<unknown>;
  editMessage?(threadId: string, messageId: string, message: Postable): Promise<unknown>;
  deleteMessage?(threadId: string, messageId: string): Promise<unknown>;
  addReaction?(threadId: string, messageId: string, emoji: string): Promise<unknown>;
  removeReaction?(threadId: string, messageId: string, emoji: string): Promise<unknown>;
  startTyping?(threadId: string): Promise<unknown>;
  rehydrateAttachment?(attachment: object): { fetchData?(): Promise<Uint8Array | ArrayBuffer> };
}

const NEEDED = ['initialize', 'handleWebhook', 'parseMessage', 'channelIdFromThreadId', 'postMessage'];

export function isAdapter(value: unknown): value is Adapter {
  if (typeof value !== 'object' || value === null) return false;
  const made = value as Readonly<Record<string, unknown>>;
  return typeof made.name === 'string' && NEEDED.every((name) => typeof made[name] === 'function');
}

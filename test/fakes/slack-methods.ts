import { apiFile, isAfter, type SlackBlock, type SlackMessage, type SlackWorkspace } from './slack-workspace.ts';

export type SlackArgs = Readonly<Record<string, unknown>>;
type Answer = Record<string, unknown>;
type Method = (workspace: SlackWorkspace, args: SlackArgs, root: string) => Answer;

/** A call that Slack answers with `ok: false`. */
export class SlackRefusal extends Error {}

const MOST_MARKDOWN = 12_000;
const MOST_BLOCKS = 50;

/** The methods of the Web API that the platform uses, as strict as the real ones. */
export const SLACK_METHODS: Readonly<Record<string, Method>> = {
  'users.info': (_, { user }) => ({
    user: {
      id: user,
      name: `name-${String(user)}`,
      profile: { display_name: '', real_name: `Person ${String(user)}` },
    },
  }),
  'users.conversations': (workspace) => ({
    channels: [...workspace.channels].map(([id, { name, isDirect }]) =>
      isDirect ? { id, is_im: true, user: 'U42' } : { id, name, is_channel: true },
    ),
  }),
  'chat.postMessage': (workspace, args) => {
    const message = ours(workspace, args);
    workspace.messages.push(message);
    return { channel: message.channel, ts: message.ts, message: workspace.apiMessage(message) };
  },
  'chat.postEphemeral': (workspace, { channel, user, text }) => {
    workspace.ephemerals.push({ channel: String(channel), user: String(user), text: String(text) });
    return { message_ts: workspace.nextTime() };
  },
  'chat.update': (workspace, args) => {
    const message = ownMessage(workspace, args);
    if (message.stream === 'open') throw new SlackRefusal('streaming_state_conflict');
    Object.assign(message, contentOf(args), { edited: workspace.nextTime() });
    return { channel: message.channel, ts: message.ts };
  },
  'chat.delete': (workspace, args) => {
    const message = ownMessage(workspace, args);
    if (message.stream === 'open') throw new SlackRefusal('cant_delete_message');
    workspace.remove(message);
    return { channel: message.channel, ts: message.ts };
  },
  'chat.startStream': startStream,
  'chat.appendStream': (workspace, args) => {
    const message = openStream(workspace, args);
    const added = markdownOf(args);
    if (added === '') throw new SlackRefusal('no_text');
    message.text += added;
    return { channel: message.channel, ts: message.ts };
  },
  'chat.stopStream': (workspace, args) => {
    const message = openStream(workspace, args);
    message.text += markdownOf(args);
    message.blocks = blocksOf(args.blocks);
    message.stream = 'finished';
    return { channel: message.channel, ts: message.ts };
  },
  'conversations.history': (workspace, args) => {
    const { channel, oldest } = args;
    if (!workspace.channels.has(String(channel))) throw new SlackRefusal('channel_not_found');
    const found = workspace.messages.filter(
      (message) =>
        message.channel === channel &&
        (message.thread === null || message.subtype === 'thread_broadcast') &&
        isAfter(message.ts, oldest),
    );
    return page(workspace, found.toReversed(), args);
  },
  'conversations.replies': (workspace, args) => {
    const { channel, ts, oldest } = args;
    const root = workspace.find(channel, ts);
    if (root === undefined) throw new SlackRefusal('thread_not_found');
    const replies = workspace.messages.filter(
      (message) => message.channel === channel && message.thread === ts && isAfter(message.ts, oldest),
    );
    return page(workspace, [root, ...replies], args);
  },
  'reactions.add': (workspace, args) => {
    const { place, shown, name } = reactionAt(workspace, args);
    if (shown.includes(name)) throw new SlackRefusal('already_reacted');
    workspace.reactions.set(place, [...shown, name]);
    return {};
  },
  'reactions.remove': (workspace, args) => {
    const { place, shown, name } = reactionAt(workspace, args);
    if (!shown.includes(name)) throw new SlackRefusal('no_reaction');
    workspace.reactions.set(
      place,
      shown.filter((other) => other !== name),
    );
    return {};
  },
  'assistant.threads.setStatus': (workspace, args) => {
    if (workspace.find(args.channel_id, args.thread_ts) === undefined) throw new SlackRefusal('invalid_thread_ts');
    workspace.statuses.push(args);
    return {};
  },
  'assistant.threads.setSuggestedPrompts': (workspace, args) => {
    workspace.prompts.push(args);
    return {};
  },
  'files.info': (workspace, { file }, root) => {
    const found = workspace.files.get(String(file));
    if (found === undefined) throw new SlackRefusal('file_not_found');
    return { file: apiFile(found, root) };
  },
  'files.getUploadURLExternal': (workspace, { filename, length }, root) => {
    if (typeof filename !== 'string' || !Number.isSafeInteger(Number(length)))
      throw new SlackRefusal('invalid_arguments');
    const file = workspace.addFile(filename, 'application/octet-stream', new Uint8Array(), Number(length));
    return { upload_url: `${root}/upload/v1/${file.id}`, file_id: file.id };
  },
  'files.completeUploadExternal': completeUpload,
};

function startStream(workspace: SlackWorkspace, args: SlackArgs): Answer {
  const { channel, thread_ts: thread, recipient_user_id: user, recipient_team_id: team } = args;
  const place = workspace.channels.get(String(channel));
  if (place === undefined) throw new SlackRefusal('channel_not_found');
  if (workspace.find(channel, thread) === undefined) throw new SlackRefusal('invalid_thread_ts');
  if (!place.isDirect && typeof user !== 'string') throw new SlackRefusal('missing_recipient_user_id');
  if (!place.isDirect && typeof team !== 'string') throw new SlackRefusal('missing_recipient_team_id');
  const message = workspace.add({
    ...{ channel: String(channel), thread: String(thread), isBot: true, stream: 'open', text: markdownOf(args) },
  });
  return { channel, ts: message.ts };
}

function completeUpload(
  workspace: SlackWorkspace,
  { files, channel_id: channel, thread_ts: thread }: SlackArgs,
): Answer {
  const shared = (Array.isArray(files) ? files : []).map(({ id, title }: { id: string; title?: string }) => {
    const file = workspace.files.get(id);
    if (file === undefined || file.bytes.length !== file.size) throw new SlackRefusal('file_not_found');
    file.shared = true;
    return title === undefined ? file : { ...file, name: title };
  });
  if (!workspace.channels.has(String(channel))) throw new SlackRefusal('channel_not_found');
  workspace.add({
    ...{ channel: String(channel), thread: typeof thread === 'string' ? thread : null, isBot: true, files: shared },
  });
  return { files: shared.map(({ id, name }) => ({ id, title: name })) };
}

function ours(workspace: SlackWorkspace, args: SlackArgs): SlackMessage {
  const { channel, thread_ts: thread, metadata = null } = args;
  if (!workspace.channels.has(String(channel))) throw new SlackRefusal('channel_not_found');
  const isReply = typeof thread === 'string';
  if (isReply && workspace.find(channel, thread) === undefined) throw new SlackRefusal('thread_not_found');
  return {
    ...{ channel: String(channel), ts: workspace.nextTime(), thread: isReply ? thread : null },
    ...{ user: workspace.self.user, isBot: true, metadata, files: [], stream: null, edited: null },
    ...contentOf(args),
  };
}

function contentOf({ text, blocks }: SlackArgs): Pick<SlackMessage, 'text' | 'blocks'> {
  const content = { text: typeof text === 'string' ? text : '', blocks: blocksOf(blocks) };
  if (content.text === '' && content.blocks.length === 0) throw new SlackRefusal('no_text');
  if (content.blocks.length === 0 && content.text.length > 40_000) throw new SlackRefusal('msg_too_long');
  return content;
}

function blocksOf(given: unknown): readonly SlackBlock[] {
  if (given === undefined) return [];
  if (!Array.isArray(given) || given.length > MOST_BLOCKS) throw new SlackRefusal('invalid_blocks');
  const blocks = given as readonly SlackBlock[];
  if (!blocks.every(isBlock)) throw new SlackRefusal('invalid_blocks');
  const markdown = blocks.reduce((sum, { type, text }) => sum + (type === 'markdown' ? String(text).length : 0), 0);
  if (markdown > MOST_MARKDOWN) throw new SlackRefusal('msg_blocks_too_long');
  return blocks;
}

function isBlock({ type, text, elements }: SlackBlock): boolean {
  if (type === 'markdown') return typeof text === 'string' && text !== '';
  if (type === 'section') return String((text as { text?: unknown })?.text ?? '').length <= 3000;
  if (type !== 'actions' || !Array.isArray(elements) || elements.length === 0 || elements.length > 25) return false;
  const names = new Set(elements.map(({ action_id: name }: { action_id: string }) => name));
  const isButton = ({ type: kind, text: label, value }: { type: string; text: { text: string }; value: string }) =>
    kind === 'button' && label.text.length <= 75 && label.text !== '' && value.length <= 2000;
  return names.size === elements.length && elements.every(isButton);
}

function ownMessage(workspace: SlackWorkspace, { channel, ts }: SlackArgs): SlackMessage {
  const message = workspace.find(channel, ts);
  if (message === undefined) throw new SlackRefusal('message_not_found');
  if (!message.isBot) throw new SlackRefusal('cant_update_message');
  return message;
}

function openStream(workspace: SlackWorkspace, args: SlackArgs): SlackMessage {
  const message = ownMessage(workspace, args);
  if (message.stream !== 'open') throw new SlackRefusal('message_not_in_streaming_state');
  return message;
}

function markdownOf({ markdown_text: text = '' }: SlackArgs): string {
  if (typeof text !== 'string' || text.length > MOST_MARKDOWN) throw new SlackRefusal('msg_too_long');
  return text;
}

function reactionAt(workspace: SlackWorkspace, { channel, timestamp, name }: SlackArgs) {
  if (workspace.find(channel, timestamp) === undefined) throw new SlackRefusal('message_not_found');
  if (typeof name !== 'string' || !/^[a-z0-9_+-]+$/.test(name)) throw new SlackRefusal('invalid_name');
  const place = `${String(channel)}:${String(timestamp)}`;
  return { place, name, shown: workspace.reactions.get(place) ?? [] };
}

function page(workspace: SlackWorkspace, found: readonly SlackMessage[], args: SlackArgs): Answer {
  if (workspace.hides) return { messages: [], has_more: false };
  const start = Number(args.cursor ?? 0);
  const end = start + Number(args.limit ?? 100);
  const hasMore = found.length > end;
  const withMetadata = args.include_all_metadata === true || args.include_all_metadata === 'true';
  return {
    messages: found.slice(start, end).map((message) => workspace.apiMessage(message, withMetadata)),
    has_more: hasMore,
    response_metadata: { next_cursor: hasMore ? String(end) : '' },
  };
}

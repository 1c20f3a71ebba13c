import {
  type Answer,
  type Call,
  type DiscordState,
  type FakeMessage,
  type Json,
  ok,
  refusal,
} from './discord-state.ts';

const LOADING = 1 << 7;
const MOST_TEXT = 2000;
const MOST_EMBEDDED = 6000;
const MOST_TITLE = 100;

type Route = (fake: DiscordState, call: Call, ids: string[]) => Answer;

/** Routes by their method and path; numbers stand for themselves. */
const ROUTES: readonly (readonly [method: string, path: RegExp, route: Route])[] = [
  ['GET', /^\/guilds\/(\d+)\/channels$/, (fake) => ok(fake.guildWithChannels().channels)],
  [
    'GET',
    /^\/guilds\/(\d+)\/threads\/active$/,
    (fake) => ok({ threads: fake.guildWithChannels().threads, members: [] }),
  ],
  ['GET', /^\/guilds\/(\d+)\/roles$/, (fake) => ok(fake.guild.roles)],
  ['GET', /^\/channels\/(\d+)$/, readChannel],
  ['GET', /^\/channels\/(\d+)\/threads\/archived\/public$/, readArchived],
  ['POST', /^\/channels\/(\d+)\/threads$/, openThread],
  ['GET', /^\/channels\/(\d+)\/messages$/, readMessages],
  ['GET', /^\/channels\/(\d+)\/messages\/(\d+)$/, readMessage],
  ['POST', /^\/channels\/(\d+)\/messages$/, sendMessage],
  ['PATCH', /^\/channels\/(\d+)\/messages\/(\d+)$/, changeMessage],
  ['DELETE', /^\/channels\/(\d+)\/messages\/(\d+)$/, removeMessage],
  ['POST', /^\/channels\/(\d+)\/typing$/, type],
  ['PUT', /^\/channels\/(\d+)\/messages\/(\d+)\/reactions\/([^/]+)\/@me$/, react],
  ['DELETE', /^\/channels\/(\d+)\/messages\/(\d+)\/reactions\/([^/]+)\/@me$/, unreact],
  ['POST', /^\/interactions\/(\d+)\/([^/]+)\/callback$/, acknowledge],
  ['POST', /^\/webhooks\/(\d+)\/([^/]+)$/, follow],
  ['GET', /^\/webhooks\/(\d+)\/([^/]+)\/messages\/@original$/, (fake, call, ids) => original(fake, call, ids)],
  ['PATCH', /^\/webhooks\/(\d+)\/([^/]+)\/messages\/@original$/, (fake, call, ids) => original(fake, call, ids)],
  ['DELETE', /^\/webhooks\/(\d+)\/([^/]+)\/messages\/@original$/, (fake, call, ids) => original(fake, call, ids)],
];

export function handleChannels(fake: DiscordState, call: Call): Answer {
  for (const [method, path, route] of ROUTES) {
    const found = path.exec(call.path);
    if (method === call.method && found !== null) return route(fake, call, found.slice(1));
  }
  return refusal(404, 0, '404: Not Found');
}

function channelIn(fake: DiscordState, id: string | undefined): Json | null {
  return fake.channels.get(id ?? '') ?? null;
}

function readChannel(fake: DiscordState, _: Call, [id]: string[]): Answer {
  const channel = channelIn(fake, id);
  return channel === null ? refusal(404, 10003, 'Unknown Channel') : ok(channel);
}

function readArchived(fake: DiscordState, _: Call, [id]: string[]): Answer {
  const threads = [...fake.channels.values()].filter((channel) => {
    return channel.parent_id === id && (channel.thread_metadata as Json | undefined)?.archived === true;
  });
  return ok({ threads, members: [], has_more: false });
}

function readMessages(fake: DiscordState, { query }: Call, [id = '']: string[]): Answer {
  if (channelIn(fake, id) === null) return refusal(404, 10003, 'Unknown Channel');
  const after = BigInt(query.get('after') ?? '0');
  const limit = Number(query.get('limit') ?? '50');
  const behind = fake.historyOf(id).filter((message) => BigInt(message.id) > after);
  // The ones directly behind it, the newest of them first.
  return ok(behind.slice(0, limit).reverse());
}

function readMessage(fake: DiscordState, _: Call, [channel = '', id]: string[]): Answer {
  const message = fake.historyOf(channel).find((each) => each.id === id);
  return message === undefined ? refusal(404, 10008, 'Unknown Message') : ok(message);
}

/** What is wrong with a message that is sent or changed. */
function objection(body: Json, files: number): Answer | null {
  const {
    content = '',
    embeds = [],
    allowed_mentions,
  } = body as { content?: string; embeds?: Json[]; allowed_mentions?: Json };
  if (JSON.stringify(allowed_mentions) !== '{"parse":[]}') return refusal(400, 50035, 'mentions are not switched off');
  if ([...content].length > MOST_TEXT) {
    const errors = {
      content: { _errors: [{ code: 'BASE_TYPE_MAX_LENGTH', message: 'Must be 2000 or fewer in length.' }] },
    };
    return refusal(400, 50035, 'Invalid Form Body', { errors });
  }
  const embedded = embeds.reduce(
    (sum, each) => sum + [...String(each.description)].length + String(each.title).length,
    0,
  );
  if (embedded > MOST_EMBEDDED) return refusal(400, 50035, 'Invalid Form Body: embeds');
  if (content.trim() === '' && embeds.length === 0 && files === 0)
    return refusal(400, 50006, 'Cannot send an empty message');
  return null;
}

function sendMessage(fake: DiscordState, { body, files }: Call, [id = '']: string[]): Answer {
  const channel = channelIn(fake, id);
  if (channel === null) return refusal(404, 10003, 'Unknown Channel');
  if (channel.type === 15) return refusal(400, 50008, 'Cannot send messages in a non-text channel');
  const wrong = objection(body, files.length);
  if (wrong !== null) return wrong;
  const state = channel.thread_metadata as { archived: boolean; locked: boolean } | undefined;
  if (state?.locked) return refusal(403, 160005, 'Thread is locked');
  if (state?.archived) {
    state.archived = false;
    fake.gateway.dispatch('THREAD_UPDATE', channel);
  }
  const before = body.enforce_nonce === true ? fake.knownBy(id, body.nonce) : null;
  if (before !== null) return ok(before);
  const made = ours(fake, id, body, files);
  fake.noteNonce(made, body.nonce);
  return ok(made);
}

function ours(fake: DiscordState, id: string, body: Json, files: Call['files'], fields: Json = {}): FakeMessage {
  const reference = body.message_reference as { message_id: string } | undefined;
  const answered = fake.historyOf(id).find((each) => each.id === reference?.message_id);
  const made = fake.say(id, fake.self, {
    ...{ content: body.content ?? '', embeds: body.embeds ?? [], components: body.components ?? [], nonce: body.nonce },
    attachments: files.map(({ name, bytes }) => attachmentOf(fake, id, name, bytes)),
    ...(answered === undefined ? {} : { type: 19, message_reference: reference, referenced_message: answered }),
    ...fields,
  });
  fake.onTaken?.();
  return made;
}

/** A file as the server keeps it. */
export function attachmentOf(
  fake: DiscordState,
  channel: string,
  name: string,
  bytes: Uint8Array,
  type?: string,
): Json {
  const id = fake.nextId();
  const path = `/attachments/${channel}/${id}/${encodeURIComponent(name)}`;
  fake.files.set(path, bytes);
  const url = `https://cdn.discordapp.com${path}?ex=6900&is=6800&hm=abc`;
  return {
    id,
    filename: name,
    size: bytes.length,
    url,
    proxy_url: url,
    content_type: type ?? 'application/octet-stream',
  };
}

function changeMessage(fake: DiscordState, { body }: Call, [channel = '', id]: string[]): Answer {
  const message = fake.historyOf(channel).find((each) => each.id === id);
  if (message === undefined) return refusal(404, 10008, 'Unknown Message');
  const state = channelIn(fake, channel)?.thread_metadata as { archived: boolean } | undefined;
  if (state?.archived) return refusal(400, 50083, 'Thread is archived');
  const wrong = objection(body, (message.attachments as unknown[]).length);
  if (wrong !== null) return wrong;
  Object.assign(message, body, { edited_timestamp: new Date().toISOString() });
  fake.gateway.dispatch('MESSAGE_UPDATE', message);
  fake.onTaken?.();
  return ok(message);
}

function removeMessage(fake: DiscordState, _: Call, [channel = '', id = '']: string[]): Answer {
  const history = fake.historyOf(channel);
  const at = history.findIndex((each) => each.id === id);
  if (at < 0) return refusal(404, 10008, 'Unknown Message');
  history.splice(at, 1);
  fake.gateway.dispatch('MESSAGE_DELETE', { id, channel_id: channel });
  return ok();
}

function type(fake: DiscordState): Answer {
  fake.typings += 1;
  return ok();
}

function react(fake: DiscordState, _: Call, [channel = '', id = '', emoji = '']: string[]): Answer {
  if (!fake.historyOf(channel).some((each) => each.id === id)) return refusal(404, 10008, 'Unknown Message');
  const before = fake.reactions.get(id) ?? [];
  const name = decodeURIComponent(emoji);
  fake.reactions.set(id, before.includes(name) ? before : [...before, name]);
  const about = { user_id: fake.self.id, channel_id: channel, message_id: id, emoji: { id: null, name } };
  fake.gateway.dispatch('MESSAGE_REACTION_ADD', about);
  return ok();
}

function unreact(fake: DiscordState, _: Call, [, id = '', emoji = '']: string[]): Answer {
  const before = fake.reactions.get(id) ?? [];
  const name = decodeURIComponent(emoji);
  if (!before.includes(name)) return refusal(404, 10014, 'Unknown Emoji');
  fake.reactions.set(
    id,
    before.filter((each) => each !== name),
  );
  return ok();
}

function openThread(fake: DiscordState, { body, files }: Call, [id = '']: string[]): Answer {
  const forum = channelIn(fake, id);
  if (forum === null) return refusal(404, 10003, 'Unknown Channel');
  const tags = body.applied_tags as string[];
  const { length } = [...String(body.name ?? '')];
  if (length < 1 || length > MOST_TITLE) return refusal(400, 50035, 'Invalid Form Body: name');
  if (forum.flags === 1 << 4 && tags.length === 0)
    return refusal(400, 40067, 'A tag is required to create a forum post');
  const wrong = objection(body.message as Json, files.length);
  if (wrong !== null) return wrong;
  const thread: Json = {
    ...{ id: fake.nextId(), type: 11, guild_id: forum.guild_id, parent_id: id, name: body.name, applied_tags: tags },
    ...{ owner_id: fake.self.id, thread_metadata: { archived: false, locked: false }, last_message_id: null },
  };
  fake.channels.set(thread.id as string, thread);
  fake.gateway.dispatch('THREAD_CREATE', { ...thread, newly_created: true });
  // The first message of a post has the number of the post.
  const message = ours(fake, thread.id as string, body.message as Json, files, { id: thread.id });
  return { status: 201, body: { ...thread, message } };
}

function acknowledge(fake: DiscordState, { body, at }: Call, [id = '', token]: string[]): Answer {
  const interaction = fake.interactions.get(id);
  if (interaction === undefined || interaction.token !== token) return refusal(404, 10062, 'Unknown interaction');
  if (interaction.acknowledgedAt !== null) return refusal(400, 40060, 'Interaction has already been acknowledged.');
  interaction.acknowledgedAt = at;
  interaction.callbacks.push(body.type as number);
  if (body.type === 5) {
    const about = { type: 20, flags: LOADING, webhook_id: fake.application.id, application_id: fake.application.id };
    interaction.original = fake.say(interaction.channel, fake.self, about);
  }
  return ok();
}

function byToken(fake: DiscordState, token: string | undefined) {
  return [...fake.interactions.values()].find((each) => each.token === token && each.acknowledgedAt !== null) ?? null;
}

function follow(fake: DiscordState, { body }: Call, [, token]: string[]): Answer {
  const interaction = byToken(fake, token);
  if (interaction === null) return refusal(404, 10015, 'Unknown Webhook');
  if (body.flags === 64) interaction.shown = String(body.content);
  return ok({ id: fake.nextId() });
}

function original(fake: DiscordState, { method, body, files }: Call, [, token]: string[]): Answer {
  const interaction = byToken(fake, token);
  const message = interaction?.original ?? null;
  if (interaction === null || message === null) return refusal(404, 10015, 'Unknown Webhook');
  if (method === 'GET') return ok(message);
  if (method === 'DELETE') {
    const history = fake.historyOf(message.channel_id);
    history.splice(history.indexOf(message), 1);
    interaction.original = null;
    return ok();
  }
  const wrong = objection(body, files.length);
  if (wrong !== null) return wrong;
  const attachments = files.map(({ name, bytes }) => attachmentOf(fake, message.channel_id, name, bytes));
  Object.assign(message, body, { flags: 0, attachments });
  fake.onTaken?.();
  return ok(message);
}

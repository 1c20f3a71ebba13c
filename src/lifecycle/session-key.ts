import { badKey, checkPart, escapePart, quote, unescapePart } from './key-parts.ts';

/** What kind of place a conversation is. */
export const CONVERSATION_TYPES = ['dm', 'group', 'channel', 'thread'] as const;

export type ConversationType = (typeof CONVERSATION_TYPES)[number];

/** Where people talk. A part that is missing is left out; a part that is present is never empty. */
export interface Conversation {
  readonly profile: string;
  readonly platform: string;
  /** Which of several accounts of the platform; left out for the one that has no name. */
  readonly account?: string;
  readonly type: ConversationType;
  /** A Slack workspace, a Discord guild: what chat ids are unique in. */
  readonly scope?: string;
  readonly chat?: string;
  readonly thread?: string;
  readonly participant?: string;
}

/** What a platform knows about where a message came from; `keyFor` decides which of it names the conversation. */
export interface KeySource extends Tail, Pick<Conversation, 'platform' | 'type'> {
  /** `main` unless given. */
  readonly profile?: string | undefined;
  readonly account?: string | undefined;
}

/** Who shares a session: `sessions.group_per_user` and `sessions.thread_per_user` of the configuration. */
export interface KeyRules {
  readonly groupPerUser: boolean;
  readonly threadPerUser: boolean;
}

const TAIL = ['scope', 'chat', 'thread', 'participant'] as const;

type TailPart = (typeof TAIL)[number];
type Tail = { readonly [P in TailPart]?: string | undefined };
type Layout = readonly TailPart[];

const BY_THREAD: readonly Layout[] = [[], ['chat'], ['chat', 'thread'], ['scope', 'chat', 'thread'], TAIL];
const BY_PARTICIPANT: readonly Layout[] = [
  [],
  ['chat'],
  ['chat', 'participant'],
  ['scope', 'chat', 'participant'],
  TAIL,
];

/** Indexed by the number of tail parts, so that the number alone tells what each part is. */
const LAYOUTS: Readonly<Record<ConversationType, readonly Layout[]>> = {
  dm: BY_THREAD,
  group: BY_PARTICIPANT,
  channel: BY_PARTICIPANT,
  thread: BY_THREAD,
};

const SCOPED_BY_THREAD: readonly Layout[] = [[], ['chat'], ['scope', 'chat'], ['scope', 'chat', 'thread'], TAIL];
const SCOPED_BY_PARTICIPANT: readonly Layout[] = [
  [],
  ['chat'],
  ['scope', 'chat'],
  ['scope', 'chat', 'participant'],
  TAIL,
];
const SCOPED_LAYOUTS: typeof LAYOUTS = {
  dm: SCOPED_BY_THREAD,
  group: SCOPED_BY_PARTICIPANT,
  channel: SCOPED_BY_PARTICIPANT,
  thread: SCOPED_BY_THREAD,
};

/** Where the ids of chats mean nothing without their scope, so that keys begin with it. */
const SCOPED: Readonly<Record<string, readonly ConversationType[]>> = {
  discord: ['channel', 'thread'],
  qq: ['channel'],
  slack: CONVERSATION_TYPES,
  whatsapp: ['dm'],
};

const MAX_KEY = 1024;
const DEFAULT_PROFILE = 'main';
const PLATFORM = /^[a-z][a-z0-9_-]*$/;
const ACCOUNT = /^[a-z0-9][a-z0-9_-]{0,31}$/;

/**
 * The session key of a conversation: `agent:<profile>:<platform>:<type>` and then its tail, each part with `%` written
 * as `%25` and `:` as `%3A`. An account that has a name follows its platform: `telegram@work`. `parseKey` gives the same
 * conversation back, and no two conversations share a key.
 *
 * The platform, the type and the number of tail parts say what the parts are. A conversation takes the first row of its
 * column that has a place for all it has; a place it does not fill stays empty, which no written part can be. The columns
 * that begin with a scope are for channels and threads of Discord, channels of QQ, direct chats of WhatsApp, and Slack.
 *
 * | parts | `dm`, `thread` | `group`, `channel` | scoped `dm`, `thread` | scoped `group`, `channel` |
 * |---|---|---|---|---|
 * | 0 | | | | |
 * | 1 | chat | chat | chat | chat |
 * | 2 | chat:thread | chat:participant | scope:chat | scope:chat |
 * | 3 | scope:chat:thread | scope:chat:participant | scope:chat:thread | scope:chat:participant |
 * | 4 | scope:chat:thread:participant | the same | the same | the same |
 *
 * | conversation | key |
 * |---|---|
 * | direct chat 42 | `agent:main:telegram:dm:42` |
 * | direct chat 42 of the account `work` | `agent:main:telegram@work:dm:42` |
 * | topic 5 of direct chat 42 | `agent:main:telegram:dm:42:5` |
 * | direct chat D1 of workspace T1 | `agent:main:slack:dm:T1:D1` |
 * | thread 1.2 of direct chat D1 of T1 | `agent:main:slack:dm:T1:D1:1.2` |
 * | group 7, shared | `agent:main:telegram:group:7` |
 * | group 7, participant 9 | `agent:main:telegram:group:7:9` |
 * | channel C1 of guild G1, participant U1 | `agent:main:discord:channel:G1:C1:U1` |
 * | channel C1 of guild G1, shared | `agent:main:discord:channel:G1:C1` |
 * | thread 5 of group 7, shared | `agent:main:telegram:thread:7:5` |
 * | thread 5 of group 7, participant 9 | `agent:main:telegram:thread::7:5:9` |
 * | thread 5 of channel C1 of guild G1 | `agent:main:discord:thread:G1:C1:5` |
 * | the same, participant U1 | `agent:main:discord:thread:G1:C1:5:U1` |
 *
 * Throws `bad_key` for a part that is empty, over 256 characters, a path that leads out (`..`, a leading separator, a
 * drive), or has control, bidirectional or unpaired characters; for a platform that is not lower-case
 * `[a-z][a-z0-9_-]*`, or an account that is not; and for a key over 1024 characters.
 */
export function buildKey(conversation: Conversation): string {
  checkHead(conversation.profile, platformName(conversation), conversation.type);
  checkTail(conversation);
  const key = writeKey(conversation);
  checkLength(key);
  return key;
}

/**
 * The conversation a session key names; the inverse of `buildKey`. Only keys that `buildKey` writes are accepted, so
 * `buildKey(parseKey(key)) === key`; all others throw `bad_key` with what is wrong and in which part.
 */
export function parseKey(key: string): Conversation {
  const known = parsed.get(key);
  if (known !== undefined) return known;
  const conversation = parse(key);
  if (parsed.size >= MAX_PARSED) parsed.clear();
  parsed.set(key, conversation);
  return conversation;
}

/** Whether several people talk in the conversation of a key: it is no direct chat, and no participant is in the key. */
export function isSharedKey(key: string): boolean {
  const { type, participant } = parseKey(key);
  return type !== 'dm' && participant === undefined;
}

// A message asks half a dozen times for the parts of its key, and so does the next one of the same conversation.
const parsed = new Map<string, Conversation>();
const MAX_PARSED = 1000;

function parse(key: string): Conversation {
  if (typeof key !== 'string') throw badKey(`a session key is text, not ${typeof key}`);
  checkLength(key);
  const [agent, profile, platform, type, ...tail] = key.split(':');
  if (agent !== 'agent') throw badKey(`a session key begins with agent:, not with ${quote(agent)}`);
  if (profile === undefined || platform === undefined || type === undefined) {
    throw badKey(
      `${quote(key)} lacks its ${profile === undefined ? 'profile' : platform === undefined ? 'platform' : 'type'}`,
    );
  }
  const head = checkHead(unescapePart('profile', profile), platform, type);
  const conversation: Conversation = { ...head, ...readTail(head, tail) };
  checkTail(conversation);
  checkShortest(conversation, tail.length);
  return Object.freeze(conversation);
}

/** Throws `bad_key` unless the value is a session key that `parseKey` accepts. */
export function assertKey(key: unknown): asserts key is string {
  parseKey(key as string);
}

/**
 * The key of the conversation a message belongs to. Groups and channels are per participant unless `groupPerUser` is
 * false; threads, also threads inside a group or channel, are shared unless `threadPerUser`; a direct chat never
 * carries a participant, but takes the participant as its chat when the platform gives no chat.
 *
 * Throws `bad_key` as `buildKey` does, and when nothing tells the place from others of the platform: such a key would
 * put strangers into one session.
 */
export function keyFor(source: KeySource, rules: KeyRules): string {
  const { platform, account, type, scope, thread } = source;
  const chat = source.chat ?? (type === 'dm' ? source.participant : undefined);
  if (chat === undefined && (type !== 'thread' || thread === undefined)) {
    throw badKey(`a ${quote(type)} of ${quote(platform)} names no chat, so it cannot be told from others`);
  }
  const participant = isPerParticipant(source, rules) ? source.participant : undefined;
  const profile = source.profile ?? DEFAULT_PROFILE;
  const named = account === undefined ? {} : { account };
  return buildKey({ profile, platform, ...named, type, ...present({ scope, chat, thread, participant }) });
}

/** An account of a platform by one name: `telegram`, `telegram@work`. */
export function platformName({ platform, account }: Pick<Conversation, 'platform' | 'account'>): string {
  return account === undefined ? platform : `${platform}@${account}`;
}

/** The inverse of `platformName`. */
export function splitPlatformName(name: string): Pick<Conversation, 'platform' | 'account'> {
  const at = name.indexOf('@');
  return at < 0 ? { platform: name } : { platform: name.slice(0, at), account: name.slice(at + 1) };
}

/** True for what an account may be called. */
export function isAccountName(name: string): boolean {
  return ACCOUNT.test(name);
}

/** True for what a platform may be called in a key: lower-case letters, digits, `_` and `-`, a letter first. */
export function isPlatformName(name: string): boolean {
  return PLATFORM.test(name);
}

function isPerParticipant(source: KeySource, rules: KeyRules): boolean {
  if (source.type === 'dm') return false;
  const inThread = source.type === 'thread' || source.thread !== undefined;
  return inThread ? rules.threadPerUser : rules.groupPerUser;
}

function present(tail: Tail): Partial<Record<TailPart, string>> {
  const parts: Partial<Record<TailPart, string>> = {};
  for (const part of TAIL) {
    const value = tail[part];
    if (value !== undefined) parts[part] = value;
  }
  return parts;
}

function writeKey(conversation: Conversation): string {
  let key = `agent:${escapePart(conversation.profile)}:${platformName(conversation)}:${conversation.type}`;
  for (const part of shortestLayout(conversation)) key += `:${escapePart(conversation[part] ?? '')}`;
  return key;
}

type Head = Pick<Conversation, 'profile' | 'platform' | 'account' | 'type'>;

function layoutsOf({ platform, type }: Pick<Head, 'platform' | 'type'>): readonly Layout[] {
  const isScoped = Object.hasOwn(SCOPED, platform) && SCOPED[platform]?.includes(type);
  return (isScoped ? SCOPED_LAYOUTS : LAYOUTS)[type];
}

function readTail(head: Head, written: readonly string[]): Partial<Record<TailPart, string>> {
  const layout = layoutsOf(head)[written.length];
  if (layout === undefined) throw badKey(`${written.length} parts follow the type, at most 4 may`);
  const tail: Partial<Record<TailPart, string>> = {};
  layout.forEach((part, index) => {
    const text = written[index];
    if (text) tail[part] = unescapePart(part, text);
  });
  return tail;
}

function shortestLayout(conversation: Conversation): Layout {
  const holdsAll = (layout: Layout) => TAIL.every((part) => conversation[part] === undefined || layout.includes(part));
  return layoutsOf(conversation).find(holdsAll) ?? TAIL;
}

function checkShortest(conversation: Conversation, length: number): void {
  if (shortestLayout(conversation).length === length) return;
  throw badKey(`the empty parts are not needed; the key of this conversation is ${quote(writeKey(conversation))}`);
}

function checkHead(profile: string, name: string, type: string): Head {
  checkPart('profile', profile);
  checkPart('platform', name);
  const { platform, account } = splitPlatformName(name);
  if (!isPlatformName(platform)) throw badKey(`platform ${quote(platform)} is not lower-case letters, digits, _ and -`);
  if (account !== undefined && !isAccountName(account)) {
    throw badKey(`account ${quote(account)} is not up to 32 lower-case letters, digits, _ and -`);
  }
  const known = CONVERSATION_TYPES.find((candidate) => candidate === type);
  if (known === undefined) throw badKey(`type ${quote(type)} is none of ${CONVERSATION_TYPES.join(', ')}`);
  return { profile, platform, ...(account === undefined ? {} : { account }), type: known };
}

function checkTail(tail: Tail): void {
  for (const part of TAIL) {
    const value = tail[part];
    if (value !== undefined) checkPart(part, value);
  }
}

function checkLength(key: string): void {
  if (key.length > MAX_KEY) throw badKey(`the key has ${key.length} characters, at most ${MAX_KEY} may be`);
}

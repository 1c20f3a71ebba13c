import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import type { Session } from '../lifecycle/session.ts';
import { isSharedKey, keyFor, splitPlatformName } from '../lifecycle/session-key.ts';
import type { Logger } from '../log/logger.ts';
import type { Places } from '../outbound/places.ts';
import { keyOfPart } from '../outbound/reply-shape.ts';
import { type Access, type Requester, requesterOf } from '../people/access.ts';
import { ANSWERED_TEXTS, readApprovalButton } from '../people/approval-texts.ts';
import type { Approvals } from '../people/approvals.ts';
import { offerCode, pairingText } from '../people/pairing.ts';
import { abilitiesAt, measureAt } from '../platforms/abilities.ts';
import { sanitize } from '../platforms/outside-text.ts';
import type {
  Inbox,
  Incoming,
  Place,
  Platform,
  PlatformEvent,
  Press,
  ReplyContext,
  Submission,
  SubmissionReceipt,
} from '../platforms/platform.ts';
import { chatSettings } from '../platforms/registry.ts';
import { splitText } from '../platforms/split-text.ts';
import type { ConversationRef } from '../store/transactions/conversations.ts';
import type { Conversations, ReceiveResult } from '../turns/conversations.ts';
import { failureText, NOT_ANSWERED } from '../turns/texts.ts';
import { LONGEST_MESSAGE, messageText } from './message-text.ts';
import { followMovedChat } from './moved-chat.ts';
import { recordPlatformEvent } from './platform-events.ts';
import { turnFilesOf } from './received-files.ts';
import type { Submissions } from './submissions.ts';

export interface ReceptionDeps {
  readonly config: Config;
  readonly engine: Engine;
  readonly conversations: Conversations;
  readonly access: Access;
  readonly approvals: Approvals;
  readonly places: Places;
  readonly log: Logger;
  readonly submissions: Submissions;
}

/** What else a person may write within this long belongs to the same message. */
export const SETTLE_MS = 600;
/** A client that splits a long text sends the next piece a little later. */
export const SPLIT_SETTLE_MS = 2000;
const SPLIT_AT = 3500;
export const ALBUM_SETTLE_MS = 800;
const SEND_MS = 30_000;
/** What fails so often without a reason that could pass is not taken at all. */
const MOST_FAILURES = 3;

/** Where the messages of one platform come in: who may talk is let through, and what is said is made durable. */
export class Reception implements Inbox {
  readonly #platform: Platform;
  readonly #deps: ReceptionDeps;
  readonly changed: () => void;
  /** How often the same message failed. */
  readonly #failures = new Map<string, number>();

  constructor(platform: Platform, deps: ReceptionDeps, changed: () => void) {
    this.#platform = platform;
    this.#deps = deps;
    this.changed = changed;
  }

  async receive(message: Incoming, unanswered?: () => void): Promise<void> {
    try {
      const isHeard = await this.#receive(message);
      this.#failures.delete(message.id);
      if (!isHeard) unanswered?.();
    } catch (thrown) {
      const error = MoiraiError.wrap(thrown);
      if (!this.#isHopeless(message.id, error)) throw thrown;
      await this.#setAside(message, error);
    }
  }

  /** What is wrong with the message itself is wrong each time it is brought; anything else may pass, for a while. */
  #isHopeless(id: string, error: MoiraiError): boolean {
    if (error.code === 'bad_input') return true;
    if (error.code !== 'internal') return false;
    const failures = (this.#failures.get(id) ?? 0) + 1;
    this.#failures.set(id, failures);
    return failures >= MOST_FAILURES;
  }

  /** Its platform may acknowledge it: otherwise it would come for ever, and in the end keep everybody out. */
  async #setAside(message: Incoming, error: MoiraiError): Promise<void> {
    const { id } = message;
    const { engine, log } = this.#deps;
    const attempts = this.#failures.get(id) ?? 1;
    this.#failures.delete(id);
    log.warn('a message was passed over', { platform: this.#platform.name, attempts, error });
    await engine.announce({ type: 'work:set_aside', fields: { work: 'turn', id, attempts, error: error.message } });
    await this.#sendNow(message, failureText(error.code, error.message));
  }

  /** False where nothing will be said to it. */
  async #receive(message: Incoming): Promise<boolean> {
    const { places } = this.#deps;
    const known = await places.known(this.#platform.name, message.place);
    const conversation = this.#conversationOf(message, known);
    if (conversation === null) return false;
    const requester = requesterOf(this.#platform.name, message.from, message.place);
    if (!(await this.#admits(requester))) return this.#turnAway(message);
    if (!this.#isForUs(message)) return false;
    if (message.text.length > LONGEST_MESSAGE) {
      throw new MoiraiError('bad_input', `a message has at most ${LONGEST_MESSAGE} characters`);
    }
    await this.#deps.places.seen(this.#platform.name, message.place);
    await this.#take(message, conversation, requester);
    return true;
  }

  async press({ from, place, data }: Press): Promise<string | null> {
    const { access, approvals } = this.#deps;
    const requester = requesterOf(this.#platform.name, from, place);
    if (!(await this.#admits(requester))) return 'You may not do that.';
    const pressed = readApprovalButton(data);
    if (pressed === null) return null;
    const outcome = await approvals.answerById(pressed.id, pressed.decision, await access.answerer(requester));
    if (outcome === 'not yours' || outcome === 'admins only') return NOT_ANSWERED[outcome];
    if (outcome === null) return 'This is over.';
    return `${ANSWERED_TEXTS[pressed.decision]}.`;
  }

  /** Null for what has no place a conversation could be made of; it can never be taken, so it is done with. */
  #conversationOf({ place, from }: Incoming, known: Place): ConversationRef | null {
    const { sessions } = this.#deps.config;
    const { name } = this.#platform;
    try {
      const { type, chat, scope, thread } = known;
      const source = {
        ...splitPlatformName(name),
        ...{ type, chat },
        ...(scope === undefined ? {} : { scope }),
        ...(thread === undefined ? {} : { thread }),
        ...(from.id === null ? {} : { participant: from.id }),
      };
      const key = keyFor(source, sessions);
      const origin = { ...sanitized(place) };
      return { key, kind: 'chat', platform: source.platform, userId: from.id, origin, attached: false };
    } catch (thrown) {
      if (!hasCode(thrown, 'bad_key')) throw thrown;
      this.#deps.log.warn('a message from nowhere was dropped', { platform: name, error: thrown });
      return null;
    }
  }

  moved(from: string, to: string): Promise<void> {
    return followMovedChat(this.#platform.name, from, to, this.#deps);
  }

  async happened(event: PlatformEvent): Promise<void> {
    await recordPlatformEvent(event, this.#platform, this.#deps, (id) => this.#refOf(id));
  }

  submit(submission: Submission): Promise<SubmissionReceipt> {
    return this.#deps.submissions.submit(submission);
  }

  /** By any of the ids that the chat has had. */
  async #admits(requester: Requester): Promise<boolean> {
    const { access, places } = this.#deps;
    const { place } = requester;
    for (const chat of await places.idsOf(this.#platform.name, place)) {
      if (await access.admits({ ...requester, place: { ...place, chat } })) return true;
    }
    return false;
  }

  /** A stranger gets one code and nothing else, and only where nobody else reads it. Returns whether they got it now. */
  async #turnAway(message: Incoming): Promise<boolean> {
    const { from, place } = message;
    const { config, engine, log } = this.#deps;
    const { name } = this.#platform;
    log.info('somebody unknown was turned away', { platform: name, user: from.id });
    if (!config.access.pairing || place.type !== 'dm' || from.id === null || from.bot) return false;
    const shownName = from.name === null ? null : sanitize(from.name);
    const { platform } = splitPlatformName(name);
    const code = await offerCode(engine.store, { platform, userId: from.id, name: shownName });
    if (code !== null) await this.#sendNow(message, pairingText(platform, code));
    return code !== null;
  }

  #isForUs({ place, addressed, text }: Incoming): boolean {
    if (place.type === 'dm' || addressed) return true;
    const { requireMention, wakeWords } = chatSettings(this.#deps.config, this.#platform.name);
    if (!requireMention) return true;
    const said = text.toLowerCase();
    return wakeWords.some((word) => said.includes(word.toLowerCase()));
  }

  async #take(message: Incoming, conversation: ConversationRef, requester: Requester): Promise<void> {
    const { conversations, access } = this.#deps;
    const text = messageText(message, isSharedKey(conversation.key));
    // An agent that is addressed by name in front of a command still gets the command; everything else is text.
    const command = message.text.trimStart().startsWith('/') && !message.edited && message.files.length === 0;
    const result = await conversations.receive({
      ...{ conversation, text: command ? message.text : text, originRef: this.#refOf(message.id) },
      reply: { ...replyTo(message) },
      userName: message.from.name === null ? null : sanitize(message.from.name),
      ...(command
        ? { mayRun: (spec) => access.refusal(spec, requester), by: await access.answerer(requester) }
        : { verbatim: true }),
      ...(message.files.length === 0 ? {} : { files: turnFilesOf(this.#platform.name, message.files) }),
      settleMs: settleTime(message),
    });
    await this.#answer(message, result);
    const session = result.type === 'answer' ? result.session : result.received.session;
    if (session !== null) await this.#releaseHeld(message, session);
  }

  /** Where only answers are taken: they have written, so that what waited for it can be sent. */
  async #releaseHeld(message: Incoming, { id: sessionId, key: sessionKey }: Session): Promise<void> {
    if (abilitiesAt(this.#platform, message.place).needsReply !== 'window') return;
    const { engine } = this.#deps;
    const platform = this.#platform.name;
    if ((await engine.store.read('countHeld', { platform, sessionKey })) === 0) return;
    const reply = { ...replyTo(message) };
    await engine.store.write('releaseHeld', { context: engine.commandContext(), sessionId, platform, reply });
  }

  /** What a command says goes to where it was given. */
  async #answer(message: Incoming, result: ReceiveResult): Promise<void> {
    const { place } = message;
    if (result.type !== 'answer' || result.text === '') return;
    if (result.session === null) return this.#sendNow(message, result.text);
    const { engine } = this.#deps;
    const deliveries = [
      {
        id: `${this.#refOf(message.id)}:answer`,
        platform: this.#platform.name,
        target: { ...sanitized(place) },
        text: result.text,
        shape: { reply: replyTo(message) },
      },
    ];
    await engine.store.write('addDeliveries', {
      context: engine.commandContext(),
      sessionId: result.session.id,
      deliveries,
    });
  }

  /** Ids are a platform's own: those of two platforms, or of two accounts of one, may be the same. */
  #refOf(id: string): string {
    const { name } = this.#platform;
    return id.startsWith(`${name}:`) ? id : `${name}:${id}`;
  }

  /** Where there is no session to keep it with. Once: a stranger is not worth more. */
  async #sendNow(message: Incoming, text: string): Promise<void> {
    const { place } = message;
    const key = `${this.#refOf(message.id)}:answer`;
    const signal = AbortSignal.timeout(SEND_MS);
    try {
      for (const [i, part] of splitText(text, measureAt(this.#platform, place)).entries()) {
        await this.#platform.send(place, { text: part, key: keyOfPart(i, key), reply: replyTo(message) }, signal);
      }
    } catch (thrown) {
      const error = MoiraiError.wrap(thrown);
      this.#deps.log.warn('answer outside of any session not sent', { place: place.chat, error });
    }
  }
}

/** The message as far as answers to it need it. */
function replyTo({ messageId, reply }: Incoming): ReplyContext {
  return { messageId, data: reply?.data ?? {}, until: reply?.until ?? null };
}

function settleTime({ group, text }: Incoming): number {
  if (group !== null) return ALBUM_SETTLE_MS;
  return text.length >= SPLIT_AT ? SPLIT_SETTLE_MS : SETTLE_MS;
}

function sanitized(place: Place): Place {
  return place.name === undefined ? place : { ...place, name: sanitize(place.name) };
}

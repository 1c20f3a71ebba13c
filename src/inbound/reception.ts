import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { keyFor, parseKey } from '../lifecycle/session-key.ts';
import type { Logger } from '../log/logger.ts';
import type { Places } from '../outbound/places.ts';
import { type Access, type Requester, requesterOf } from '../people/access.ts';
import { ANSWERED_TEXTS, readApprovalButton } from '../people/approval-texts.ts';
import type { Approvals } from '../people/approvals.ts';
import { offerCode, pairingText } from '../people/pairing.ts';
import { sanitize } from '../platforms/outside-text.ts';
import type { Inbox, Incoming, Place, Platform, Press } from '../platforms/platform.ts';
import { chatSettings } from '../platforms/registry.ts';
import type { ConversationRef } from '../store/transactions/conversations.ts';
import type { Conversations, ReceiveResult } from '../turns/conversations.ts';
import { failureText, NOT_ANSWERED } from '../turns/texts.ts';
import { messageText } from './message-text.ts';
import { turnFilesOf } from './received-files.ts';

export interface ReceptionDeps {
  readonly config: Config;
  readonly engine: Engine;
  readonly conversations: Conversations;
  readonly access: Access;
  readonly approvals: Approvals;
  readonly places: Places;
  readonly log: Logger;
  /** A message was taken: its turn begins soon. */
  readonly taken: (message: Incoming, turnId: string) => void;
}

/** What else a person may write within this long belongs to the same message. */
const SETTLE_MS = 600;
/** A client that splits a long text sends the next piece a little later. */
const SPLIT_SETTLE_MS = 2000;
const SPLIT_AT = 3500;
const ALBUM_SETTLE_MS = 800;
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

  async receive(message: Incoming): Promise<void> {
    try {
      await this.#receive(message);
      this.#failures.delete(message.id);
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

  /** Taken as far as its platform is concerned: otherwise it would come for ever, and in the end keep everybody out. */
  async #setAside({ id, place }: Incoming, error: MoiraiError): Promise<void> {
    const { engine, log } = this.#deps;
    const attempts = this.#failures.get(id) ?? 1;
    this.#failures.delete(id);
    log.warn('a message was passed over', { platform: this.#platform.name, attempts, error });
    await engine.announce({ type: 'work:set_aside', fields: { work: 'turn', id, attempts, error: error.message } });
    await this.#sendNow(place, failureText(error.code, error.message));
  }

  async #receive(message: Incoming): Promise<void> {
    const conversation = this.#conversationOf(message);
    if (conversation === null) return;
    const requester = requesterOf(this.#platform.name, message.from, message.place);
    if (!(await this.#deps.access.admits(requester))) return this.#turnAway(message);
    if (!this.#isForUs(message)) return;
    await this.#deps.places.seen(this.#platform.name, message.place);
    await this.#take(message, conversation, requester);
  }

  async press({ from, place, data }: Press): Promise<string | null> {
    const { access, approvals } = this.#deps;
    const requester = requesterOf(this.#platform.name, from, place);
    if (!(await access.admits(requester))) return 'You may not do that.';
    const pressed = readApprovalButton(data);
    if (pressed === null) return null;
    const outcome = await approvals.answerById(pressed.id, pressed.decision, await access.answerer(requester));
    if (outcome === 'not yours' || outcome === 'admins only') return NOT_ANSWERED[outcome];
    if (outcome === null) return 'This is over.';
    return `${ANSWERED_TEXTS[pressed.decision]}.`;
  }

  /** Null for what has no place a conversation could be made of; it can never be taken, so it is done with. */
  #conversationOf({ place, from }: Incoming): ConversationRef | null {
    const { sessions } = this.#deps.config;
    const { name } = this.#platform;
    try {
      const { type, chat, scope, thread } = place;
      const source = {
        ...{ platform: name, type, chat },
        ...(scope === undefined ? {} : { scope }),
        ...(thread === undefined ? {} : { thread }),
        ...(from.id === null ? {} : { participant: from.id }),
      };
      const key = keyFor(source, sessions);
      return { key, kind: 'chat', platform: name, userId: from.id, origin: { ...sanitized(place) }, attached: false };
    } catch (thrown) {
      if (!hasCode(thrown, 'bad_key')) throw thrown;
      this.#deps.log.warn('a message from nowhere was dropped', { platform: name, error: thrown });
      return null;
    }
  }

  /** A stranger gets one code and nothing else, and only where nobody else reads it. */
  async #turnAway({ from, place }: Incoming): Promise<void> {
    const { config, engine, log } = this.#deps;
    const { name } = this.#platform;
    log.info('somebody unknown was turned away', { platform: name, user: from.id });
    if (!config.access.pairing || place.type !== 'dm' || from.id === null || from.bot) return;
    const shownName = from.name === null ? null : sanitize(from.name);
    const code = await offerCode(engine.store, { platform: name, userId: from.id, name: shownName });
    if (code !== null) await this.#sendNow(place, pairingText(name, code));
  }

  #isForUs({ place, addressed, text }: Incoming): boolean {
    if (place.type === 'dm' || addressed) return true;
    const { requireMention, wakeWords } = chatSettings(this.#deps.config, this.#platform.name);
    if (!requireMention) return true;
    const said = text.toLowerCase();
    return wakeWords.some((word) => said.includes(word.toLowerCase()));
  }

  async #take(message: Incoming, conversation: ConversationRef, requester: Requester): Promise<void> {
    const { conversations, access, taken } = this.#deps;
    const text = messageText(message, isShared(conversation));
    // An agent that is addressed by name in front of a command still gets the command; everything else is text.
    const command = message.text.trimStart().startsWith('/') && !message.edited && message.files.length === 0;
    const result = await conversations.receive({
      ...{ conversation, text: command ? message.text : text, originRef: message.id },
      userName: message.from.name === null ? null : sanitize(message.from.name),
      ...(command
        ? { mayRun: (spec) => access.refusal(spec, requester), by: await access.answerer(requester) }
        : { verbatim: true }),
      ...(message.files.length === 0 ? {} : { files: turnFilesOf(conversation.platform, message.files) }),
      settleMs: settleTime(message),
    });
    await this.#answer(message, result);
    if (result.type === 'turn' && !result.received.duplicate) taken(message, result.received.turn.id);
  }

  /** What a command says goes to where it was given. */
  async #answer({ place, id }: Incoming, result: ReceiveResult): Promise<void> {
    if (result.type !== 'answer' || result.text === '') return;
    if (result.session === null) return this.#sendNow(place, result.text);
    const { engine } = this.#deps;
    const deliveries = [
      { id: `${id}:answer`, platform: this.#platform.name, target: { ...sanitized(place) }, text: result.text },
    ];
    await engine.store.write('addDeliveries', {
      context: engine.commandContext(),
      sessionId: result.session.id,
      deliveries,
    });
  }

  /** Where there is no session to keep it with. Once: a stranger is not worth more. */
  async #sendNow(place: Place, text: string): Promise<void> {
    try {
      await this.#platform.send(place, { text }, AbortSignal.timeout(SEND_MS));
    } catch (thrown) {
      const error = MoiraiError.wrap(thrown);
      this.#deps.log.warn('what was to be said outside of any session was not sent', { place: place.chat, error });
    }
  }
}

function settleTime({ group, text }: Incoming): number {
  if (group !== null) return ALBUM_SETTLE_MS;
  return text.length >= SPLIT_AT ? SPLIT_SETTLE_MS : SETTLE_MS;
}

/** Several people talk in it: not a direct chat, and no participant in its key. */
function isShared({ key }: ConversationRef): boolean {
  const { type, participant } = parseKey(key);
  return type !== 'dm' && participant === undefined;
}

function sanitized(place: Place): Place {
  return place.name === undefined ? place : { ...place, name: sanitize(place.name) };
}

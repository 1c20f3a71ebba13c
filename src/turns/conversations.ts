import { createHash } from 'node:crypto';
import type { Engine } from '../engine/engine.ts';
import type { StoreHealth } from '../engine/store-health.ts';
import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import { personIn } from '../lifecycle/namespace.ts';
import type { Session } from '../lifecycle/session.ts';
import { isSharedKey } from '../lifecycle/session-key.ts';
import type { Answerer } from '../people/access.ts';
import type { ConversationRef, Received, TurnReply } from '../store/transactions/conversations.ts';
import type { MessageToAppend } from '../store/transactions/messages.ts';
import type { TurnFile } from '../store/transactions/turn-files.ts';
import { findCommand, isOrdered, parseCommand, type SlashCommand } from './command.ts';
import type { AcceptedCommand } from './command-store.ts';
import { KeyedQueue } from './keyed-queue.ts';
import { speakerLine, withoutGatewayLines } from './spoken-text.ts';
import { commandUnknownText, failureText } from './texts.ts';
import type { TurnChannel } from './turn-channel.ts';
import type { BusyMode } from './turn-deps.ts';
import type { Turns } from './turns.ts';

/** Something a person says in a conversation. */
export interface InboundMessage {
  readonly conversation: ConversationRef;
  readonly text: string;
  /** Names the message on its platform; the same again is the same message again. */
  readonly originRef: string | null;
  /** How who says it is called, from outside; who it is, the conversation says. */
  readonly userName?: string | null | undefined;
  /** For so long; without it for ever. */
  readonly refTtlMs?: number | undefined;
  readonly mode?: BusyMode;
  /** Text for the agent whatever it looks like: never a command. */
  readonly verbatim?: true;
  /** Wait so long for more of the same message. */
  readonly settleMs?: number;
  /** What came with it, fetched in its turn. */
  readonly files?: readonly TurnFile[];
  /** What an answer to it needs, in its platform's own words. */
  readonly reply?: TurnReply;
  /** Rows that its turn finds in the transcript, kept with it. */
  readonly before?: readonly MessageToAppend[];
  /** Why this person may not give a command; null when they may. Without it everything is allowed. */
  readonly mayRun?: (command: SlashCommand) => Promise<string | null> | string | null;
  /** Who speaks, where several could answer a question; without it who has the key, or the terminal. */
  readonly by?: Answerer;
}

/** What became of it. */
export type ReceiveResult =
  /** A command, done: what it says, and the open session after it. */
  | { readonly type: 'answer'; readonly text: string; readonly session: Session | null }
  /** A message, durable from now on. */
  | {
      readonly type: 'turn';
      readonly received: Received;
      /** What happens in its turn, and its end. */
      readonly channel: TurnChannel;
    };

/** What becomes of something that is said, before anybody else sees it. */
export type Gate = (message: InboundMessage) => Promise<{ readonly text: string } | { readonly skipped: string }>;

export interface ConversationsDeps {
  readonly engine: Engine;
  readonly health: Pick<StoreHealth, 'assertWritable'>;
  readonly turns: Turns;
  /** Read each time: plugins bring commands. */
  readonly commands: () => readonly SlashCommand[];
  /** May change what is said, or keep it from being heard. */
  readonly gate: Gate;
}

/** How long the same command under the same name of its sender's is not done again. */
const COMMAND_TTL_MS = 24 * 3_600_000;

/** Where people's words are accepted, whichever way they come. */
export class Conversations {
  /** Nothing new is taken; commands that start no turn still work. */
  draining = false;
  readonly #deps: ConversationsDeps;
  readonly #order = new KeyedQueue();

  constructor(deps: ConversationsDeps) {
    this.#deps = deps;
  }

  /**
   * Messages and commands of one conversation take effect in the order in which they come. What is about the turn that
   * runs (`/stop`, `/approve`) does not wait for what is before it.
   */
  receive(given: InboundMessage): Promise<ReceiveResult> {
    const command = given.verbatim ? null : parseCommand(given.text);
    const act = (): Promise<ReceiveResult> => this.#receive(given);
    if (command !== null && !isOrdered(command.name, this.#deps.commands())) return act();
    return this.#order.run(given.conversation.key, act);
  }

  async #receive(given: InboundMessage): Promise<ReceiveResult> {
    // Before the code of others sees it, and before anything of it is done.
    this.#deps.health.assertWritable();
    const passed = await this.#deps.gate(given);
    if ('skipped' in passed) return this.#answer(given, passed.skipped);
    const message = { ...given, text: passed.text };
    const command = message.verbatim ? null : parseCommand(message.text);
    if (command === null) {
      this.#assertTaking();
      return this.#enqueue(message);
    }
    const { originRef } = message;
    return originRef === null ? this.#runCommand(message, command) : this.#runOnce(message, originRef, command);
  }

  /** A command that has a name of its sender's: within a day it is done once, and answered alike each time. */
  async #runOnce(message: InboundMessage, ref: string, command: ParsedCommand): Promise<ReceiveResult> {
    const { engine } = this.#deps;
    const { store } = engine;
    const facts = { ref, sessionKey: message.conversation.key, body: hashOf(message.text), ttlMs: COMMAND_TTL_MS };
    const known = await engine.settle(({ commandId }) => store.write('acceptCommand', { ...facts, commandId }));
    if (known !== null) return this.#repeat(message, known);
    let result: ReceiveResult;
    try {
      result = await this.#runCommand(message, command);
    } catch (thrown) {
      // What may have been done is not done again.
      const isUnknown = hasCode(thrown, 'store_outcome_unknown');
      if (!isUnknown) await engine.settle(() => store.write('forgetCommand', { ref }));
      throw thrown;
    }
    const session = result.type === 'answer' ? result.session : result.received.session;
    const answer = result.type === 'answer' ? result.text : null;
    const turnId = result.type === 'answer' ? null : result.received.turn.id;
    await engine.settle(() => store.write('settleCommand', { ref, answer, sessionId: session?.id ?? null, turnId }));
    return result;
  }

  async #repeat(message: InboundMessage, known: AcceptedCommand): Promise<ReceiveResult> {
    if (known.sessionKey !== message.conversation.key || known.body !== hashOf(message.text)) {
      throw new MoiraiError('idempotency_conflict', 'the idempotency key was used before, with another body');
    }
    if (known.answer !== null) return this.#answer(message, known.answer);
    const { store } = this.#deps.engine;
    const turn = known.turnId === null ? null : await store.read('getTurn', { turnId: known.turnId });
    const session = turn === null ? null : await store.read('getSession', { sessionId: turn.sessionId });
    // The process that did it stopped in the middle, or did not learn what came of it.
    if (turn === null || session === null) return this.#answer(message, commandUnknownText(message.text));
    const received = { session, turn, begun: false, started: false, ended: null, duplicate: true };
    return { type: 'turn', received, channel: this.#deps.turns.channels.follow(turn.id) };
  }

  async #runCommand(message: InboundMessage, { name, args }: ParsedCommand): Promise<ReceiveResult> {
    const { conversation, originRef, refTtlMs, userName, mayRun, reply } = message;
    const { platform, key, userId } = conversation;
    const { by = { name: platform, person: personIn(key, userId), admin: true } } = message;
    try {
      const command = findCommand(name, this.#deps.commands());
      const refusal = (await mayRun?.(command)) ?? null;
      if (refusal !== null) return await this.#answer(message, refusal);
      // Before anything of it is done: once begun it is done as a whole, and what it starts waits for the next process.
      if (command.startsTurn) this.#assertTaking();
      const answer = await command.run({
        name: command.name,
        args,
        conversation,
        session: await this.#openSession(message),
        by,
        send: (words, mode) => {
          const text = isSharedKey(conversation.key) ? withoutGatewayLines(ownWords(message, words)) : words;
          return this.#enqueue({ conversation, text, originRef, refTtlMs, userName, mode, ...(reply && { reply }) });
        },
      });
      return typeof answer === 'string' ? await this.#answer(message, answer) : answer;
    } catch (thrown) {
      const { code, message: problem } = MoiraiError.wrap(thrown);
      if (code === 'internal' || code.startsWith('store_') || code === 'draining') throw thrown;
      // What a person typed wrong is told to that person, in the conversation.
      return this.#answer(message, failureText(code, problem));
    }
  }

  async #enqueue(message: InboundMessage): Promise<ReceiveResult> {
    const { conversation, text, originRef, refTtlMs, userName, mode, settleMs, before, files, reply } = message;
    if (text.trim() === '') throw new MoiraiError('bad_input', 'the message is empty');
    const { turns } = this.#deps;
    const spoken = isSharedKey(conversation.key) ? `${speakerOf(message)}${text}` : text;
    const received = await turns.receive(
      { conversation, text: spoken, originRef, refTtlMs, by: 'user', userName, before, files, reply },
      { mode, settleMs },
    );
    return { type: 'turn', received, channel: turns.channels.open(received.turn.id) };
  }

  #assertTaking(): void {
    if (this.draining) throw new MoiraiError('draining', 'the gateway takes nothing new');
  }

  async #answer(message: InboundMessage, text: string): Promise<ReceiveResult> {
    return { type: 'answer', text, session: await this.#openSession(message) };
  }

  #openSession({ conversation }: InboundMessage): Promise<Session | null> {
    return this.#deps.engine.store.read('openSession', { key: conversation.key });
  }
}

/** Before what somebody says where several talk. */
function speakerOf({ conversation, userName = null }: InboundMessage): string {
  return `${speakerLine(conversation.userId, userName)}\n`;
}

/** What is said again already begins with who said it. */
function ownWords(message: InboundMessage, text: string): string {
  const speaker = speakerOf(message);
  return text.startsWith(speaker) ? text.slice(speaker.length) : text;
}

type ParsedCommand = NonNullable<ReturnType<typeof parseCommand>>;

function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}

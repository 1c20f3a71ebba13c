import type { Engine } from '../engine/engine.ts';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { Session } from '../lifecycle/session.ts';
import type { ConversationRef, Received } from '../store/transactions/conversations.ts';
import type { MessageToAppend } from '../store/transactions/messages.ts';
import { KeyedQueue } from '../turns/keyed-queue.ts';
import type { TurnChannel } from '../turns/turn-channel.ts';
import type { Answerer } from './approvals.ts';
import { findCommand, isOrdered } from './commands/catalogue.ts';
import { type CommandDeps, parseCommand, type SlashCommandSpec } from './commands/command.ts';
import { failureText } from './texts.ts';
import type { BusyMode, Turns } from './turns.ts';

/** Something a person says in a conversation. */
export interface InboundMessage {
  readonly conversation: ConversationRef;
  readonly text: string;
  /** Names the message on its platform; the same again is the same message again. */
  readonly originRef: string | null;
  readonly mode?: BusyMode;
  /** Text for the agent whatever it looks like: never a command. */
  readonly verbatim?: true;
  /** Wait so long for more of the same message. */
  readonly settleMs?: number;
  /** Rows that its turn finds in the transcript, kept with it. */
  readonly before?: readonly MessageToAppend[];
  /** Why this person may not give a command; null when they may. Without it everything is allowed. */
  readonly mayRun?: (command: SlashCommandSpec) => string | null;
  /** Who speaks, where several could answer a question. */
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

/** The one door through which people's words come in, whatever they are said with. */
export class Conversations {
  readonly #engine: Engine;
  readonly #turns: Turns;
  readonly #deps: CommandDeps;
  readonly #gate: Gate;
  readonly #order = new KeyedQueue();
  #draining = false;

  /** `gate` may change what is said, or keep it from being heard. */
  constructor(deps: Omit<CommandDeps, 'receive'>, gate: Gate) {
    this.#gate = gate;
    this.#engine = deps.engine;
    this.#turns = deps.turns;
    this.#deps = { ...deps, receive: (message) => this.#enqueue(message) };
  }

  /** From now on nothing new is taken; commands still work. */
  set draining(draining: boolean) {
    this.#draining = draining;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /**
   * Messages and commands of one conversation take effect in the order in which they come. What is about the turn that
   * runs (`/stop`, `/approve`) does not wait for what is before it.
   */
  receive(given: InboundMessage): Promise<ReceiveResult> {
    const command = given.verbatim ? null : parseCommand(given.text);
    const act = (): Promise<ReceiveResult> => this.#receive(given);
    if (command !== null && !isOrdered(command.name, this.#deps.more())) return act();
    return this.#order.run(given.conversation.key, act);
  }

  async #receive(given: InboundMessage): Promise<ReceiveResult> {
    const passed = await this.#gate(given);
    if ('skipped' in passed) {
      return { type: 'answer', text: passed.skipped, session: await this.#openSession(given.conversation.key) };
    }
    const message = { ...given, text: passed.text };
    const command = message.verbatim ? null : parseCommand(message.text);
    return command === null ? this.#enqueue(message) : this.#runCommand(message, command);
  }

  async #runCommand(message: InboundMessage, { name, args }: { name: string; args: string }): Promise<ReceiveResult> {
    try {
      const spec = findCommand(name, this.#deps.more());
      const refusal = message.mayRun?.(spec) ?? null;
      const session = await this.#openSession(message.conversation.key);
      if (refusal !== null) return { type: 'answer', text: refusal, session };
      const by = message.by ?? null;
      const call = {
        name: spec.name,
        args,
        conversation: message.conversation,
        session,
        originRef: message.originRef,
        by,
      };
      const answer = await spec.run(call, this.#deps);
      if (typeof answer !== 'string') return answer;
      return { type: 'answer', text: answer, session: await this.#openSession(message.conversation.key) };
    } catch (thrown) {
      const { code, message: problem } = MoiraiError.wrap(thrown);
      if (code === 'internal' || code.startsWith('store_') || code === 'draining') throw thrown;
      // What a person typed wrong is told to that person, in the conversation.
      const session = await this.#openSession(message.conversation.key);
      return { type: 'answer', text: failureText(code, problem), session };
    }
  }

  async #enqueue(message: InboundMessage): Promise<ReceiveResult> {
    const { conversation, text, originRef, mode, settleMs, before } = message;
    if (this.#draining) throw new MoiraiError('draining', 'the gateway takes nothing new');
    if (text.trim() === '') throw new MoiraiError('bad_input', 'the message is empty');
    const received = await this.#turns.receive(
      { conversation, text, originRef, by: 'user', ...(before === undefined ? {} : { before }) },
      { ...(mode === undefined ? {} : { mode }), ...(settleMs === undefined ? {} : { settleMs }) },
    );
    const { id } = received.turn;
    return {
      type: 'turn',
      received,
      channel: this.#turns.channels.open(id),
    };
  }

  #openSession(key: string): Promise<Session | null> {
    return this.#engine.store.read('openSession', { key });
  }
}

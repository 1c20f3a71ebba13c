import type { AgentRunner, ApprovalRequest, TurnReport } from '../agent/runner.ts';
import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import { PlatformManager, type PlatformStatus } from '../inbound/platform-manager.ts';
import { ReceivedFiles } from '../inbound/received-files.ts';
import { Reception } from '../inbound/reception.ts';
import { Stickers } from '../inbound/stickers.ts';
import type { Session, Turn } from '../lifecycle/session.ts';
import { parseKey } from '../lifecycle/session-key.ts';
import type { Logger } from '../log/logger.ts';
import { displayFor } from '../outbound/display.ts';
import { EditPace } from '../outbound/edit-pace.ts';
import { footerOf, outgoing } from '../outbound/outgoing.ts';
import { Places } from '../outbound/places.ts';
import { platformSender, type ReplyShape } from '../outbound/platform-sender.ts';
import { Presentation } from '../outbound/presentation.ts';
import { Access } from '../people/access.ts';
import type { Approvals } from '../people/approvals.ts';
import { workspaceFor } from '../people/workspaces.ts';
import type { Platform, Sender } from '../platforms/platform.ts';
import type { ConfiguredPlatform } from '../platforms/registry.ts';
import type { Timers } from '../queue/timers.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';
import type { Conversations } from '../turns/conversations.ts';
import { deliverable } from '../turns/reply-target.ts';
import { PARKED_TEXT } from '../turns/texts.ts';
import type { TurnRun } from '../turns/turn-run.ts';
import { questions } from './questions.ts';

export interface ChatPlatformsDeps {
  readonly config: Config;
  readonly engine: Engine;
  readonly timers: Timers;
  readonly log: Logger;
  readonly configured: readonly ConfiguredPlatform[];
  /** Platforms that plugins bring. */
  readonly brought: () => readonly Platform[];
  /** Ways out that are no platforms of ours. */
  readonly senders: readonly Sender[];
  readonly approvals: Approvals;
  readonly runner: () => AgentRunner;
  readonly conversations: () => Conversations;
  readonly commands: () => readonly { name: string; summary: string }[];
  readonly newDeliveryId: () => string;
  /** Something was said to a conversation that nothing is sent to, beside its replies. */
  readonly onNote: (session: Session, text: string) => void;
  /** Something can be sent that could not before. */
  readonly wakeOutbox: () => void;
}

/** Everything between the gateway and the people on chat platforms: who comes in, what they see, what leaves. */
export class ChatPlatforms {
  readonly access: Access;
  readonly places: Places;
  readonly files: ReceivedFiles;
  readonly #deps: ChatPlatformsDeps;
  readonly #manager: PlatformManager;
  readonly #presentation: Presentation;
  readonly #pace: EditPace;

  constructor(deps: ChatPlatformsDeps) {
    const { config, engine, timers, log, configured } = deps;
    this.#deps = deps;
    this.access = new Access(engine.store, () => config);
    this.places = new Places(engine.store);
    const { store } = engine;
    const { workspace, maxReceived } = config.agent;
    this.files = new ReceivedFiles({
      ...{ store, log, maxReceivedBytes: maxReceived },
      workspaceOf: (session) => workspaceFor(workspace, session),
      stickers: new Stickers({ store, log, runner: deps.runner }),
      platform: (name) => this.find(name),
    });
    this.#pace = new EditPace(timers);
    this.#presentation = new Presentation({
      ...{ timers, log, pace: this.#pace },
      platformOf: (session) => this.platformOf(session),
      displayOf: (platform) => displayFor(config.display, platform.name, platform.abilities),
    });
    this.#manager = new PlatformManager({
      ...{ engine, timers, log, configured, brought: deps.brought },
      inboxOf: (platform, changed) => new Reception(platform, this.#receptionDeps(), changed),
      ready: () => {
        deps.wakeOutbox();
        this.#manager.offerCommands(deps.commands());
      },
    });
  }

  start(): void {
    this.#manager.start();
  }

  /** Plugins bring others than before. */
  refresh(): void {
    this.#manager.refresh();
  }

  stopReceiving(): Promise<void> {
    return this.#manager.stopReceiving();
  }

  leave(): Promise<void> {
    return this.#manager.leave();
  }

  get names(): readonly string[] {
    return [...this.#deps.senders.map(({ name }) => name), ...this.#manager.names];
  }

  get senders(): readonly Sender[] {
    return [
      ...this.#deps.senders,
      ...this.#manager.open.map((platform) => platformSender(platform, this.places, this.#pace)),
    ];
  }

  status(): PlatformStatus[] {
    return this.#manager.status();
  }

  find(name: string): Platform | null {
    return this.#manager.find(name);
  }

  /** The platform on which a session's people are, if it is there. */
  platformOf(session: Session): Platform | null {
    return deliverable(session) ? this.#manager.find(session.platform) : null;
  }

  /** Whether a person may still talk in a session. Whoever has the API key, or a terminal here, always may. */
  async admits(
    session: Pick<Session, 'kind' | 'platform' | 'origin' | 'key'>,
    { userId }: Pick<Turn, 'userId'>,
  ): Promise<boolean> {
    if (!deliverable(session) || !this.#manager.names.includes(session.platform)) return true;
    const { type, chat = '' } = parseKey(session.key);
    const { platform } = session;
    for (const each of await this.places.idsOf(platform, { type, chat })) {
      if (await this.access.admits({ platform, userId, bot: false, place: { type, chat: each } })) return true;
    }
    return false;
  }

  /** A turn begins to run here. */
  started(run: TurnRun): void {
    this.#presentation.started(run);
  }

  /** What a turn's reply becomes in the outbox: in the place of what was shown while it was written. */
  async repliesOf(run: TurnRun, text: string, report: TurnReport | null): Promise<DeliveryToMake[]> {
    const { session } = run;
    const platform = this.platformOf(session);
    const edit = await this.#presentation.replaced(run);
    const shape = edit === null ? {} : { edit };
    const wanted = platform === null ? null : displayFor(this.#deps.config.display, platform.name, platform.abilities);
    const whole = wanted?.footer && report !== null ? `${text}\n\n_${footerOf(report)}_` : text;
    return outgoing(session, whole, platform, this.#deps.newDeliveryId(), shape);
  }

  /** Something that is said in a session's conversation and is no reply. */
  notice(session: Session, text: string, id: string, shape: ReplyShape = {}): DeliveryToMake[] {
    return outgoing(session, text, this.platformOf(session), id, shape);
  }

  /** Says something in a session's conversation that is no reply: in the outbox where there is one, else the transcript. */
  async tell(session: Session, text: string, id: string, shape: ReplyShape = {}): Promise<void> {
    const { engine, onNote } = this.#deps;
    if (deliverable(session)) {
      const deliveries = this.notice(session, text, id, shape);
      await engine.store.write('addDeliveries', {
        context: engine.commandContext(),
        sessionId: session.id,
        deliveries,
      });
    } else {
      await engine.appendBeside(session.id, [{ role: 'assistant', text, turnId: null }]);
      onNote(session, text);
    }
  }

  /** A message waits in a session that an operator parked. Who asked over HTTP gets an error that says so. */
  async tellParked(session: Session, turn: Turn): Promise<void> {
    if (deliverable(session) || session.kind === 'cli') await this.tell(session, PARKED_TEXT, `${turn.id}:parked`);
  }

  /**
   * Asks people on chat platforms to allow something: those of the conversation, and, where the person whose work it is
   * may not allow it, the admins in their own chats. Others see the question in the turn.
   */
  async ask(session: Session, asker: Pick<Turn, 'userId' | 'userName'>, id: string, request: ApprovalRequest) {
    if (!deliverable(session)) return;
    const { engine, newDeliveryId } = this.#deps;
    const deps = { access: this.access, store: engine.store, find: (name: string) => this.find(name), newDeliveryId };
    const deliveries = await questions(deps, session, asker, { id, ...request });
    await engine.store.write('addDeliveries', { context: engine.commandContext(), sessionId: session.id, deliveries });
  }

  #receptionDeps() {
    const { config, engine, approvals, log, conversations } = this.#deps;
    return {
      ...{ config, engine, approvals, log, access: this.access, places: this.places },
      conversations: conversations(),
      taken: this.#presentation.taken.bind(this.#presentation),
    };
  }
}

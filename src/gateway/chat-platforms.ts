import type { AgentRunner, ApprovalRequest, TurnReport } from '../agent/runner.ts';
import type { Config } from '../config/config.ts';
import type { Engine } from '../engine/engine.ts';
import { PlatformManager, type PlatformStatus } from '../inbound/platform-manager.ts';
import { ReceivedFiles } from '../inbound/received-files.ts';
import { Reception } from '../inbound/reception.ts';
import { Stickers } from '../inbound/stickers.ts';
import { Submissions } from '../inbound/submissions.ts';
import type { Session, Turn } from '../lifecycle/session.ts';
import { parseKey } from '../lifecycle/session-key.ts';
import type { Logger } from '../log/logger.ts';
import { displayFor } from '../outbound/display.ts';
import { EditPace } from '../outbound/edit-pace.ts';
import { LiveReplies } from '../outbound/live-replies.ts';
import { footerOf, outgoing, outgoingTo } from '../outbound/outgoing.ts';
import { Places } from '../outbound/places.ts';
import { platformSender } from '../outbound/platform-sender.ts';
import { Presentation } from '../outbound/presentation.ts';
import type { ReplyShape } from '../outbound/reply-shape.ts';
import { SentParts } from '../outbound/sent-parts.ts';
import { keyOfPlace, resolveTarget } from '../outbound/targets.ts';
import { Access } from '../people/access.ts';
import type { Approvals } from '../people/approvals.ts';
import { workspaceFor } from '../people/workspaces.ts';
import { abilitiesAt } from '../platforms/abilities.ts';
import type { Place, Platform, ReplyContext, Sender, SendRequest } from '../platforms/platform.ts';
import type { ConfiguredPlatform } from '../platforms/registry.ts';
import type { Timers } from '../queue/timers.ts';
import type { DeliveryToMake } from '../store/transactions/deliveries.ts';
import type { Conversations } from '../turns/conversations.ts';
import { accountOf, deliverable } from '../turns/reply-target.ts';
import { openedNote, PARKED_TEXT, saysNothing, webhookFailedText } from '../turns/texts.ts';
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
  readonly #parts = new SentParts();
  readonly #live: LiveReplies;

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
    this.#live = new LiveReplies(engine, log);
    this.#presentation = new Presentation({
      ...{ timers, log, pace: this.#pace, liveReplies: this.#live },
      platformOf: (session) => this.platformOf(session),
      displayOf: (platform, place) => displayFor(config.display, platform.name, abilitiesAt(platform, place)),
      replyOf: async (turnId) => (await store.read('turnReply', { turnId })) as ReplyContext | null,
    });
    this.#manager = new PlatformManager({
      ...{ engine, timers, log, configured, brought: deps.brought },
      inboxOf: (platform, changed) => new Reception(platform, this.#receptionDeps(), changed),
      ready: (platform) => this.#ready(platform),
    });
  }

  start(): void {
    this.#manager.start();
  }

  /** A platform is connected: what waited for it can be sent, and what a process before this one left is ended. */
  #ready(platform: Platform): void {
    const { wakeOutbox, commands, log } = this.#deps;
    wakeOutbox();
    this.#manager.offerCommands(platform, commands());
    void this.#manager.listPlaces(platform, (places) => this.places.listed(platform.name, places));
    this.#live.sweep(platform).catch((error: unknown) => {
      log.warn('looking for replies that were left growing failed', { platform: platform.name, error });
    });
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
      ...this.#manager.open.map((platform) =>
        platformSender(platform, {
          ...{ places: this.places, pace: this.#pace, parts: this.#parts, now: Date.now },
          latestReply: async (sessionKey) =>
            (await this.#deps.engine.store.read('latestReply', { sessionKey })) as ReplyContext | null,
          opened: (request, place) => this.#opened(platform, request, place),
        }),
      ),
    ];
  }

  /**
   * A message began a place of its own: it can be named, and its agent knows how it began. The message has arrived: whatever
   * becomes of this, it must not be sent again.
   */
  async #opened(platform: Platform, request: SendRequest, place: Place): Promise<void> {
    try {
      await this.#noteOpened(platform, request, place);
    } catch (error) {
      this.#deps.log.warn('a place that was opened is not known to its agent', { platform: platform.name, error });
    }
  }

  async #noteOpened({ name }: Platform, { key: id, sessionId, text }: SendRequest, place: Place): Promise<void> {
    const { engine, config } = this.#deps;
    await this.places.listed(name, [place]);
    const key = keyOfPlace(name, place, config.sessions);
    if (key === null) return;
    await engine.store.write('addExternalNote', {
      ...{ context: engine.commandContext(), sessionId, id: `${id}:opened`, deliveries: [] },
      ...{ key, note: openedNote(text) },
    });
  }

  status(): PlatformStatus[] {
    return this.#manager.status();
  }

  find(name: string): Platform | null {
    return this.#manager.find(name);
  }

  /** The platform on which a session's people are, if it is there. */
  platformOf(session: Session): Platform | null {
    return deliverable(session) ? this.#manager.find(accountOf(session)) : null;
  }

  /** Whether a person may still talk in a session. Whoever has the API key, or a terminal here, always may. */
  async admits(
    session: Pick<Session, 'kind' | 'platform' | 'origin' | 'key'>,
    { userId }: Pick<Turn, 'userId'>,
  ): Promise<boolean> {
    const name = accountOf(session);
    if (!deliverable(session) || !this.#manager.names.includes(name)) return true;
    const { type, chat = '', platform, account } = parseKey(session.key);
    const who = { platform, ...(account === undefined ? {} : { account }), userId, bot: false };
    for (const each of await this.places.idsOf(name, { type, chat })) {
      if (await this.access.admits({ ...who, place: { type, chat: each } })) return true;
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
    if (session.kind === 'webhook') return this.#resultsOf(session, text, report !== null);
    if (!deliverable(session)) return [];
    const platform = this.platformOf(session);
    const shape = await this.#presentation.shapeOf(run);
    const wanted = platform === null ? null : displayFor(this.#deps.config.display, platform.name, platform.abilities);
    const whole = wanted?.footer && report !== null ? `${text}\n\n_${footerOf(report)}_` : text;
    return outgoing(session, whole, platform, this.#deps.newDeliveryId(), shape);
  }

  /** What came of something that a program sent: it goes to where the route says. */
  async #resultsOf({ id, origin }: Session, text: string, isDone: boolean): Promise<DeliveryToMake[]> {
    const { deliver, route } = (origin ?? {}) as { deliver?: string | null; route?: string };
    if (deliver == null || (isDone && saysNothing(text))) return [];
    const words = isDone ? text : webhookFailedText(route ?? '', text);
    try {
      return await this.#outgoingFor(deliver, words, this.#deps.newDeliveryId());
    } catch (error) {
      // What it says stays in its transcript.
      this.#deps.log.warn('the result of a webhook has no place to go', { session: id, deliver, error });
      return [];
    }
  }

  async #outgoingFor(target: string, text: string, id: string): Promise<DeliveryToMake[]> {
    const { engine, config } = this.#deps;
    const place = await resolveTarget(target, { store: engine.store, rules: config.sessions, asker: null });
    return place === null ? [] : outgoingTo(place, text, this.find(place.platform), id);
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
    const { config, engine, approvals, log, conversations, newDeliveryId } = this.#deps;
    return {
      ...{ config, engine, approvals, log, access: this.access, places: this.places },
      conversations: conversations(),
      submissions: new Submissions({
        ...{ engine, newDeliveryId, conversations: conversations() },
        outgoingFor: (target, text, id) => this.#outgoingFor(target, text, id),
      }),
    };
  }
}

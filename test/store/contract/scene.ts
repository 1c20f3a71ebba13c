import { randomUUID } from 'node:crypto';
import { test } from 'vitest';
import type { TurnResult } from '../../../src/lifecycle/commands.ts';
import type { MoiraiEvent } from '../../../src/lifecycle/events.ts';
import { DEFAULT_RESET_RULES, type ResetPolicy, type ResetRules } from '../../../src/lifecycle/reset-policy.ts';
import type { Session, SessionWithTurns } from '../../../src/lifecycle/session.ts';
import type { EndCause, EndReason, Trigger } from '../../../src/lifecycle/states.ts';
import type { WriteArgs } from '../../../src/store/catalogue.ts';
import type { StoreClock } from '../../../src/store/clock.ts';
import type { Store } from '../../../src/store/port.ts';
import type { Param, Row } from '../../../src/store/transaction.ts';
import type { ReceiveArgs, Received } from '../../../src/store/transactions/conversations.ts';
import type { Delivery, DeliveryOutcome, ReplyLane } from '../../../src/store/transactions/deliveries.ts';
import type { EventLane, LaneEvent } from '../../../src/store/transactions/event-queue.ts';
import { queueOf } from '../../../src/store/transactions/record.ts';
import type { PlainCommand, SlashCommand } from '../../../src/store/transactions/session-commands.ts';
import type { CommandContext } from '../../../src/store/transactions/sessions.ts';

export type ConversationRef = ReceiveArgs['conversation'];

/** A clock that a test sets. Both hands move together. */
export interface TestClock extends StoreClock {
  advance(ms: number): void;
  set(time: string): void;
}

/** A store as the contract tests need it: with its clock, a second way in, and a way out and in again. */
export interface Opened {
  readonly store: Store;
  readonly clock: TestClock;
  /** A second store on the same data, as another process would open it. Closed with the first. */
  another(): Promise<Store>;
  /** Closes the store and opens it again on the same data. */
  reopen(): Promise<Store>;
  /** Runs SQL past our code, with `?` for parameters. */
  raw(sql: string, ...params: Param[]): Promise<Row[]>;
  close(): Promise<void>;
}

export type Open = () => Promise<Opened>;

export const SECOND = 1000;
export const MINUTE = 60 * SECOND;
export const HOUR = 60 * MINUTE;
export const DAY = 24 * HOUR;
/** Longer than any test pretends to last. */
const FOREVER = 1000 * DAY;

export function fakeClock(start = '2026-02-02T12:00:00.000Z'): TestClock {
  let now = Date.parse(start);
  return {
    now: () => now,
    lease: () => now,
    advance: (ms) => {
      now += ms;
    },
    set: (time) => {
      now = Date.parse(time);
    },
  };
}

export function rulesWith(reset: Partial<ResetPolicy>, rest: Partial<ResetRules> = {}): ResetRules {
  return { ...DEFAULT_RESET_RULES, ...rest, reset: { ...DEFAULT_RESET_RULES.reset, ...reset } };
}

const DONE: TurnResult = { outcome: 'done', response: 'an answer', model: 'loom-1', usage: { input: 10, output: 5 } };

/** One instance that talks to a store, in few words. */
export class Scene {
  readonly opened: Opened;
  store: Store;
  instance = 'one';
  #ids = 0;

  constructor(opened: Opened) {
    this.opened = opened;
    this.store = opened.store;
  }

  get clock(): TestClock {
    return this.opened.clock;
  }

  raw(sql: string, ...params: Param[]): Promise<Row[]> {
    return this.opened.raw(sql, ...params);
  }

  async reopen(): Promise<void> {
    this.store = await this.opened.reopen();
  }

  /** The same data seen by another instance, through a store of its own. */
  async joinedBy(instance: string, ttlMs = FOREVER): Promise<Scene> {
    const other = new Scene({ ...this.opened, store: await this.opened.another() });
    other.instance = instance;
    await other.boot(instance, ttlMs);
    return other;
  }

  async boot(id = this.instance, ttlMs = FOREVER): Promise<void> {
    const facts = {
      id,
      name: null,
      version: '0',
      host: 'loom',
      bootId: null,
      pidSpace: null,
      pid: 1,
      pidStarted: null,
    };
    await this.store.write('bootInstance', { facts, ttlMs });
  }

  id(prefix: string): string {
    return `${prefix}-${this.instance}-${++this.#ids}`;
  }

  context(commandId = this.id('cmd')): CommandContext {
    return { instanceId: this.instance, commandId };
  }

  conversation(chat: string, facts: Partial<ConversationRef> = {}): ConversationRef {
    return {
      key: `agent:main:telegram:dm:${chat}`,
      kind: 'chat',
      platform: 'telegram',
      userId: 'ada',
      origin: null,
      attached: false,
      ...facts,
    };
  }

  start(
    chat: string,
    facts: Partial<ConversationRef> = {},
    rest: Partial<WriteArgs<'startSession'>> = {},
  ): Promise<Session> {
    return this.store.write('startSession', {
      context: this.context(),
      sessionId: this.id('ses'),
      conversation: this.conversation(chat, facts),
      parentId: null,
      lineage: null,
      title: null,
      ...rest,
    });
  }

  /** A user writes: queued, not begun, unless told otherwise. */
  say(chat: string, text: string, rest: Partial<ReceiveArgs> = {}): Promise<Received> {
    return this.store.write('receive', {
      context: this.context(),
      conversation: this.conversation(chat),
      text,
      originRef: null,
      by: 'user',
      turnId: this.id('trn'),
      newSessionId: this.id('ses'),
      begin: false,
      ...rest,
    });
  }

  /** A user writes and the turn begins at once. */
  async ask(chat: string, text = 'a question', rest: Partial<ReceiveArgs> = {}): Promise<Received> {
    const received = await this.say(chat, text, { begin: true, ...rest });
    if (!received.begun) throw new Error(`turn ${received.turn.id} did not begin`);
    return received;
  }

  command(sessionId: string, command: PlainCommand, context = this.context()): Promise<SessionWithTurns> {
    return this.store.write('command', { context, sessionId, command });
  }

  begin(sessionId: string, turnId: string): Promise<SessionWithTurns> {
    return this.command(sessionId, { name: 'begin', turnId });
  }

  cut(
    sessionId: string,
    reason: 'restart' | 'shutdown' | 'crash' = 'restart',
    epoch: number | null = null,
  ): Promise<SessionWithTurns> {
    return this.command(sessionId, { name: 'interrupt', reason, epoch });
  }

  finish(
    { session, turn }: { session: Pick<Session, 'id' | 'epoch'>; turn: { id: string } },
    result: Partial<TurnResult> = {},
    rest: Partial<WriteArgs<'finishTurn'>> = {},
  ): Promise<SessionWithTurns> {
    return this.store.write('finishTurn', {
      context: this.context(),
      sessionId: session.id,
      turnId: turn.id,
      epoch: session.epoch,
      result: { ...DONE, ...result },
      error: null,
      messages: [],
      deliveries: [],
      ...rest,
    });
  }

  end(
    sessionId: string,
    reason: EndReason = 'admin_close',
    facts: { cause?: EndCause; trigger?: Trigger; epoch?: number } = {},
  ): Promise<{ session: Session; already: boolean }> {
    const { cause = null, trigger = 'cli', epoch = null } = facts;
    return this.store.write('endSession', { context: this.context(), sessionId, reason, cause, trigger, epoch });
  }

  reset(chat: string, slash: SlashCommand | null = null, rest: Partial<WriteArgs<'resetSession'>> = {}) {
    const newSessionId = this.id('ses');
    return this.store.write('resetSession', {
      context: this.context(),
      conversation: this.conversation(chat),
      newSessionId,
      title: null,
      slash,
      ...rest,
    });
  }

  continue(fromId: string, lineage: 'resume' | 'branch', rest: Partial<WriteArgs<'continueSession'>> = {}) {
    return this.store.write('continueSession', {
      context: this.context(),
      fromId,
      lineage,
      newSessionId: this.id('ses'),
      title: null,
      trigger: 'command',
      conversation: null,
      slash: null,
      ...rest,
    });
  }

  expire(limit = 100, trigger: 'watcher' | 'startup' = 'watcher') {
    return this.store.write('expire', { context: this.context(), limit, trigger });
  }

  reap(provenDead: readonly string[] = [], limit = 100) {
    return this.store.write('reap', { context: this.context(), provenDead, limit });
  }

  async session(sessionId: string): Promise<Session> {
    const session = await this.store.read('getSession', { sessionId });
    if (session === null) throw new Error(`no session ${sessionId}`);
    return session;
  }

  /** The whole log, or one session's part of it, page by page. */
  async events(sessionId: string | null = null, types: readonly string[] = []): Promise<MoiraiEvent[]> {
    const all: MoiraiEvent[] = [];
    for (let after = 0; ; ) {
      const page = await this.store.read('listEvents', { after, limit: 500, types, sessionId });
      if (page.events.length === 0) return all;
      all.push(...page.events.map(({ event }) => event));
      after = page.next;
    }
  }

  async types(sessionId: string | null = null): Promise<string[]> {
    return (await this.events(sessionId)).map(({ type }) => type);
  }

  /** The log as `session type`, to see how the events of several sessions lie between each other. */
  async story(names: Readonly<Record<string, string>> = {}): Promise<string[]> {
    const events = await this.events();
    return events.map(({ session_id: id, type }) => `${names[id ?? ''] ?? id} ${type}`);
  }

  subscribe(name: string, patterns: readonly string[] = ['*'], from: 'now' | 'open' | 'start' = 'now') {
    return this.store.write('subscribe', { name, patterns, from });
  }

  async claim(subscriber: string, rest: Partial<WriteArgs<'claimEvents'>> = {}): Promise<readonly EventLane[]> {
    const args = { ...this.claimOf(queueOf(subscriber)), subscriber, eventsPerLane: 100, ...rest };
    return (await this.store.write('claimEvents', args)).lanes;
  }

  /** A claim of a queue under a token of its own. */
  claimOf(queue: string) {
    return { context: this.context(), queue, token: randomUUID(), again: false, limit: 100, retries: 100 };
  }

  /** Claims what is to be sent through a platform. */
  async claimReplies(rest: Partial<WriteArgs<'claimReplies'>> = {}): Promise<readonly ReplyLane[]> {
    const args = { ...this.claimOf(''), platform: 'telegram', repliesPerLane: 100, ...rest };
    return (await this.store.write('claimReplies', args)).lanes;
  }

  /** How a reply of a claimed lane fared; the first one unless said. */
  settleReply(
    lane: ReplyLane,
    outcome: DeliveryOutcome,
    rest: { delivery?: Delivery | undefined; more?: boolean; attempts?: number; waits?: number; live?: string } = {},
  ): Promise<{ ms: number } | null> {
    const { delivery = lane.deliveries[0] as Delivery, more = false, attempts = lane.attempts + 1 } = rest;
    const { waits = lane.waits, live } = rest;
    const { key, token } = lane;
    const fixed = { context: this.context(), platform: delivery.platform, key, token, deliveryId: delivery.id };
    return this.store.write('settleReply', { ...fixed, outcome, attempts, waits, more, ...(live && { live }) });
  }

  ack(lane: EventLane, upTo = lane.upTo): Promise<boolean> {
    const replayed = lane.events.filter(({ replay }) => replay).map(({ no }) => no);
    const { subscriber, key, token } = lane;
    return this.store.write('ackEvents', {
      context: this.context(),
      subscriber,
      key,
      token,
      delivered: { upTo, replayed },
    });
  }

  /** The first event of a claimed lane fails. */
  fail(lane: EventLane, rest: Partial<WriteArgs<'failEvents'>> = {}, which = 0): Promise<boolean> {
    const failed = lane.events[which] as LaneEvent;
    const before = lane.events.slice(0, which);
    const { subscriber, key, token } = lane;
    return this.store.write('failEvents', {
      context: this.context(),
      subscriber,
      key,
      token,
      delivered: {
        upTo: failed.replay ? lane.upTo - lane.events.filter(({ replay }) => !replay).length : failed.no - 1,
        replayed: before.filter(({ replay }) => replay).map(({ no }) => no),
      },
      failed: { no: failed.no, eventId: failed.event.id, eventType: failed.event.type, replay: failed.replay },
      error: 'it threw',
      attempts: lane.attempts + 1,
      waits: lane.waits,
      retryInMs: SECOND,
      dead: false,
      ...rest,
    });
  }

  /** Claims and acknowledges until nothing is due; gives the events in the order they were handed out. */
  async drain(subscriber: string, rest: Partial<WriteArgs<'claimEvents'>> = {}): Promise<MoiraiEvent[]> {
    const heard: MoiraiEvent[] = [];
    for (let lanes = await this.claim(subscriber, rest); lanes.length > 0; lanes = await this.claim(subscriber, rest)) {
      for (const lane of lanes) {
        heard.push(...lane.events.map(({ event }) => event));
        await this.ack(lane);
      }
    }
    return heard;
  }
}

export type SceneTest = (title: string, body: (scene: Scene) => Promise<void>) => void;

/** `test` with a store that is open and empty, and one instance that has booted. */
export function sceneTests(open: Open): SceneTest {
  return (title, body) => {
    test(title, async () => {
      const opened = await open();
      try {
        const scene = new Scene(opened);
        await scene.boot();
        await body(scene);
      } finally {
        await opened.close();
      }
    });
  };
}

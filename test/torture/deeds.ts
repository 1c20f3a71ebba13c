import type { Session, Turn } from '../../src/lifecycle/session.ts';
import type { EndReason } from '../../src/lifecycle/states.ts';
import type { Received } from '../../src/store/transactions/conversations.ts';
import { between, type Random } from '../power-cut/random.ts';
import type { Fact } from './journal.ts';
import type { Run, Truth, Workload } from './workload.ts';

type Deed = (w: Workload) => Promise<unknown>;

/** A message arrives: at a new conversation, an old one, a busy one, or for the second time. */
async function receive(w: Workload): Promise<void> {
  const { engine } = w.tenure;
  const { ref, conversation, repeatable } = w.message();
  const by = w.chance(0.9) ? 'user' : 'system';
  const inbound = { conversation, text: ref, originRef: ref, by, begin: w.chance(0.85) } as const;
  const received = await w.attempt(
    'receive',
    engine,
    repeatable ? null : ref,
    () => engine.receive(inbound),
    (value) => receivedTruth(value, ref),
    [], // A message is never refused because of what others do.
  );
  if (received === null) return;
  w.received(ref, conversation.key);
  if (received.begun) w.runs.push(runOf(w, received.session, received.turn.id));
}

function receivedTruth(received: Received, ref: string): Truth {
  const { session, turn, started, begun, ended } = received;
  const facts: Fact[] = [{ is: 'received', turn: turn.id, ref }];
  if (started) facts.push({ is: 'started', session: session.id, key: session.key, parent: ended?.id ?? null });
  if (ended !== null) facts.push(rolledOver(ended, session));
  if (begun) facts.push(begunFact(session, turn.id));
  return { facts, seen: [session] };
}

function rolledOver(ended: NonNullable<Received['ended']>, successor: Session): Fact {
  return { is: 'ended', session: ended.id, reason: 'auto_reset', cause: ended.cause, successor: successor.id };
}

function begunFact(session: Session, turn: string): Fact {
  return { is: 'begun', turn, session: session.id, epoch: session.epoch };
}

function runOf(w: Workload, session: Session, turnId: string): Run {
  return { engine: w.tenure.engine, sessionId: session.id, epoch: session.epoch, turnId };
}

/** The reply to a takeover is lost: the row names this instance, which does not know of it. */
async function loseTakeover(w: Workload): Promise<void> {
  const { engine } = w.tenure;
  const conversation = w.someConversation();
  const turnId = `trn_${w.tag()}`;
  const args = {
    conversation,
    text: turnId,
    originRef: null,
    by: 'user',
    turnId,
    newSessionId: `ses_${w.tag()}`,
  } as const;
  const write = () => engine.store.write('receive', { context: engine.commandContext(), ...args, begin: true });
  await w.attempt('loseTakeover', engine, null, write, () => ({ facts: [], seen: [] }), []);
}

async function begin(w: Workload): Promise<void> {
  const turn = w.pick(await waitingTurns(w));
  if (turn !== undefined) await beginTurn(w, turn.sessionId, turn.id);
}

async function beginTurn(w: Workload, sessionId: string, turnId: string): Promise<void> {
  const { engine } = w.tenure;
  const act = () => engine.begin(sessionId, turnId);
  const loaded = await w.attempt('begin', engine, null, act, ({ session }) => ({
    facts: [begunFact(session, turnId), eventFact(session, 'agent:start', { turn_id: turnId })],
    seen: [session],
  }));
  if (loaded !== null) w.runs.push({ engine, sessionId, epoch: loaded.session.epoch, turnId });
}

async function waitingTurns(w: Workload): Promise<Turn[]> {
  try {
    return await w.tenure.store.read('unfinishedTurns', { limit: 60 });
  } catch (thrown) {
    if (w.tenure.excuses(thrown)) return [];
    throw thrown;
  }
}

async function drop(w: Workload): Promise<void> {
  const turn = w.pick(await waitingTurns(w));
  if (turn === undefined || turn.state === 'running') return;
  const { engine } = w.tenure;
  const outcome = w.chance(0.5) ? 'failed' : 'interrupted';
  const act = () => engine.dropTurn(turn.sessionId, turn.id, outcome, 'dropped');
  await w.attempt('drop', engine, null, act, ({ session }) => ({
    facts: [{ is: 'over', turn: turn.id, outcome, response: null }],
    seen: [session],
  }));
}

async function finish(w: Workload): Promise<void> {
  const run = w.takeRun();
  if (run !== undefined) await finishRun(w, run);
}

export async function finishRun(w: Workload, run: Run): Promise<void> {
  const tag = w.tag();
  const outcome = w.pick(['done', 'done', 'done', 'failed', 'timeout'] as const) ?? 'done';
  const texts = Array.from({ length: between(w.random, 0, 2) }, (_, i) => `${tag}/m${i}`);
  const messages = texts.map((text) => ({ role: 'assistant', text, turnId: run.turnId }));
  const ids = Array.from({ length: w.chance(0.3) ? 1 : 0 }, (_, i) => `${tag}/d${i}`);
  const deliveries = ids.map((id) => ({ id, platform: 'telegram', target: { chat: '1' }, text: id }));
  const usage = { input: 10, output: 5 };
  const finished = { outcome, response: tag, model: 'torture', usage, messages, deliveries };
  const act = () => run.engine.finish(run, run.turnId, finished);
  const loaded = await w.attempt('finish', run.engine, tag, act, ({ session }) => ({
    facts: [
      { is: 'over', turn: run.turnId, outcome, response: tag },
      eventFact(session, 'agent:end', { turn_id: run.turnId, outcome, response: tag }),
      ...messageFacts(session.id, session.messageCount, texts),
      ...ids.map((id): Fact => ({ is: 'delivery', id, turn: run.turnId })),
    ],
    seen: [session],
  }));
  const next = loaded?.turns[0];
  if (next !== undefined && w.chance(0.7)) await beginTurn(w, run.sessionId, next.id);
}

function messageFacts(session: string, count: number, texts: readonly string[]): Fact[] {
  return texts.map((text, i) => ({ is: 'message', session, position: count - texts.length + i + 1, text }));
}

async function append(w: Workload): Promise<void> {
  const run = w.pick(w.runs);
  if (run === undefined) return;
  const tag = w.tag();
  const texts = [`${tag}/m0`, `${tag}/m1`];
  const messages = texts.map((text) => ({ role: 'tool', text, turnId: run.turnId }));
  const act = () => run.engine.append(run, messages);
  await w.attempt('append', run.engine, tag, act, (count) => ({
    facts: messageFacts(run.sessionId, count, texts),
    seen: [],
  }));
}

async function interrupt(w: Workload): Promise<void> {
  const run = w.takeRun();
  if (run === undefined) return;
  const act = () => run.engine.interrupt(run, w.chance(0.5) ? 'restart' : 'shutdown');
  const loaded = await w.attempt('interrupt', run.engine, null, act, ({ session }) => {
    const type = session.state === 'suspended' ? 'session:suspend' : 'session:resume_pending';
    return { facts: [eventFact(session, type)], seen: [session] };
  });
  if (loaded === null) return;
  w.stale.push(run);
  if (w.chance(0.5)) await beginTurn(w, run.sessionId, run.turnId);
}

/** Writes with what it gave up: at an older epoch, or under a lease that is lost. */
async function writeStale(w: Workload): Promise<void> {
  const run = w.stale.shift();
  if (run === undefined) return;
  const tag = w.tag();
  const message = { role: 'tool', text: `${tag}/m0`, turnId: run.turnId };
  const result = { outcome: 'done', response: tag, model: null, usage: null } as const;
  const act = (): Promise<unknown> =>
    w.chance(0.5) ? run.engine.append(run, [message]) : run.engine.finish(run, run.turnId, result);
  const taken = await w.attempt('stale', run.engine, tag, act, () => ({ facts: [], seen: [] }));
  if (taken !== null) w.wrong(`${run.engine.instance} wrote to ${run.sessionId} at epoch ${run.epoch}, which it lost`);
}

/** Writes as an instance whose lease is lost: the store must know that before the writer does. */
export async function haunt(w: Workload): Promise<void> {
  const ghost = w.pick(w.tenure.lost);
  const session = w.someSession();
  if (ghost === undefined || session === undefined) return;
  const tag = w.tag();
  const conversation = w.someConversation();
  const act = (): Promise<unknown> =>
    w.chance(0.5)
      ? ghost.note(session.id, { command: 'status', args: tag })
      : ghost.receive({ conversation, text: tag, originRef: tag, by: 'user' });
  const taken = await w.attempt('haunt', ghost, tag, act, () => ({ facts: [], seen: [] }), []);
  if (taken !== null) w.wrong(`${ghost.instance} wrote although its lease was lost`);
}

async function suspend(w: Workload): Promise<void> {
  const session = w.someSession();
  if (session === undefined) return;
  const { engine } = w.tenure;
  const mine = w.runs.find((run) => run.sessionId === session.id);
  const act = () => engine.suspend(session.id);
  const loaded = await w.attempt('suspend', engine, null, act, (value) => ({
    facts: [eventFact(value.session, 'session:suspend', { reason: 'operator' })],
    seen: [value.session],
  }));
  if (loaded !== null && mine !== undefined && !loaded.session.attached) w.giveUp(mine);
}

/** What may happen to any session at any time, and needs no turn. */
async function remark(w: Workload): Promise<void> {
  const session = w.someSession();
  if (session === undefined) return;
  const { engine } = w.tenure;
  const tag = w.tag();
  const what = w.pick(['title', 'note', 'touch'] as const);
  if (what === 'touch') {
    const act = () => engine.touch(session.id, w.chance(0.5) ? 'user' : 'system');
    await w.attempt('touch', engine, null, act, (loaded) => ({ facts: [], seen: [loaded.session] }));
  } else if (what === 'title') {
    const act = () => engine.setTitle(session.id, tag);
    await w.attempt('title', engine, tag, act, (loaded) => ({
      facts: [eventFact(loaded.session, 'session:title', { title: tag })],
      seen: [loaded.session],
    }));
  } else {
    const act = () => engine.note(session.id, { command: 'status', args: tag });
    await w.attempt('note', engine, tag, act, (loaded) => ({
      facts: [eventFact(loaded.session, 'command:status', { args: tag })],
      seen: [loaded.session],
    }));
  }
}

async function compress(w: Workload): Promise<void> {
  const run = w.pick(w.runs);
  if (run === undefined) return;
  const act = () => run.engine.compress(run, { beforeTokens: 1000, afterTokens: 100, count: 1 });
  await w.attempt('compress', run.engine, null, act, ({ session }) => ({
    facts: [eventFact(session, 'session:compress', { after_tokens: 100 })],
    seen: [session],
  }));
}

async function background(w: Workload): Promise<void> {
  const sessionId = w.pick(w.runs)?.sessionId ?? w.someSession()?.id;
  if (sessionId === undefined) return;
  const { engine } = w.tenure;
  const act = () => engine.background(sessionId, between(w.random, 0, 2));
  await w.attempt('background', engine, null, act, ({ session }) => ({ facts: [], seen: [session] }));
}

async function reset(w: Workload): Promise<void> {
  const { engine } = w.tenure;
  const tag = w.tag();
  const conversation = w.someConversation();
  const facts = w.chance(0.5) ? { slash: { command: 'new', args: tag } } : { title: tag };
  const act = () => engine.reset(conversation, facts);
  await w.attempt('reset', engine, tag, act, ({ session, ended }) => ({
    facts: [
      { is: 'started', session: session.id, key: conversation.key, parent: ended },
      ...(ended === null ? [] : [endedFact(ended, 'user_reset', session)]),
    ],
    seen: [session],
  }));
}

function endedFact(session: string, reason: EndReason, successor: Session): Fact {
  return { is: 'ended', session, reason, cause: null, successor: successor.id };
}

async function continueFrom(w: Workload): Promise<void> {
  const from = w.someSession();
  if (from === undefined || from.attached) return;
  const { engine } = w.tenure;
  const tag = w.tag();
  const lineage = w.chance(0.5) ? 'resume' : 'branch';
  const facts = {
    trigger: 'command',
    slash: { command: lineage, args: tag },
    ...(w.chance(0.3) ? { conversation: w.someConversation() } : {}),
  } as const;
  const act = () => engine.continueFrom(from.id, lineage, facts);
  await w.attempt('continue', engine, tag, act, ({ session, ended, created }) => ({
    facts: [
      { is: 'started', session: session.id, key: session.key, parent: created ? from.id : session.parentId },
      ...(ended === null ? [] : [endedFact(ended, lineage === 'resume' ? 'switched' : 'branched', session)]),
    ],
    seen: [session],
  }));
}

async function rollOver(w: Workload): Promise<void> {
  const turn = w.pick(await waitingTurns(w));
  if (turn === undefined) return;
  const { engine } = w.tenure;
  const act = () => engine.rollOver(turn.sessionId);
  await w.attempt('rollOver', engine, null, act, (rolled) => {
    if (rolled === null) return { facts: [], seen: [] };
    const { session, ended } = rolled;
    return {
      facts: [rolledOver(ended, session), { is: 'started', session: session.id, key: session.key, parent: ended.id }],
      seen: [session],
    };
  });
}

async function end(w: Workload): Promise<void> {
  const session = w.someSession();
  if (session === undefined) return;
  const reason = w.pick(['api_close', 'admin_close', 'cli_close', 'webhook_complete', 'deleted'] as const);
  await endSession(w, session.id, reason ?? 'admin_close');
}

async function endSession(w: Workload, sessionId: string, reason: EndReason, epoch?: number): Promise<void> {
  const { engine } = w.tenure;
  const mine = w.runs.find((run) => run.sessionId === sessionId);
  const cause = w.pick([undefined, 'exit', 'signal'] as const);
  const facts = { reason, trigger: 'api', ...(cause && { cause }), ...(epoch !== undefined && { epoch }) } as const;
  const act = () => engine.end(sessionId, facts);
  const done = await w.attempt('end', engine, null, act, ({ session }) => ({
    facts: [
      { is: 'ended', session: session.id, reason: session.endReason ?? reason, cause: session.endCause },
      eventFact(session, 'session:end', { reason: session.endReason, cause: session.endCause }),
    ],
    seen: [session],
  }));
  if (done !== null && mine !== undefined) w.giveUp(mine);
}

/** A session that dies with this process, unless it is ended before; sometimes it has a turn, or a parent. */
async function attach(w: Workload): Promise<void> {
  const { engine } = w.tenure;
  const kind = w.pick(['cli', 'batch', 'child'] as const) ?? 'cli';
  const parent = kind === 'child' ? w.pick(w.runs)?.sessionId : undefined;
  const conversation = w.attachedConversation(kind);
  const title = w.tag();
  const lineage = parent === undefined ? {} : { parentId: parent, lineage: 'spawn' as const };
  const session = await w.attempt(
    'start',
    engine,
    title,
    () => engine.start(conversation, { title, ...lineage }),
    (value) => ({
      facts: [{ is: 'started', session: value.id, key: conversation.key, parent: parent ?? null }],
      seen: [value],
    }),
  );
  if (session === null) return;
  const then = w.random();
  if (then < 0.4) await endSession(w, session.id, kind === 'cli' ? 'cli_close' : 'batch_complete', session.epoch);
  else if (then < 0.7) await talkIn(w, conversation);
}

async function talkIn(w: Workload, conversation: ReturnType<Workload['attachedConversation']>): Promise<void> {
  const { engine } = w.tenure;
  const ref = w.tag();
  const act = () => engine.receive({ conversation, text: ref, originRef: ref, by: 'user' });
  // A child that has ended with its parent meanwhile is not started again by what was to be said to it.
  const races = conversation.kind === 'child' ? (['session_ended'] as const) : [];
  const received = await w.attempt('receive', engine, ref, act, (value) => receivedTruth(value, ref), races);
  if (received?.begun) w.runs.push(runOf(w, received.session, received.turn.id));
}

/** Starting where a session is open already must say so. */
async function startAgain(w: Workload): Promise<void> {
  const { engine } = w.tenure;
  const tag = w.tag();
  const conversation = w.someConversation();
  const act = () => engine.start(conversation, { title: tag });
  await w.attempt('start', engine, tag, act, (session) => ({
    facts: [{ is: 'started', session: session.id, key: conversation.key, parent: null }],
    seen: [session],
  }));
}

/** Makes a job, or makes one that is there due now. */
async function scheduleJob(w: Workload): Promise<void> {
  const { engine } = w.tenure;
  const id = `job-${between(w.random, 1, 6)}`;
  const now = Date.now();
  const facts = { id, name: null, schedule: 'every 1m', timezone: 'UTC', prompt: id, madeIn: null, madeBy: null };
  const act = async (): Promise<void> => {
    const known = await engine.store.read('listJobs', { madeIn: null });
    if (known.some((job) => job.id === id)) {
      await engine.store.write('scheduleJob', { id, nextAt: now, paused: false });
    } else await engine.store.write('addJob', { ...facts, target: { to: 'local' }, nextAt: now });
  };
  // Two that make the same job at once: the second finds its id taken.
  await act().catch(() => undefined);
}

function eventFact(session: Session, type: string, has: Readonly<Record<string, unknown>> = {}): Fact {
  return { is: 'event', session: session.id, seq: session.seq, type, has };
}

/** Everything a process does, and how often in relation to the rest. */
const DEEDS: readonly (readonly [weight: number, deed: Deed])[] = [
  [28, receive],
  [22, finish],
  [8, begin],
  [1, drop],
  [10, append],
  [4, interrupt],
  [4, writeStale],
  [3, haunt],
  [1.5, suspend],
  [8, remark],
  [1, compress],
  [2, background],
  [3, reset],
  [3, continueFrom],
  [1.5, rollOver],
  [3, end],
  [4, attach],
  [1, startAgain],
  [0.3, loseTakeover],
  [3, scheduleJob],
];
const TOTAL = DEEDS.reduce((sum, [weight]) => sum + weight, 0);

export function drawDeed(random: Random): Deed {
  let point = random() * TOTAL;
  for (const [weight, deed] of DEEDS) {
    point -= weight;
    if (point < 0) return deed;
  }
  return receive;
}

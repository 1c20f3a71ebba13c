import assert from 'node:assert/strict';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { MoiraiError } from '../errors/moirai-error.ts';
import type { Command, StartCommand } from './commands.ts';
import { deadlineOf } from './deadline.ts';
import { EVENT_TYPES, isNumbered } from './events.ts';
import { DEFAULT_RESET_RULES, type ResetMode, type ResetPolicy } from './reset-policy.ts';
import { isParked, type Session, type SessionWithTurns, type Turn } from './session.ts';
import { type CommandName, MOVES, moveFrom, SESSION_STATES, type SessionState } from './states.ts';
import type { TransitionContext } from './steps.ts';
import { type Transition, transition } from './transition.ts';

const NOW = Date.parse('2026-02-02T12:00:00Z');
const KEY = 'agent:main:telegram:dm:42';

const START: StartCommand = {
  name: 'start',
  sessionId: 'ses',
  key: KEY,
  kind: 'chat',
  platform: 'telegram',
  userId: 'ada',
  origin: null,
  parentId: null,
  lineage: null,
  attached: false,
  title: null,
  resetOf: null,
};

const CONTEXT: TransitionContext = {
  now: NOW,
  instance: 'one',
  commandId: 'cmd',
  policy: DEFAULT_RESET_RULES.reset,
  resumeWindowMs: 3_600_000,
  stuckAfter: 3,
};

const RESULT = { outcome: 'done', response: 'yes', model: 'loom-1', usage: { input: 3, output: 2 } } as const;

const SPEAKER = { userId: 'u1', userName: 'Ann', origin: { chat: '7' } };

/** One command of each name that needs no more than a session with a waiting turn `waiting`. */
const COMMANDS: { readonly [N in CommandName]: Extract<Command, { name: N }> } = {
  start: START,
  touch: { name: 'touch', by: 'user' },
  enqueue: { name: 'enqueue', turnId: 'new', text: 'hello', by: 'user', ...SPEAKER },
  begin: { name: 'begin', turnId: 'waiting' },
  append: { name: 'append', messages: 2, epoch: null },
  finish: { name: 'finish', turnId: 'waiting', epoch: null, ...RESULT },
  interrupt: { name: 'interrupt', reason: 'restart', epoch: null },
  suspend: { name: 'suspend', reason: 'operator' },
  reopen: { name: 'reopen' },
  background: { name: 'background', running: 1, epoch: null },
  release: { name: 'release' },
  compress: { name: 'compress', beforeTokens: 9, afterTokens: 3, count: 1, epoch: null },
  title: { name: 'title', title: 'a title' },
  note: { name: 'note', command: 'status', args: '' },
  end: { name: 'end', reason: 'admin_close', cause: null, trigger: 'cli', successorId: null, epoch: null },
};
const COMMAND_NAMES = Object.keys(COMMANDS) as CommandName[];

/** The session and its turns after commands, each of which must be legal. */
function live(commands: readonly Command[], context: Partial<TransitionContext> = {}): SessionWithTurns {
  let current: SessionWithTurns | null = null;
  for (const command of commands) current = after(current, transition(current, command, { ...CONTEXT, ...context }));
  if (current === null) throw new Error('a life begins with a start');
  return current;
}

function after(current: SessionWithTurns | null, { session, turns }: Transition): SessionWithTurns {
  const all = new Map((current?.turns ?? []).map((turn) => [turn.id, turn]));
  for (const turn of turns) all.set(turn.id, turn);
  const unfinished = [...all.values()].filter((turn) => turn.state !== 'over' && turn.sessionId === session.id);
  return { session, turns: unfinished };
}

const waiting: Command = { name: 'enqueue', turnId: 'waiting', text: 'hello', by: 'user', ...SPEAKER };
const running: readonly Command[] = [
  { name: 'enqueue', turnId: 'running', text: 'hello', by: 'user', ...SPEAKER },
  { name: 'begin', turnId: 'running' },
];

/** A session in each state, with a turn `waiting` wherever one can wait. */
const BY_STATE: Readonly<Record<SessionState, SessionWithTurns>> = {
  open: live([START, waiting]),
  resume_pending: live([START, ...running, COMMANDS.interrupt, waiting]),
  suspended: live([START, waiting, COMMANDS.suspend]),
  ended: live([START, COMMANDS.end]),
};

function codeOf(action: () => unknown): string {
  try {
    action();
    return 'no error';
  } catch (error) {
    if (error instanceof MoiraiError) return error.code;
    throw error;
  }
}

describe('every state takes the commands of the table and refuses the others', () => {
  for (const state of SESSION_STATES) {
    for (const name of COMMAND_NAMES.filter((other) => other !== 'start')) {
      const target = moveFrom(state, name);
      test(`${name} of a session that is ${state} ${target === undefined ? 'is refused' : `makes it ${target}`}`, () => {
        // Only a running turn can be interrupted, and a session with one is open.
        const current = name === 'interrupt' && state === 'open' ? live([START, ...running]) : BY_STATE[state];
        const give = () => transition(current, COMMANDS[name], CONTEXT);
        if (target !== undefined) expect(give().session.state).toBe(target);
        else expect(codeOf(give)).toBe(state === 'ended' ? 'session_ended' : 'illegal_move');
      });
    }
  }

  test('nothing but a start begins a life, and nothing starts twice', () => {
    for (const name of COMMAND_NAMES.filter((other) => other !== 'start')) {
      expect(codeOf(() => transition(null, COMMANDS[name], CONTEXT))).toBe('session_not_found');
    }
    expect(transition(null, START, CONTEXT).session.state).toBe(MOVES.none.start);
    for (const current of Object.values(BY_STATE)) {
      expect(codeOf(() => transition(current, START, CONTEXT))).toBe('session_exists');
    }
  });
});

describe('a start', () => {
  test('of an attached session has an owner, an epoch and a heartbeat; of a durable one nothing of it', () => {
    const attached = transition(null, { ...START, kind: 'cli', attached: true }, CONTEXT).session;
    expect(attached).toMatchObject({ owner: 'one', epoch: 1, lastHeartbeatAt: NOW, expiresAt: null });
    const durable = transition(null, START, CONTEXT).session;
    expect(durable).toMatchObject({ owner: null, epoch: 0, lastHeartbeatAt: null, expiresAt: NOW + 86_400_000 });
  });

  test('that a user asked for tells the reset after itself', () => {
    const { events } = transition(null, { ...START, resetOf: 'old' }, CONTEXT);
    expect(events).toMatchObject([
      { sessionSeq: 1, draft: { type: 'session:start' } },
      { sessionSeq: 2, draft: { type: 'session:reset', fields: { old_session_id: 'old', new_session_id: 'ses' } } },
    ]);
  });

  test('with a key that is none is refused', () => {
    for (const key of ['', 'x', 'agent:main:telegram:dm:../x', 'agent:main:telegram:dm:a\u0000b']) {
      expect(codeOf(() => transition(null, { ...START, key }, CONTEXT))).toBe('bad_key');
    }
  });
});

describe('a turn', () => {
  test('begins once, and only one runs', () => {
    const current = live([START, ...running, waiting]);
    expect(codeOf(() => transition(current, { name: 'begin', turnId: 'waiting' }, CONTEXT))).toBe('illegal_move');
    expect(codeOf(() => transition(current, { name: 'begin', turnId: 'running' }, CONTEXT))).toBe('illegal_move');
    expect(codeOf(() => transition(current, { name: 'begin', turnId: 'unknown' }, CONTEXT))).toBe('turn_not_found');
  });

  test('that only waited is dropped without an event', () => {
    const { events, turns, session } = transition(BY_STATE.open, COMMANDS.finish, CONTEXT);
    expect(events).toEqual([]);
    expect(turns).toMatchObject([{ id: 'waiting', state: 'over', outcome: 'done', endedAt: NOW }]);
    expect(session.lastActivityAt).toBe(NOW);
  });

  test('of the system ends without being activity of a user', () => {
    const quiet: Command = { name: 'enqueue', turnId: 'cron', text: 'tick', by: 'system', ...SPEAKER };
    const current = live([START, quiet, { name: 'begin', turnId: 'cron' }]);
    const later = { ...CONTEXT, now: NOW + 5000 };
    const { session } = transition(current, { ...COMMANDS.finish, turnId: 'cron' }, later);
    expect(session).toMatchObject({ lastActivityAt: NOW, lastSystemAt: NOW + 5000, expiresAt: NOW + 86_400_000 });
  });

  test('keeps its place in the queue when the clock is set back', () => {
    const current = live([START, waiting]);
    const { turns } = transition(current, COMMANDS.enqueue, { ...CONTEXT, now: NOW - 60_000 });
    expect(turns[0]?.createdAt).toBeGreaterThanOrEqual(NOW);
  });

  test('tells a session its place when the session does not know it, and never another one', () => {
    const lost = live([START, COMMANDS.enqueue]);
    expect(lost.session.origin).toEqual({ chat: '7' });
    const elsewhere = { ...COMMANDS.enqueue, turnId: 'next', origin: { chat: '8' } };
    expect(transition(lost, elsewhere, CONTEXT).session.origin).toEqual({ chat: '7' });
  });

  test('is begun again by its owner alone while a background process lives', () => {
    const current = live([START, COMMANDS.background, waiting]);
    expect(codeOf(() => transition(current, COMMANDS.begin, { ...CONTEXT, instance: 'two' }))).toBe('fenced');
    expect(transition(current, COMMANDS.begin, CONTEXT).session).toMatchObject({ owner: 'one', epoch: 2 });
  });
});

describe('an interruption', () => {
  test('needs a running turn of a durable session', () => {
    expect(codeOf(() => transition(BY_STATE.open, COMMANDS.interrupt, CONTEXT))).toBe('illegal_move');
    const attached = live([{ ...START, attached: true }, ...running]);
    expect(codeOf(() => transition(attached, COMMANDS.interrupt, CONTEXT))).toBe('illegal_move');
  });

  test('that is one too many parks the session: two moves of the table at once', () => {
    const current = live([START, ...running]);
    const { session, turns, events } = transition(current, COMMANDS.interrupt, { ...CONTEXT, stuckAfter: 1 });
    expect(session).toMatchObject({ state: MOVES.resume_pending.suspend, cuts: 1, resumeReason: null, resumeAt: null });
    expect(turns).toMatchObject([{ state: 'over', outcome: 'failed', cuts: 1 }]);
    expect(events.map(({ draft }) => draft.type)).toEqual(['agent:end', 'session:resume_pending', 'session:suspend']);
  });
});

describe('a fence', () => {
  test.each(['append', 'finish', 'interrupt', 'background', 'compress', 'end'] as const)(
    'refuses %s at another epoch or by another instance',
    (name) => {
      const current = live([START, ...running]);
      const command = { ...COMMANDS[name], turnId: 'running' } as Extract<Command, { epoch: number | null }>;
      const give = (epoch: number | null, instance: string) => () =>
        transition(current, { ...command, epoch }, { ...CONTEXT, instance });
      expect(codeOf(give(0, 'one'))).toBe('fenced');
      expect(codeOf(give(2, 'one'))).toBe('fenced');
      expect(codeOf(give(1, 'two'))).toBe('fenced');
      expect(codeOf(give(1, 'one'))).toBe('no error');
      expect(codeOf(give(null, 'two'))).toBe('no error');
    },
  );
});

describe('an end', () => {
  test('takes what waits along to the successor, and ends the rest', () => {
    const current = live([START, ...running, waiting]);
    const { turns, events } = transition(current, { ...COMMANDS.end, successorId: 'next' }, CONTEXT);
    expect(turns).toMatchObject([
      { id: 'running', state: 'over', outcome: 'interrupted', sessionId: 'ses' },
      { id: 'waiting', state: 'queued', outcome: null, sessionId: 'next' },
    ]);
    expect(events.map(({ draft }) => draft.type)).toEqual(['agent:end', 'session:end']);
  });

  test('counts no time backwards', () => {
    const { events } = transition(BY_STATE.open, COMMANDS.end, { ...CONTEXT, now: NOW - 1 });
    expect(events.at(-1)?.draft.fields).toMatchObject({ duration_ms: 0 });
  });
});

// Any sequence of commands, by any instance, at any time, under any policy.

interface Step {
  readonly command: (current: SessionWithTurns | null) => Command;
  readonly instance: string;
  readonly later: number;
}

const turnIds = fc.constantFrom('t1', 't2', 't3', 't4');
const actors = fc.constantFrom('user' as const, 'system' as const);
/** The epoch as the sender of the command believes it to be: usually right, sometimes old, sometimes not asked. */
const epochs = fc.constantFrom('right', 'right', 'old', 'none');

function epochOf(belief: string, current: SessionWithTurns | null): number | null {
  if (belief === 'none' || current === null) return null;
  return belief === 'right' ? current.session.epoch : current.session.epoch - 1;
}

function fenced(make: (epoch: number | null) => Command): fc.Arbitrary<Step['command']> {
  return epochs.map((belief) => (current: SessionWithTurns | null) => make(epochOf(belief, current)));
}

const plain = (command: Command) => () => command;

const anyCommand: fc.Arbitrary<Step['command']> = fc.oneof(
  { weight: 1, arbitrary: fc.constant(plain(START)) },
  { weight: 2, arbitrary: actors.map((by) => plain({ name: 'touch', by })) },
  {
    weight: 8,
    // A turn id is used once: the store takes a second one for the same message.
    arbitrary: actors.map((by) => (current: SessionWithTurns | null) => ({
      name: 'enqueue' as const,
      turnId: `t${(current?.session.version ?? 0) % 50}-${current?.session.version}`,
      text: 'hello',
      by,
      ...SPEAKER,
    })),
  },
  {
    weight: 8,
    arbitrary: fc.nat(3).map((nth) => (current: SessionWithTurns | null) => ({
      name: 'begin' as const,
      turnId: current?.turns[nth % Math.max(1, current.turns.length)]?.id ?? 'none',
    })),
  },
  { weight: 2, arbitrary: fenced((epoch) => ({ name: 'append', messages: 1, epoch })) },
  {
    weight: 6,
    arbitrary: fc.tuple(epochs, fc.nat(3)).map(([belief, nth]) => (current: SessionWithTurns | null) => ({
      name: 'finish' as const,
      turnId: current?.turns[nth % Math.max(1, current.turns.length)]?.id ?? 'none',
      epoch: epochOf(belief, current),
      ...RESULT,
    })),
  },
  { weight: 5, arbitrary: fenced((epoch) => ({ name: 'interrupt', reason: 'crash', epoch })) },
  { weight: 1, arbitrary: fc.constant(plain({ name: 'suspend', reason: 'operator' })) },
  {
    weight: 3,
    arbitrary: fc.tuple(epochs, fc.nat(2)).map(([belief, count]) => (current: SessionWithTurns | null) => ({
      name: 'background' as const,
      running: count,
      epoch: epochOf(belief, current),
    })),
  },
  { weight: 1, arbitrary: fc.constant(plain({ name: 'reopen' })) },
  { weight: 2, arbitrary: fc.constant(plain({ name: 'release' })) },
  { weight: 1, arbitrary: fenced((epoch) => ({ name: 'compress', beforeTokens: 9, afterTokens: 3, count: 1, epoch })) },
  { weight: 1, arbitrary: fc.constant(plain({ name: 'title', title: 'a title' })) },
  { weight: 1, arbitrary: turnIds.map((args) => plain({ name: 'note', command: 'status', args })) },
  {
    weight: 1,
    arbitrary: fc.constantFrom(null, 'next').map((successorId) => plain({ ...COMMANDS.end, successorId })),
  },
);

const anyStep: fc.Arbitrary<Step> = fc.record({
  command: anyCommand,
  instance: fc.constantFrom('one', 'one', 'two'),
  later: fc.oneof(fc.nat(3_600_000), fc.integer({ min: -3_600_000, max: 100_000_000 })),
});

const anyPolicy: fc.Arbitrary<ResetPolicy> = fc.record({
  mode: fc.constantFrom<ResetMode>('none', 'idle', 'daily', 'both'),
  idleMs: fc.constantFrom(60_000, 86_400_000),
  at: fc.constant('04:00'),
  timezone: fc.constantFrom('UTC', 'America/New_York'),
  notify: fc.constant('next' as const),
  notifyExclude: fc.constant([]),
});

const REFUSALS = new Set(['session_exists', 'session_ended', 'illegal_move', 'fenced', 'turn_not_found']);

test('any sequence of commands leaves a life that keeps every rule', () => {
  const seen = { steps: 0, refused: 0, states: new Set<string>(), commands: new Set<string>() };
  fc.assert(
    fc.property(
      fc.array(anyStep, { minLength: 10, maxLength: 80 }),
      anyPolicy,
      fc.boolean(),
      fc.integer({ min: 1, max: 3 }),
      (steps, policy, attached, stuckAfter) => {
        const context = { ...CONTEXT, policy, stuckAfter };
        const start = { ...START, attached };
        let current = after(null, transition(null, start, context));
        const history = new History(transition(null, start, context));
        let now = NOW;
        for (const [i, { command, instance, later }] of steps.entries()) {
          now += later;
          seen.steps++;
          const given = command(current);
          const before = deepFreeze(current);
          let result: Transition;
          try {
            result = transition(before, given, { ...context, now, instance, commandId: `cmd-${i}` });
          } catch (error) {
            seen.refused++;
            if (!(error instanceof MoiraiError) || !REFUSALS.has(error.code)) throw error;
            continue;
          }
          seen.commands.add(given.name);
          seen.states.add(result.session.state);
          current = after(before, result);
          assertMove(before.session, given, result);
          history.add(result);
          assertSession(current, policy);
        }
      },
    ),
    { numRuns: 1000 },
  );
  // The walk has been everywhere: a property over nothing proves nothing.
  expect([...seen.states].toSorted()).toEqual([...SESSION_STATES].toSorted());
  expect(seen.commands.size).toBe(COMMAND_NAMES.length - 1);
  expect(seen.steps - seen.refused).toBeGreaterThan(5000);
});

/** What one session has told so far. */
class History {
  #seq = 0;
  #ended = false;

  constructor(first: Transition) {
    this.add(first);
  }

  add({ events, session }: Transition): void {
    for (const { draft, sessionSeq } of events) {
      assert.equal(this.#ended, false);
      assert.ok(draft.type.startsWith('command:') || EVENT_TYPES.some((type) => type === draft.type));
      if (isNumbered(draft.type)) assert.equal(sessionSeq, ++this.#seq);
      else assert.equal(sessionSeq, null);
      this.#ended = draft.type === 'session:end';
    }
    assert.equal(session.seq, this.#seq);
    assert.equal(this.#ended, session.state === 'ended');
  }
}

function assertMove(before: Session, command: Command, { session, turns }: Transition): void {
  assert.equal(session.version, before.version + 1);
  assert.ok(session.epoch >= before.epoch);
  if (session.owner !== null && session.owner !== before.owner) assert.equal(session.epoch, before.epoch + 1);
  assert.ok(session.lastActivityAt >= before.lastActivityAt);
  const target = moveFrom(before.state, command.name);
  const stuck = command.name === 'interrupt' && session.state === 'suspended';
  assert.equal(session.state, stuck ? MOVES.resume_pending.suspend : target);
  for (const turn of turns) assert.equal((turn.state === 'over') === (turn.outcome !== null), true);
}

function assertSession({ session, turns }: SessionWithTurns, policy: ResetPolicy): void {
  const count = (state: Turn['state']) => turns.filter((turn) => turn.state === state).length;
  const ended = session.state === 'ended';
  const held = session.background > 0 || count('queued') + count('running') > 0;
  assert.equal(session.suspendReason !== null, session.state === 'suspended');
  const timeless = session.attached || ended || isParked(session) || held || policy.mode === 'none';
  assert.equal(session.expiresAt === null, timeless);
  assert.equal(session.expiresCause === null, timeless);
  const { expiresAt, expiresCause } = session;
  assert.deepEqual(deadlineOf({ session, turns }, policy, CONTEXT.resumeWindowMs), { expiresAt, expiresCause });
  assert.ok(count('running') <= 1);
  // Whoever dies is missed: what needs a process names the instance it lives in.
  if (count('running') > 0 || session.background > 0) assert.notEqual(session.owner, null);
  if (session.attached && !ended) assert.notEqual(session.owner, null);
  // And nobody else does: the reaper looks for owners in just these three places.
  const needed = count('running') > 0 || session.background > 0 || (session.attached && !ended);
  assert.equal(session.owner !== null, needed);
  assert.equal(ended && session.checkAt !== null, false);
  if (session.expiresAt !== null) assert.ok(session.checkAt !== null && session.checkAt <= session.expiresAt);
  if (ended) assert.deepEqual([session.owner, session.background, session.expiresAt, turns], [null, 0, null, []]);
  assert.equal((session.endedAt !== null) === ended && (session.endReason !== null) === ended, true);
  assert.equal((session.state === 'resume_pending') === (session.resumeReason !== null), true);
  assert.equal((session.state === 'resume_pending') === (session.resumeAt !== null), true);
  if (session.state !== 'open') assert.equal(count('running'), 0);
  if (session.state !== 'resume_pending') assert.equal(count('cut'), 0);
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value)) {
    Object.freeze(value);
    for (const part of Object.values(value)) deepFreeze(part);
  }
  return value;
}

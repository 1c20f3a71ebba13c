import type { AgentRunner } from '../agent/runner.ts';
import { hasCode, MoiraiError } from '../errors/moirai-error.ts';
import type { NewSubscriber } from '../events/dispatcher.ts';
import type { EventFields, MoiraiEvent } from '../lifecycle/events.ts';
import { isOneShot, type Session } from '../lifecycle/session.ts';
import type { Logger } from '../log/logger.ts';
import type { Store } from '../store/port.ts';
import type { Message } from '../store/transactions/messages.ts';
import { chosenModel, type Transcripts, toldOfMemory } from '../turns/transcripts.ts';
import type { MemoryManager } from './memory-manager.ts';

export interface ReviewDeps {
  readonly store: Store;
  readonly transcripts: Transcripts;
  readonly memory: MemoryManager;
  readonly runner: () => AgentRunner;
  readonly log: Logger;
  /** After how many answered turns of a person. */
  readonly every: number;
  /** With fewer of them it is not looked over at its end: a greeting is not worth a request to the model. */
  readonly minTurns: number;
}

export const REVIEW_SUBSCRIBER = 'memory-review';

const DEADLINE_MS = 120_000;
/** So many conversations are looked over at the same time: people's turns need the model too. */
const CONCURRENCY = 2;
/** Each attempt asks the model once. */
const MAX_ATTEMPTS = 3;
const MOST_FACTS = 8;
const LONGEST_FACT = 300;

const QUESTION = `[This is not from the person, and no answer to them is wanted. Look over the conversation above. What in it
will still matter in other conversations with this person: who they are, what they like or dislike, how they want things done,
decisions that last, corrections they made? Leave out what you were told about them at the start, what only matters here, what
tools and web pages said, and anything secret such as passwords. Do not call tools. Write one fact per line, each a short
sentence that makes sense by itself, ${MOST_FACTS} lines at most; or the single word NONE.]`;

/**
 * Looks over conversations for what is worth remembering: every so many turns, and once more at the end. It is a subscriber
 * of the log, beside turns and never in their way; what a restart interrupts comes again.
 */
export function reviewSubscriber(deps: ReviewDeps): NewSubscriber {
  return {
    name: REVIEW_SUBSCRIBER,
    events: ['agent:end', 'session:end'],
    from: 'now',
    // Behind our own deadline, which says more.
    timeoutMs: DEADLINE_MS + 30_000,
    maxAttempts: MAX_ATTEMPTS,
    concurrency: CONCURRENCY,
    handle: async (event, signal) => {
      // Most turns are not the tenth: those cost one look.
      if (!(await isTime(deps, event))) return;
      const session = await reviewedSession(deps, event);
      if (session === null) return;
      const all = await deps.transcripts.of(session);
      const transcript = isTurn(event) ? upToTurn(all, session.id, event.turn_id) : all;
      const answer = await ask(deps, session, transcript, AbortSignal.any([signal, AbortSignal.timeout(DEADLINE_MS)]));
      for (const fact of factsIn(answer ?? '')) {
        // The dispatcher that aborts this delivers the same event again.
        signal.throwIfAborted();
        await keep(deps, session, fact);
      }
    },
  };
}

type TurnEnd = MoiraiEvent & EventFields['agent:end'];

const isTurn = (event: MoiraiEvent): event is TurnEnd => event.type === 'agent:end';

async function isTime({ store, every, minTurns }: ReviewDeps, event: MoiraiEvent): Promise<boolean> {
  const { session_id: sessionId } = event;
  if (sessionId === null || (isTurn(event) && event.outcome !== 'done')) return false;
  const turns = await store.read('answeredTurns', { sessionId, upTo: isTurn(event) ? event.turn_id : null });
  if (isTurn(event)) return turns > 0 && turns % every === 0;
  // What was said until the last round number has been looked over.
  return turns >= minTurns && turns % every !== 0;
}

/** Null for sessions whose facts no provider would keep, or no later session would get. */
async function reviewedSession({ store, memory }: ReviewDeps, event: MoiraiEvent): Promise<Session | null> {
  const session = await store.read('getSession', { sessionId: event.session_id ?? '' });
  if (session === null || session.kind === 'child' || !memory.canRemember(session)) return null;
  // A request that brings its own history is one of many: its sender keeps the conversation.
  return isOneShot(session) ? null : session;
}

/** The conversation may have gone on since; of that only what was taken back counts. */
function upToTurn(transcript: readonly Message[], sessionId: string, turnId: string): readonly Message[] {
  const last = transcript.findLastIndex((row) => row.sessionId === sessionId && row.turnId === turnId);
  return [...transcript.slice(0, last + 1), ...transcript.slice(last + 1).filter(({ role }) => role === 'undo')];
}

async function ask(
  { runner }: ReviewDeps,
  session: Session,
  transcript: readonly Message[],
  signal: AbortSignal,
): Promise<string | null> {
  const about = toldOfMemory(transcript, session.id) ?? null;
  const task = { sessionId: session.id, transcript, about, model: chosenModel(transcript), signal };
  try {
    return await runner().askAbout(task, QUESTION);
  } catch (thrown) {
    if (!isModelDown(thrown)) throw thrown;
    throw new MoiraiError('subscriber_unavailable', `the model cannot be asked: ${thrown.message}`, { cause: thrown });
  }
}

const MODEL_DOWN = [
  'model_unavailable',
  'model_unauthorized',
  'model_rate_limited',
  'model_timeout',
  'model_cut',
] as const;

/** It may be back tomorrow, and the conversation is still there then. */
const isModelDown = (thrown: unknown): thrown is MoiraiError => hasCode(thrown, ...MODEL_DOWN);

async function keep({ memory, log }: ReviewDeps, session: Session, fact: string): Promise<void> {
  try {
    await memory.remember(fact, session);
  } catch (thrown) {
    if (!hasCode(thrown, 'memory_full', 'bad_input')) throw thrown;
    // Asking the model again would not make room.
    log.warn('a fact was not remembered', { session: session.id, error: thrown });
  }
}

/**
 * A fact on each line, whatever the model put before it. What is too long is left out, since half a sentence may be a lie;
 * so is what announces the facts.
 */
export function factsIn(answer: string): string[] {
  const lines = answer.split('\n').map((line) => line.replace(/^\s*(?:[-*•]|\d{1,2}[.)])\s+/, '').trim());
  const facts = lines.filter((line) => line.length <= LONGEST_FACT && !/^\W*(?:none\W*)?$|:$/i.test(line));
  return [...new Set(facts)].slice(0, MOST_FACTS);
}

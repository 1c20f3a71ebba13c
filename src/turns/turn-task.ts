import type { TurnContext, TurnTask } from '../agent/runner.ts';
import { unlessAborted } from '../agent/unless-aborted.ts';
import type { Hold } from '../engine/holdings.ts';
import type { Turn } from '../lifecycle/session.ts';
import type { Store } from '../store/port.ts';
import type { Message, MessageToAppend } from '../store/transactions/messages.ts';
import { TURN_TEXT_SEEN } from '../store/transactions/rows.ts';
import { chosenModel } from './transcripts.ts';
import type { TurnRunDeps } from './turn-deps.ts';
import type { TurnRun } from './turn-run.ts';

/** A turn that begins to run, as its task is made of it. */
export interface TaskSource {
  readonly run: TurnRun;
  readonly hold: Hold;
  /** What the agent is told about a turn that was interrupted before. */
  readonly note: string | null;
  readonly transcript: Message[];
  /** The words of the person are in the transcript already, with what was recalled for them. */
  readonly isUserKept: boolean;
  readonly context: TurnContext;
}

/** What the agent gets for a turn: files are fetched, and memory and plugins asked, while no other turn waits for it. */
export async function makeTask(source: TaskSource, deps: TurnRunDeps): Promise<TurnTask> {
  const { run, note, transcript, isUserKept, context } = source;
  const { session, turn, signal } = run;
  const text = isUserKept ? null : await textWithFiles(run, deps);
  const model = chosenModel(transcript);
  const [{ about, recalled }, added] = await unlessAborted(
    Promise.all([remember(source, text, deps), text === null ? null : deps.plugins.before(run, text, model)]),
    signal,
  );
  const notes = [note, recalled, added].filter((one) => one !== null);
  return {
    sessionId: session.id,
    turnId: turn.id,
    platform: session.platform,
    userId: turn.userId,
    transcript,
    text,
    about,
    note: notes.length === 0 ? null : notes.join('\n\n'),
    model,
    signal,
    context,
  };
}

/** The whole text of a turn, which carries only the beginning of a long one. */
export async function wholeText({ id, text }: Turn, store: Store): Promise<string> {
  if (text.length < TURN_TEXT_SEEN) return text;
  return (await store.read('turnText', { turnId: id })) ?? '';
}

async function textWithFiles({ session, turn, signal }: TurnRun, deps: TurnRunDeps): Promise<string> {
  const text = await wholeText(turn, deps.engine.store);
  return unlessAborted(deps.textWithFiles(session, turn.id, text, signal), signal);
}

/** What memory has for the prompt. Words that are in the transcript already carry what was recalled for them. */
async function remember(
  { run, hold, transcript }: TaskSource,
  text: string | null,
  { memory, engine }: TurnRunDeps,
): Promise<{ about: string | null; recalled: string | null }> {
  const { turn } = run;
  const session = { ...run.session, userId: turn.userId };
  const keep = async (row: MessageToAppend): Promise<void> => {
    const position = await engine.append(hold, [row]);
    transcript.push({ data: null, ...row, sessionId: session.id, position, at: Date.now() });
  };
  const [about, recalled] = await Promise.all([
    memory.about(session, transcript, keep),
    text === null ? null : memory.recall(session, { turnId: turn.id, text }, transcript),
  ]);
  return { about, recalled };
}

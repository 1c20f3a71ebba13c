import { MoiraiError } from '../errors/moirai-error.ts';
import type { Message, MessageToAppend } from '../store/transactions/messages.ts';
import { keepUnsavedRows } from './keep-unsaved-rows.ts';
import { estimateTokens } from './model/context-window.ts';
import { effectiveRows } from './prompt.ts';
import type { AgentRunner, TurnReport, TurnTask } from './runner.ts';
import { assistantRow, noteRow, userRow } from './transcript.ts';

const MODEL = 'offline';
const LONGEST_ECHO = 200;

const SETUP = `Set OPENAI_API_KEY or ANTHROPIC_API_KEY, or put an OpenAI-compatible server into config.yaml:
model: { base_url: "http://127.0.0.1:11434/v1", name: "llama3.2" }
then restart the gateway.`;

/** Answers without any model, so that everything else can be tried. Says what it is, and the same for the same words. */
export class OfflineRunner implements AgentRunner {
  readonly model = MODEL;
  readonly description = 'offline: no model is configured, replies are canned';

  async run(task: TurnTask): Promise<TurnReport> {
    const { text, note, turnId, context } = task;
    const rows = effectiveRows(task.transcript);
    const isSaid = text === null || task.transcript.some((row) => row.role === 'user' && row.turnId === turnId);
    const said = text ?? rows.findLast(({ role }) => role === 'user')?.text;
    if (said === undefined) throw new MoiraiError('bad_input', 'a turn without text needs something to go on with');
    const resumed = note === null ? [] : [noteRow(turnId, note)];
    const messages = isSaid ? resumed : [userRow(turnId, text, note)];
    const reply = replyTo(said, task.transcript);
    await speak(reply, task, messages);
    context.channel.publish({ type: 'step', iteration: 1, tools: [] });
    return {
      ...{ text: reply, model: MODEL, compressed: null },
      messages: [...messages, assistantRow(turnId, reply)],
      usage: { input: estimateTokens(said.length), output: estimateTokens(reply.length) },
    };
  }

  /** It reads nothing, so nothing can be too long. */
  async compress(): Promise<null> {
    return null;
  }

  /** It cannot think. */
  async askAbout(): Promise<null> {
    return null;
  }

  async models(): Promise<readonly string[]> {
    return [MODEL];
  }

  async forget(): Promise<void> {}

  async close(): Promise<void> {}
}

async function speak(
  reply: string,
  { context, signal, turnId }: TurnTask,
  unkept: readonly MessageToAppend[],
): Promise<void> {
  let said = '';
  // Word by word, with what stands between them, so that the pieces make the whole.
  for (const piece of reply.match(/\S+\s*|\s+/g) ?? []) {
    // Between pieces everybody else gets a turn, so that an abort is heard.
    await new Promise(setImmediate);
    if (signal.aborted) {
      const partial = said === '' ? [] : [assistantRow(turnId, said, { partial: true })];
      await keepUnsavedRows(context, [...unkept, ...partial]);
    }
    signal.throwIfAborted();
    said += piece;
    context.channel.publish({ type: 'text', text: piece });
  }
}

/** A few plain requests are understood: enough to see that a conversation is one. */
function replyTo(said: string, transcript: readonly Message[]): string {
  const words = said.trim();
  const repeat = /^(?:say|repeat|echo)\s+([\s\S]+)$/i.exec(words)?.[1];
  if (repeat !== undefined) return repeat;
  if (/^(hi|hello|hey|hallo|good (morning|evening))\b[\s!.]*$/i.test(words)) {
    return `Hello. I am Moirai's offline model: I can hold a session, but I cannot think. ${SETUP}`;
  }
  if (/\bhow many messages\b/i.test(words)) {
    const count = effectiveRows(transcript).filter(({ role }) => role === 'user').length;
    return `You had written ${count} ${count === 1 ? 'message' : 'messages'} in this conversation before this one.`;
  }
  const echo = words.length > LONGEST_ECHO ? `${words.slice(0, LONGEST_ECHO)}...` : words;
  return `I understood: "${echo}". I am Moirai's offline model and cannot answer that. ${SETUP}`;
}

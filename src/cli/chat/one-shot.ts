import { once } from 'node:events';
import { ERROR_HINTS, type ErrorCode } from '../../errors/codes.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import type { TurnResultRow } from '../../store/transactions/turns.ts';
import { failureMessage } from '../../turns/texts.ts';
import { complain, print, printable, printJson } from '../print.ts';
import { reportError } from '../report-error.ts';
import type { Settings } from '../settings.ts';
import { listenToSignals } from './signals.ts';
import { type ReplyPresenter, TerminalConversation } from './terminal-conversation.ts';
import { progressLine } from './turn-view.ts';
import { visibleText } from './visible-text.ts';

/** What came of the one message. */
interface Answer {
  readonly session_id: string | null;
  readonly turn_id: string | null;
  /** Null when the turn failed or was stopped. */
  readonly reply: string | null;
  readonly outcome: string;
  readonly error: MoiraiError | null;
}

/** Says one thing, prints the reply and nothing else on standard output, and leaves. Returns the exit code. */
export async function sayOnce(settings: Settings, text: string, resume: string | null): Promise<number> {
  const interrupted = new AbortController();
  let signalled: number | null = null;
  const forget = listenToSignals((_, exitCode) => {
    signalled ??= exitCode;
    interrupted.abort();
  });
  const mention = (line: string): void => complain(`moirai: ${printable(line)}\n`);
  const failed = (thrown: unknown): void => mention(MoiraiError.wrap(thrown).message);
  let conversation: TerminalConversation | null = null;
  let code = 1;
  const presenter: ReplyPresenter = {
    approvalRequested: (pending) => {
      mention(`refused, as nobody is there to be asked: ${pending.request.action}`);
      conversation?.answer(pending, 'deny', 'nobody is there to be asked').catch(failed);
    },
    notice: mention,
    lost: () => {
      mention('this process was away for longer than its lease, so the session was given up');
      process.exit(1);
    },
  };
  try {
    conversation = await TerminalConversation.open(settings, presenter, true);
    if (resume !== null) await conversation.resume(resume);
    const answer = await ask(conversation, text, interrupted.signal);
    code = await tell(answer, settings.json);
  } finally {
    await conversation?.end();
    forget();
  }
  return signalled ?? code;
}

async function ask(conversation: TerminalConversation, text: string, interrupted: AbortSignal): Promise<Answer> {
  const result = await conversation.say(text);
  if (result.type === 'answer') {
    const session_id = result.session?.id ?? null;
    return { session_id, turn_id: null, reply: result.text, outcome: 'done', error: null };
  }
  const unwatch = result.channel.subscribe((event) => {
    const line = progressLine(event);
    if (line !== null) complain(`${line}\n`);
  });
  const turn = await Promise.race([result.channel.ended, stopped(conversation, interrupted)]);
  unwatch();
  const facts = { session_id: turn?.sessionId ?? result.received.session.id, turn_id: result.received.turn.id };
  const error = turn === null ? new MoiraiError('turn_stopped', 'the turn was not finished') : errorOf(turn);
  const reply = error === null ? (turn?.response ?? '') : null;
  return { ...facts, reply, outcome: turn?.outcome ?? 'interrupted', error };
}

/** Resolves when a signal has stopped the turn, or has waited for that as long as makes sense. */
async function stopped(conversation: TerminalConversation, interrupted: AbortSignal): Promise<null> {
  if (!interrupted.aborted) await once(interrupted, 'abort');
  await conversation.stopTurn();
  return null;
}

/** Why a turn has no reply; null when it has one. */
function errorOf({ outcome, error, response }: TurnResultRow): MoiraiError | null {
  if (outcome === 'done') return null;
  if (outcome === 'interrupted') return new MoiraiError('turn_stopped', 'the turn was stopped before it was done');
  const code = isErrorCode(error) ? error : 'internal';
  return new MoiraiError(code, response === null ? `the turn ended as ${outcome}` : failureMessage(code, response));
}

function isErrorCode(code: string | null): code is ErrorCode {
  return code !== null && Object.hasOwn(ERROR_HINTS, code);
}

async function tell({ error, ...answer }: Answer, json: boolean): Promise<number> {
  if (json) await printJson(answer);
  else if (answer.reply !== null) await print(`${visibleText(answer.reply).trimEnd()}\n`);
  return error === null ? 0 : reportError(error, json);
}

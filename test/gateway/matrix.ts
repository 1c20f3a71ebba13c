import type { MoiraiEvent } from '../../src/lifecycle/events.ts';
import type { Session } from '../../src/lifecycle/session.ts';
import type { Message } from '../../src/store/transactions/messages.ts';
import { isEndOf, PRESENT, type Testimony, WITNESSES, type Witness } from './witnesses.ts';

/** What is known after a session went one of its ways. */
export interface Evidence {
  /** The session that ended; or was cut and goes on. */
  readonly session: Session;
  readonly events: readonly (MoiraiEvent & { readonly seq: number })[];
  readonly messages: readonly Message[];
  /** What was said in the session and has to be in its transcript. */
  readonly said: readonly string[];
  /** Sessions whose tools were closed; null where the process died with them. */
  readonly closed: readonly string[] | null;
  /** What waited when it happened, and what became of it; null where nothing can wait. */
  readonly waited: { readonly text: string; readonly reply: string | null } | null;
  /** What the person was told; null where there is nobody to tell. */
  readonly told: readonly string[] | null;
  /** What hooks, plugins, webhooks and memory wrote down. */
  readonly heard: readonly Testimony[];
}

export interface Path {
  readonly name: string;
  readonly ends: { readonly reason: string; readonly cause: string | null; readonly trigger: string } | null;
  /** Words the person has to read about it. */
  readonly tells?: RegExp;
  /** A new session begins in the same conversation, in the same transaction. */
  readonly successor?: true;
  /** The process dies in the middle: who heard of it may hear of it again. */
  readonly mayRepeat?: true;
  /** There is no transcript any more when memory hears of it. */
  readonly removed?: true;
  /** It goes on, but plugins let go of what they hold for it, as at an end. */
  readonly finalized?: true;
  go(): Promise<Evidence>;
}

type Verdict = 'yes' | 'n/a' | string;
type Column = (evidence: Evidence, path: Path) => Verdict;

/** The end, once, with its reason; and to a plugin before the reset that names the next session. */
function heardBy(who: Witness): Column {
  return ({ session, heard, said }, { ends, removed, finalized, mayRepeat }) => {
    if (!PRESENT.includes(who)) return 'n/a';
    const own = heard.filter((each) => each.who === who);
    if (who === 'plugin' && finalized) {
      const told = own.filter(({ event }) => event.session_id === session.id && event.reason === 'shutdown');
      return told.length === 1 ? 'yes' : `finalized ${told.length} times`;
    }
    const found = own.filter((each) => isEndOf(each, session.id));
    if (ends === null) return found.length === 0 ? 'n/a' : 'an end that is none';
    const [end] = found;
    const distinct = new Set(found.map(({ event }) => event.id));
    if (end === undefined || distinct.size > 1 || (found.length > 1 && !mayRepeat))
      return `heard ${found.length} times`;
    if (end.event.reason !== ends.reason) return `heard as ${end.event.reason}`;
    const reset = own.findIndex(({ event }) => event.type === 'session:reset' && event.old_session_id === session.id);
    if (reset >= 0 && reset < own.indexOf(end)) return 'after the reset';
    if (who !== 'memory' || removed) return 'yes';
    const missing = said.filter((text) => !end.said?.includes(text));
    return missing.length === 0 ? 'yes' : `without: ${missing.join(', ')}`;
  };
}

/** What every way has to leave behind. A verdict is `yes`, `n/a`, or what is wrong. */
export const COLUMNS: Readonly<Record<string, Column>> = {
  'row ended with reason': ({ session }, { ends }) => {
    if (ends === null) return session.state === 'ended' ? `ended as ${session.endReason}` : 'n/a';
    const { state, endReason, endCause, endedAt } = session;
    const right = state === 'ended' && endReason === ends.reason && endCause === ends.cause && endedAt !== null;
    return right ? 'yes' : `${state}, ${endReason}, ${endCause}`;
  },
  'one session:end': ({ session, events }, { ends }) => {
    const found = events.filter(({ type, session_id }) => type === 'session:end' && session_id === session.id);
    if (ends === null) return found.length === 0 ? 'n/a' : 'an end that is none';
    const [end] = found;
    const right = found.length === 1 && end?.reason === ends.reason && end.trigger === ends.trigger;
    return right ? 'yes' : JSON.stringify(found);
  },
  'end before start': ({ session, events }, { successor }) => {
    if (!successor) return 'n/a';
    const end = events.find(({ type, session_id }) => type === 'session:end' && session_id === session.id);
    const start = events.find(({ type, session_id }) => type === 'session:start' && session_id === end?.successor_id);
    return end !== undefined && start !== undefined && end.seq < start.seq ? 'yes' : 'out of order';
  },
  'transcript complete': ({ messages, said }) => {
    const missing = said.filter((text) => !messages.some((row) => row.role === 'user' && row.text === text));
    return missing.length === 0 ? 'yes' : `missing: ${missing.join(', ')}`;
  },
  'tools closed': ({ session, closed }, { ends }) => {
    if (closed === null || ends === null) return 'n/a';
    return closed.includes(session.id) ? 'yes' : 'still open';
  },
  'queued messages kept': ({ waited }) => {
    if (waited === null) return 'n/a';
    return waited.reply === `did: ${waited.text}` ? 'yes' : `it got: ${waited.reply}`;
  },
  'user told': ({ told }, { tells }) => {
    if (told === null || tells === undefined) return 'n/a';
    return told.some((text) => tells.test(text)) ? 'yes' : `told only: ${told.join(' | ')}`;
  },
  'nothing twice': ({ events }) => {
    const ids = events.map(({ id }) => id);
    if (new Set(ids).size !== ids.length) return 'an event twice';
    const open = new Map<string, number>();
    for (const { type, turn_id } of events) {
      if (type !== 'agent:start' && type !== 'agent:end') continue;
      const running = (open.get(String(turn_id)) ?? 0) + (type === 'agent:start' ? 1 : -1);
      if (running < 0 || running > 1) return `turn ${String(turn_id)} begun or ended twice`;
      open.set(String(turn_id), running);
    }
    return 'yes';
  },
  ...Object.fromEntries(WITNESSES.map((who) => [who, heardBy(who)])),
};

/** The table as the docs show it. */
export function tableOf(rows: readonly { readonly name: string; readonly verdicts: readonly Verdict[] }[]): string {
  const names = Object.keys(COLUMNS);
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const body = rows.map(({ name, verdicts }) =>
    line([name, ...verdicts.map((verdict) => (verdict === 'n/a' ? '–' : verdict))]),
  );
  return [line(['path', ...names]), line(['---', ...names.map(() => '---')]), ...body].join('\n');
}

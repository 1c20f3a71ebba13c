import { type MoiraiEvent, matches } from '../../src/lifecycle/events.ts';
import { REPLY_SET_ASIDE_TEXT } from '../../src/turns/texts.ts';
import type { History } from './history.ts';

type Row = Record<string, string | number | null>;

/** Everything in a store, as its tables say it. Events in the order of `no`. */
export interface StoreDump {
  readonly sessions: readonly Row[];
  readonly events: readonly Row[];
  readonly turns: readonly Row[];
  readonly lanes: readonly Row[];
  readonly deliveries: readonly Row[];
  readonly runs: readonly Row[];
}

/** What each subscriber of the simulation listens to. */
const LISTENS: Readonly<Record<string, readonly string[]>> = {
  steady: ['*'],
  flaky: ['session:*', 'instance:lost'],
};

/** The promises, checked on what is left at the end, by rules of their own: nothing of the code under test is used. */
export function checkStore(dump: StoreDump, history: History): void {
  const bodies = dump.events.map((row) => JSON.parse(String(row.body)) as MoiraiEvent);
  const bySession = Map.groupBy(
    bodies.filter((event) => event.session_id !== null && event.session_seq !== null),
    (event) => event.session_id ?? '',
  );
  for (const session of dump.sessions) checkSession(session, bySession.get(String(session.id)) ?? [], history);
  checkKeys(dump.sessions, history);
  checkTurns(dump, history);
  checkReplies(dump, history);
  checkRunsOfJobs(dump, history);
  for (const [subscriber, patterns] of Object.entries(LISTENS)) checkDelivery(subscriber, patterns, bodies, history);
}

function checkSession(session: Row, events: readonly MoiraiEvent[], history: History): void {
  const wrong = (what: string): void => history.violation(`session ${session.id}: ${what}`);
  events.forEach((event, i) => {
    if (event.session_seq !== i + 1) wrong(`event ${i + 1} has number ${event.session_seq}`);
    if (event.id !== `${session.id}:${i + 1}`) wrong(`event ${i + 1} has id ${event.id}`);
  });
  if (session.seq !== events.length) wrong(`row says ${session.seq} events, the log has ${events.length}`);
  if (events[0]?.type !== 'session:start') wrong(`begins with ${events[0]?.type}`);
  const starts = events.filter((event) => event.type === 'session:start').length;
  const ends = events.filter((event) => event.type === 'session:end');
  if (starts !== 1) wrong(`${starts} starts`);
  if (session.state !== 'ended') {
    if (ends.length !== 0) wrong('is open and has an end');
    return;
  }
  const [end] = ends;
  if (ends.length !== 1 || end === undefined) {
    wrong(`${ends.length} ends`);
    return;
  }
  if (events.at(-1) !== end) wrong(`${events.at(-1)?.type} after the end`);
  if (end.reason !== session.end_reason || end.cause !== session.end_cause) wrong('row and event differ in the reason');
  if (new Date(end.at).getTime() !== session.ended_at) wrong('row and event differ in the time');
  if (end.reason === null || end.reason === undefined) wrong('ended without a reason');
  checkRuns(events, wrong);
}

/** Every `agent:start` is answered by one `agent:end` of the same turn before the next and before the end. */
function checkRuns(events: readonly MoiraiEvent[], wrong: (what: string) => void): void {
  let running: unknown = null;
  for (const event of events) {
    if (event.type === 'agent:start') {
      if (running !== null) wrong(`turn ${event.turn_id} started while ${running} ran`);
      running = event.turn_id;
    } else if (event.type === 'agent:end') {
      if (running !== event.turn_id) wrong(`turn ${event.turn_id} ended while ${running} ran`);
      running = null;
    }
  }
  if (running !== null) wrong(`turn ${running} never ended`);
}

function checkKeys(sessions: readonly Row[], history: History): void {
  for (const [key, rows] of Map.groupBy(sessions, (row) => row.key)) {
    const open = rows.filter((row) => row.state !== 'ended').length;
    if (open > 1) history.violation(`${key} has ${open} open sessions`);
  }
}

/** No acknowledged message is lost, and none became two turns. */
function checkTurns(dump: StoreDump, history: History): void {
  const byRef = Map.groupBy(dump.turns, (turn) => turn.origin_ref);
  for (const ref of history.acknowledgedRefs) {
    const count = byRef.get(ref)?.length ?? 0;
    if (count !== 1) history.violation(`acknowledged message ${ref} has ${count} turns`);
  }
  for (const turn of dump.turns) {
    if (turn.state !== 'over') history.violation(`turn ${turn.id} is ${turn.state} at the end`);
  }
}

/** Every reply arrived, in the order of its conversation, and twice only with the mark of a possible repetition. */
function checkReplies({ deliveries }: StoreDump, history: History): void {
  const last = new Map<unknown, number>();
  let notices = 0;
  for (const { id, session_key: key, state } of deliveries) {
    const arrival = history.arrivals.get(String(id));
    if (state === 'queued') history.violation(`reply ${id} is queued at the end`);
    if (state === 'failed') continue;
    // It says that a reply was passed over, in the same words as others of its kind: those are counted together.
    if (String(id).endsWith(':notice')) {
      notices++;
      continue;
    }
    if (arrival === undefined) {
      history.violation(`reply ${id} never arrived`);
      continue;
    }
    if (arrival.unmarked > 1) history.violation(`reply ${id} arrived ${arrival.unmarked} times without a mark`);
    if (arrival.at < (last.get(key) ?? -1)) history.violation(`reply ${id} arrived out of order`);
    last.set(key, arrival.at);
  }
  const { times = 0, unmarked = 0 } = history.arrivals.get(REPLY_SET_ASIDE_TEXT) ?? {};
  if (times < notices || unmarked > notices)
    history.violation(`of ${notices} notices ${times} arrived, ${unmarked} of them without a mark`);
}

/** Every run of a job has a session of its own, which ended. */
function checkRunsOfJobs({ runs, sessions }: StoreDump, history: History): void {
  const states = new Map(sessions.map(({ id, state }) => [id, state]));
  for (const { job_id: job, tick_at: tick, session_id: id } of runs) {
    if (states.get(id) !== 'ended') history.violation(`the run of ${job} at ${tick} is ${states.get(id)}`);
  }
}

/** Every event at least once, first deliveries in the log's order within each conversation. */
function checkDelivery(
  subscriber: string,
  patterns: readonly string[],
  events: readonly MoiraiEvent[],
  history: History,
): void {
  const seen = history.deliveries.get(subscriber) ?? new Map<string, number>();
  const last = new Map<string, number>();
  for (const event of events) {
    const about = event.type === 'hook:failed' && event.subscriber === subscriber;
    if (about || !patterns.some((pattern) => matches(pattern, event.type))) continue;
    const at = seen.get(event.id);
    if (at === undefined) {
      history.violation(`${subscriber} never got ${event.type} ${event.id}`);
      continue;
    }
    const key = event.session_key ?? '';
    if (at < (last.get(key) ?? -1)) history.violation(`${subscriber} got ${event.id} out of order`);
    last.set(key, at);
  }
}

import type { Engine } from '../engine/engine.ts';
import type { Session } from '../lifecycle/session.ts';
import type { Logger } from '../log/logger.ts';
import { findHome } from '../outbound/home-channel.ts';
import { outgoingTo } from '../outbound/outgoing.ts';
import type { TargetPlace } from '../outbound/targets.ts';
import type { Platform } from '../platforms/platform.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';
import { isSentTo } from '../turns/reply-target.ts';
import { JOB_CUT_TEXT, jobFailedText, saysNothing, sentByJob } from '../turns/texts.ts';
import type { JobTarget } from './job-store.ts';
import { type RunOrigin, refOf, runOf } from './run-origin.ts';

export interface JobResultsDeps {
  readonly engine: Engine;
  readonly log: Logger;
  /** The platform of that name, if it is there: it knows how long its messages may be. */
  readonly platform: (name: string) => Platform | null;
}

/**
 * Sends the result of a run, once its session has ended, whether or not the process that ran it still runs. It is called
 * for the event of the end, and may be called twice.
 */
export async function tellResult(deps: JobResultsDeps, session: Session, eventId: string): Promise<void> {
  const run = runOf(session);
  if (run === null) return;
  const turn = await deps.engine.store.read('turnByRef', { originRef: refOf(run) });
  const text = resultText(run, turn);
  if (text !== null) await tellTarget(deps, session, { run, text, id: `${eventId}:result` });
}

/** Null when there is nothing to tell. */
function resultText({ title, passed_over }: RunOrigin, turn: TurnResultRow | null): string | null {
  if (passed_over !== undefined) return jobFailedText(title, passed_over);
  const answer = turn?.response ?? '';
  if (turn?.outcome === 'done') return saysNothing(answer) ? null : answer;
  const said = turn?.outcome === 'failed' || turn?.outcome === 'timeout';
  return jobFailedText(title, said ? answer : JOB_CUT_TEXT);
}

/** Says something to where a run's results go: it is sent, and the agent of that conversation knows of it. */
export async function tellTarget(
  { engine, log, platform }: JobResultsDeps,
  session: Session,
  { run, text, id }: { run: RunOrigin; text: string; id: string },
): Promise<void> {
  const place = await placeOf(engine, run.target);
  if (place === null) {
    if (run.target.to === 'home')
      log.info('a job has an answer and there is no home channel to tell', { job: run.job, session: session.id });
    return;
  }
  const deliveries = isSentTo(place.platform) ? outgoingTo(place, text, platform(place.platform), id) : [];
  await engine.store.write('addExternalNote', {
    ...{ context: engine.commandContext(), sessionId: session.id, id, deliveries },
    ...{ key: place.key, note: sentByJob(run.title, text) },
  });
}

async function placeOf(engine: Engine, target: JobTarget): Promise<TargetPlace | null> {
  if (target.to === 'local') return null;
  if (target.to === 'place') return target;
  const home = await findHome(engine.store);
  return home === null ? null : { key: null, ...home };
}

import { randomBytes } from 'node:crypto';
import type { Approval, ApprovalRequest } from '../agent/runner.ts';
import type { Engine } from '../engine/engine.ts';
import type { Session } from '../lifecycle/session.ts';
import type { Approvals } from '../people/approvals.ts';
import type { TurnRun } from '../turns/turn-run.ts';
import type { Turns } from '../turns/turns.ts';
import type { ChatPlatforms } from './chat-platforms.ts';

export interface AskDeps {
  readonly engine: Engine;
  readonly approvals: Approvals;
  readonly turns: Turns;
  readonly chat: ChatPlatforms;
}

/** Asks the people of the conversation that a turn works for, wherever they are. */
export async function askPeople(deps: AskDeps, run: TurnRun, request: ApprovalRequest): Promise<Approval> {
  const { approvals, turns, chat } = deps;
  const session = await askedSession(deps.engine, run);
  if (session === null) return { allowed: false, reason: 'nobody is there to be asked' };
  const id = randomBytes(8).toString('hex');
  const answer = approvals.ask({ id, key: session.key, request, askedOf: run.turn.userId }, run.signal);
  const question = { type: 'question', id, ...request } as const;
  // Work that was delegated asks in the turn that waits for it, too.
  const channels = new Set([run.channel, turns.runOf(session.id)?.channel ?? run.channel]);
  for (const channel of channels) channel.publish({ ...question, state: 'asked' });
  void answer.then(({ allowed }) => {
    for (const channel of channels) channel.publish({ ...question, state: allowed ? 'allowed' : 'denied' });
  });
  await chat.ask(session, run.turn, id, request);
  return answer;
}

/** The session whose people can answer: that of the conversation which work was delegated from; null for nobody. */
async function askedSession({ store }: Engine, run: TurnRun): Promise<Session | null> {
  let session: Session | null = run.session;
  while (session !== null && session.kind === 'child' && session.parentId !== null) {
    session = await store.read('getSession', { sessionId: session.parentId });
  }
  if (session === null || session.kind === 'cron' || session.kind === 'batch') return null;
  // A request that is answered as a whole shows its sender no question.
  const alone = session.kind === 'api' && session.attached;
  return alone && !run.channel.watched ? null : session;
}

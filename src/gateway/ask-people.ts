import type { Approval, ApprovalRequest } from '../agent/runner.ts';
import type { Engine } from '../engine/engine.ts';
import { personIn } from '../lifecycle/namespace.ts';
import { isOneShot, type Session } from '../lifecycle/session.ts';
import type { Logger } from '../log/logger.ts';
import type { Approvals } from '../people/approvals.ts';
import type { TurnRun } from '../turns/turn-run.ts';
import type { Turns } from '../turns/turns.ts';
import type { ChatPlatforms } from './chat-platforms.ts';

export interface AskDeps {
  readonly engine: Engine;
  readonly approvals: Approvals;
  readonly turns: Turns;
  readonly chat: ChatPlatforms;
  readonly log: Logger;
}

/** Asks the people of the conversation that a turn works for, wherever they are. */
export async function askPeople(deps: AskDeps, run: TurnRun, request: ApprovalRequest): Promise<Approval> {
  const { approvals, turns, chat, log } = deps;
  const session = await askedSession(deps.engine, run);
  if (session === null) return { allowed: false, reason: NOBODY_THERE };
  return approvals.ask(
    { session, turnId: run.turn.id, request, askedOf: personIn(session.key, run.turn.userId) },
    run.signal,
    ({ id, settled }) => {
      const { tool, action } = request;
      const question = { type: 'question', id, tool, action } as const;
      // Work that was delegated asks in the turn that waits for it, too.
      const channels = new Set([run.channel, turns.runOf(session.id)?.channel ?? run.channel]);
      for (const channel of channels) channel.publish({ ...question, state: 'asked' });
      void settled.then(({ allowed }) => {
        for (const channel of channels) channel.publish({ ...question, state: allowed ? 'allowed' : 'denied' });
      });
      chat.ask(session, run.turn, id, request).catch((error: unknown) => {
        log.warn('a question to people was not sent', { session: session.id, approval: id, error });
      });
    },
  );
}

const NOBODY_THERE =
  'nobody can be asked here (a one-shot request, a job, a webhook, or BOOT.md); what may run without asking is in agent.allow_commands';

const UNATTENDED: ReadonlySet<string> = new Set(['cron', 'batch', 'webhook']);

/** The session whose people can answer: that of the conversation which work was delegated from; null for nobody. */
async function askedSession({ store }: Engine, run: TurnRun): Promise<Session | null> {
  let session: Session | null = run.session;
  while (session !== null && session.kind === 'child' && session.parentId !== null) {
    session = await store.read('getSession', { sessionId: session.parentId });
  }
  if (session === null || UNATTENDED.has(session.kind)) return null;
  // A request that is answered as a whole shows its sender no question.
  return isOneShot(session) && !run.channel.watched ? null : session;
}

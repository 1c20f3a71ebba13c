import { randomUUID } from 'node:crypto';
import type { ToolPorts } from '../agent/tools/ports.ts';
import type { Asker } from '../agent/tools/tool.ts';
import type { Config } from '../config/config.ts';
import { runOf } from '../cron/run-origin.ts';
import type { Engine } from '../engine/engine.ts';
import type { Session } from '../lifecycle/session.ts';
import { idOfSent, sendOut } from '../outbound/send-out.ts';
import { resolveTarget } from '../outbound/targets.ts';
import { workspaceFor } from '../people/workspaces.ts';
import type { Platform } from '../platforms/platform.ts';
import type { Message } from '../store/transactions/messages.ts';
import { type Children, sessionServed } from '../turns/children.ts';
import { sentFor } from '../turns/texts.ts';

export interface ToolPortsDeps {
  readonly engine: Engine;
  readonly workspace: Config['agent']['workspace'];
  readonly rules: { readonly groupPerUser: boolean; readonly threadPerUser: boolean };
  readonly children: () => Children;
  readonly platform: (name: string) => Platform | null;
}

/** What the agent's tools may ask of the gateway. */
export function toolPorts({ engine, workspace, rules, children, platform }: ToolPortsDeps): ToolPorts {
  return {
    workspaceOf: async ({ sessionId }) => {
      const session = await sessionServed(engine.store, sessionId);
      const madeIn = runOf(session)?.made_in ?? null;
      return workspaceFor(workspace, madeIn === null ? session : { kind: 'chat', key: madeIn });
    },
    sendMessage: async (target, words, { sessionId, turnId }) => {
      const asker = await findSession(engine, sessionId);
      const place = await resolveTarget(target, { store: engine.store, rules, asker });
      const who = await senderName(engine, asker, turnId);
      if (place === null) return 'Kept here; nothing was sent.';
      const id = idOfSent(sessionId, randomUUID());
      // What is sent to where it comes from, or by who has the host, needs no name.
      const text = place.key === asker.key || who === OPERATOR ? words : sentFor(who, words);
      await sendOut(engine, sessionId, { place, who, text, id, platform: platform(place.platform) });
      return `On its way to ${place.platform}.`;
    },
    delegate: async (task, { sessionId, userId }, signal) => {
      return children().delegate(await findSession(engine, sessionId), userId, task, signal);
    },
    searchSessions: (text, asker, limit) => searchFor(engine, asker, text, limit),
  };
}

/**
 * Only what was said in the same conversation: a shared one has more listeners than the person it is named after. Terminals
 * are one person's, the operator's.
 */
async function searchFor(engine: Engine, asker: Asker, text: string, limit: number): Promise<Message[]> {
  const { key, kind } = await findSession(engine, asker.sessionId);
  return engine.search(text, kind === 'cli' ? { kind } : { key }, limit);
}

function findSession(engine: Engine, sessionId: string): Promise<Session> {
  return engine.store.read('findSession', { idOrPrefix: sessionId });
}

const OPERATOR = 'The operator';

/** Whoever's message the agent works for, as others read it. */
async function senderName({ store }: Engine, session: Session, turnId: string): Promise<string> {
  const { kind, platform } = session;
  if (kind === 'cli' || kind === 'batch') return OPERATOR;
  const run = runOf(session);
  if (run !== null) return `The scheduled job “${run.title}”`;
  const turn = await store.read('getTurn', { turnId });
  if (turn === null || turn.userId === null) return `Somebody without a name on ${platform}`;
  const id = `${platform}:${turn.userId}`;
  return turn.userName === null ? id : `${turn.userName} (${id})`;
}

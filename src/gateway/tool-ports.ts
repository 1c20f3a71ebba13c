import { randomUUID } from 'node:crypto';
import type { ToolPorts } from '../agent/tools/ports.ts';
import type { Asker } from '../agent/tools/tool.ts';
import type { Config } from '../config/config.ts';
import { runOf } from '../cron/run-origin.ts';
import type { Engine } from '../engine/engine.ts';
import type { Session } from '../lifecycle/session.ts';
import { sendOut } from '../outbound/send-out.ts';
import { resolveTarget } from '../outbound/targets.ts';
import { workspaceFor } from '../people/workspaces.ts';
import type { Platform } from '../platforms/platform.ts';
import type { Message } from '../store/transactions/messages.ts';
import { type Children, sessionServed } from '../turns/children.ts';

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
    sendMessage: async (target, text, { sessionId }) => {
      const asker = await findSession(engine, sessionId);
      const place = await resolveTarget(target, { store: engine.store, rules, asker });
      if (place === null) return 'Kept here; nothing was sent.';
      const id = `${sessionId}:sent:${randomUUID()}`;
      await sendOut(engine, sessionId, { place, text, id, platform: platform(place.platform) });
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

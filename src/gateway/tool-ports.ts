import { randomUUID } from 'node:crypto';
import type { ToolPorts } from '../agent/tools/ports.ts';
import type { Asker } from '../agent/tools/tool.ts';
import type { Config } from '../config/config.ts';
import { runOf } from '../cron/run-origin.ts';
import type { Engine } from '../engine/engine.ts';
import { searchTranscripts } from '../engine/transcript.ts';
import type { Session } from '../lifecycle/session.ts';
import { idOfSent, sendOut } from '../outbound/send-out.ts';
import { type KeptFile, keepToSend, refusalOf } from '../outbound/sent-files.ts';
import { resolveTarget, type TargetPlace } from '../outbound/targets.ts';
import { workspaceFor } from '../people/workspaces.ts';
import { abilitiesAt } from '../platforms/abilities.ts';
import type { Place, Platform } from '../platforms/platform.ts';
import type { Message } from '../store/transactions/messages.ts';
import { type Children, sessionServed } from '../turns/children.ts';
import { sentFor } from '../turns/texts.ts';

export interface ToolPortsDeps {
  readonly engine: Engine;
  readonly agent: Pick<Config['agent'], 'workspace' | 'maxReceived'>;
  readonly rules: { readonly groupPerUser: boolean; readonly threadPerUser: boolean };
  readonly children: () => Children;
  readonly platform: (name: string) => Platform | null;
}

/** What the agent's tools may ask of the gateway. */
export function toolPorts({ engine, agent, rules, children, platform }: ToolPortsDeps): ToolPorts {
  const workspaceOf = async ({ sessionId }: Asker): Promise<string> => {
    const session = await sessionServed(engine.store, sessionId);
    const madeIn = runOf(session)?.made_in ?? null;
    return workspaceFor(agent.workspace, madeIn === null ? session : { kind: 'chat', key: madeIn });
  };
  const send = async (
    target: string,
    words: string,
    { sessionId, turnId }: Asker,
    filesFor: (place: TargetPlace) => Promise<KeptFile[]>,
  ): Promise<string> => {
    const asker = await findSession(engine, sessionId);
    const place = await resolveTarget(target, { store: engine.store, rules, asker });
    if (place === null) return 'Kept here; nothing was sent.';
    const who = await senderName(engine, asker, turnId);
    const files = await filesFor(place);
    const id = idOfSent(sessionId, randomUUID());
    // What is sent to where it comes from, or by who has the host, needs no name.
    const text = place.key === asker.key || who === OPERATOR ? words : sentFor(who, words);
    await sendOut(engine, sessionId, { place, who, text, files, id, platform: platform(place.platform) });
    return `On its way to ${place.platform}.`;
  };
  return {
    workspaceOf,
    sendMessage: (target, words, asker) => send(target, words, asker, async () => []),
    sendFile: (target, { path, text }, asker) =>
      send(target, text, asker, async (place) => {
        const sender = platform(place.platform);
        const abilities = sender && abilitiesAt(sender, place.target as unknown as Place);
        const refusal = (bytes: number) => abilities && refusalOf(abilities, place.platform, bytes);
        const workspace = await workspaceOf(asker);
        return [await keepToSend({ source: path, workspace, maxFolderBytes: agent.maxReceived, refusal })];
      }),
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
  return searchTranscripts(engine.store, text, limit, kind === 'cli' ? { kind } : { key });
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

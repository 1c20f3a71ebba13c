import { parkSession as park } from '../../engine/parking.ts';
import { pruneRules } from '../../engine/upkeep.ts';
import { sessionView } from '../../engine/views.ts';
import { MoiraiError } from '../../errors/moirai-error.ts';
import { SESSION_KINDS, type SessionKind } from '../../lifecycle/states.ts';
import { conversationOf } from '../../store/transactions/conversations.ts';
import type { PruneRule } from '../../store/transactions/deletion.ts';
import type { Answer } from '../command.ts';
import { readConfig } from '../configuration.ts';
import { facts, printable, relativeTime } from '../print.ts';
import type { StoreSession } from '../store-session.ts';
import { reasonOf, sessionFacts } from './session-text.ts';

/** The reasons for which an operator may end a session; the gateway alone gives the others. */
export const REASONS = ['api_close', 'admin_close'] as const;
type Reason = (typeof REASONS)[number];

export function parseReason(text: string): Reason {
  const reason = REASONS.find((known) => known === text);
  if (reason !== undefined) return reason;
  throw new MoiraiError('bad_reason', `"${text}" is not a reason to give here; use ${REASONS.join(' or ')}`);
}

export async function endSession(
  here: StoreSession,
  idOrPrefix: string,
  { reason = 'admin_close' }: { reason?: Reason },
): Promise<Answer> {
  const { id } = await here.store.read('findSession', { idOrPrefix });
  const { session, already } = await (await here.engine()).end(id, { reason, trigger: 'cli' });
  const shown = printable(`${reasonOf(session)}`);
  const before = `${id} had ended before: ${shown}, ${relativeTime(session.endedAt ?? 0)}`;
  return { json: sessionView(session), text: already ? before : `Ended ${id}: ${shown}` };
}

/** Parks a session, or lets a parked one go on. */
export async function parkSession(
  here: StoreSession,
  idOrPrefix: string,
  verb: 'suspend' | 'release',
): Promise<Answer> {
  const { id } = await here.store.read('findSession', { idOrPrefix });
  const session = await park(await here.engine(), id, verb);
  const text =
    verb === 'suspend'
      ? `Parked ${id}. What is said in it waits until: moirai sessions release ${id}`
      : `Released ${id}: it is ${session.state}. What waited in it goes on where a gateway runs.`;
  return { json: sessionView(session), text };
}

/** Continues a session in a new one of its conversation, and shows it. */
export async function continueSession(
  here: StoreSession,
  idOrPrefix: string,
  lineage: 'resume' | 'branch',
  title: { title?: string } = {},
): Promise<Answer> {
  const from = await here.store.read('findSession', { idOrPrefix });
  // This process leaves at once: what was attached to one is not attached to this one.
  const conversation = { ...conversationOf(from), attached: false };
  const engine = await here.engine();
  const options = { trigger: 'cli', conversation, ...title } as const;
  const { session, ended, created } = await engine.continueFrom(from.id, lineage, options);
  const lines = [created ? `Started ${session.id}, which continues ${from.id}.` : `${session.id} is open already.`];
  if (ended !== null) lines.push(`Ended ${ended}: ${lineage === 'resume' ? 'switched' : 'branched'}.`);
  return { json: sessionView(session), text: `${lines.join('\n')}\n\n${facts(sessionFacts(session))}` };
}

export async function setTitle(here: StoreSession, idOrPrefix: string, words: readonly string[]): Promise<Answer> {
  const { id } = await here.store.read('findSession', { idOrPrefix });
  const { session } = await (await here.engine()).setTitle(id, words.join(' ').trim() || null);
  const shown = session.title === null ? 'no title' : printable(session.title);
  return { json: sessionView(session), text: `${session.id}: ${shown}` };
}

export async function deleteSession(here: StoreSession, idOrPrefix: string): Promise<Answer> {
  const { id } = await here.store.read('findSession', { idOrPrefix });
  const { ended } = await (await here.engine()).delete(id, 'cli');
  return { json: { id, deleted: true, ended }, text: ended ? `Ended and deleted ${id}` : `Deleted ${id}` };
}

interface PruneOptions {
  readonly olderThan?: number;
  readonly kind?: readonly string[];
  readonly dryRun?: boolean;
}

type Counts = Partial<Record<SessionKind, number>>;

export async function prune(here: StoreSession, { olderThan, kind, dryRun = false }: PruneOptions): Promise<Answer> {
  const ages =
    olderThan === undefined
      ? (await readConfig(here.settings)).sessions.retentionMs
      : Object.fromEntries(SESSION_KINDS.map((each) => [each, olderThan]));
  const rules = pruneRules(ages).filter((rule) => kind === undefined || kind.includes(rule.kind));
  const counts = dryRun ? await here.store.read('prunableSessions', { rules }) : await pruneAll(here, rules);
  const removed = Object.values(counts).reduce((sum, n) => sum + n, 0);
  const byKind = Object.fromEntries(Object.entries(counts).map(([name, n]) => [`  ${name}`, n]));
  const sentence = dryRun ? `${removed} sessions would be removed.` : `Removed ${removed} sessions.`;
  return {
    json: { dry_run: dryRun, removed, by_kind: counts },
    text: `${sentence}\n${removed > 0 ? facts(byKind) : ''}`,
  };
}

/** In rounds: a session goes only after those of other kinds that continue it. */
async function pruneAll(here: StoreSession, rules: readonly PruneRule[]): Promise<Counts> {
  const engine = await here.engine();
  const counts: Counts = {};
  for (let again = true; again; ) {
    again = false;
    for (const rule of rules) {
      const removed = await engine.prune(rule);
      if (removed === 0) continue;
      counts[rule.kind] = (counts[rule.kind] ?? 0) + removed;
      again = true;
    }
  }
  return counts;
}

import { MoiraiError } from '../errors/moirai-error.ts';
import type { Session } from '../lifecycle/session.ts';
import type { CommandCall } from '../turns/command.ts';
import { type CommandDeps, type CommandSpec, record } from './command.ts';

const LISTED = 10;

/** Commands about the session itself: each of them is a transition. */
export const SESSION_COMMANDS: readonly CommandSpec[] = [
  {
    name: 'new',
    ordered: true,
    aliases: ['reset'],
    takes: '[title]',
    summary: 'end this session and begin a fresh one',
    async run(call, deps) {
      const slash = { command: call.name, args: call.args };
      const facts = call.args === '' ? { slash } : { slash, title: call.args };
      const { session, ended } = await withTurnStopped(call, deps, () => deps.engine.reset(call.conversation, facts));
      deps.turns.wake(session.id);
      return ended === null ? 'A fresh session.' : `A fresh session. /resume ${ended} brings the last one back.`;
    },
  },
  {
    name: 'sessions',
    summary: 'list the sessions of this conversation',
    async run(call, deps) {
      await record(call, deps);
      const sessions = await ownSessions(call, deps);
      if (sessions.length === 0) return 'No session yet.';
      return sessions.map((session, i) => `${i + 1}. ${describe(session)}`).join('\n');
    },
  },
  {
    name: 'resume',
    ordered: true,
    takes: '[id|n|title]',
    summary: 'go on with an earlier session, in a new one that sees it',
    async run(call, deps) {
      if (call.args === '') {
        const sessions = await ownSessions(call, deps);
        const list = sessions.map((session, i) => `${i + 1}. ${describe(session)}`).join('\n');
        return list === '' ? 'There is no session to resume.' : `Which one? /resume <number>\n${list}`;
      }
      const from = await findOwn(call, deps);
      if (from.id === call.session?.id) return 'You are in that session already.';
      const facts = {
        trigger: 'command',
        conversation: call.conversation,
        slash: { command: call.name, args: call.args },
      } as const;
      const { session } = await withTurnStopped(call, deps, () => deps.engine.continueFrom(from.id, 'resume', facts));
      deps.turns.wake(session.id);
      return `Back in: ${from.title ?? from.id}. I see everything said in it.`;
    },
  },
  {
    name: 'branch',
    ordered: true,
    takes: '[name]',
    summary: 'go on in a new session that sees this one, and leave this one as it is',
    async run(call, deps) {
      const { id } = call.session ?? {};
      if (id === undefined) return NOTHING_HERE;
      const title = call.args === '' ? {} : { title: call.args };
      const slash = { command: call.name, args: call.args };
      const facts = { trigger: 'command', conversation: call.conversation, slash, ...title } as const;
      const { session } = await withTurnStopped(call, deps, () => deps.engine.continueFrom(id, 'branch', facts));
      deps.turns.wake(session.id);
      return `Branched. /resume ${id} brings the trunk back.`;
    },
  },
  {
    name: 'title',
    ordered: true,
    takes: '[text]',
    summary: 'show or set the title of this session',
    async run(call, deps) {
      if (call.session === null) return NOTHING_HERE;
      await record(call, deps);
      if (call.args === '') return call.session.title ?? 'This session has no title.';
      await deps.engine.setTitle(call.session.id, call.args);
      return `Title: ${call.args}`;
    },
  },
];

export const NOTHING_HERE = 'There is no open session here yet; write something to begin one.';

/** Lets the running turn stop first, so that the session that ends has its whole transcript. */
function withTurnStopped<T>(call: CommandCall, deps: CommandDeps, action: () => Promise<T>): Promise<T> {
  return call.session === null
    ? action()
    : deps.turns.withTurnStopped(call.session.id, { type: 'told', by: 'new' }, 'any', action);
}

/**
 * Whether whoever gives the command sits at a terminal of this machine: the operator, whose sessions all are, and each of
 * whose terminals is a conversation of its own.
 */
function isOperator({ conversation }: CommandCall): boolean {
  return conversation.kind === 'cli';
}

/** Sessions of this conversation, newest first. Nobody else sees, or continues, those of another one. */
async function ownSessions(call: CommandCall, deps: CommandDeps): Promise<Session[]> {
  const filter = {
    states: [],
    kinds: [],
    platforms: [],
    reasons: [],
    user: null,
    text: null,
    since: null,
    cursor: null,
  };
  const own = isOperator(call) ? { kinds: [call.conversation.kind], key: null } : { key: call.conversation.key };
  const page = await deps.engine.store.read('listSessions', { ...filter, ...own, limit: LISTED });
  return page.sessions;
}

async function findOwn(call: CommandCall, deps: CommandDeps): Promise<Session> {
  const sessions = await ownSessions(call, deps);
  const wanted = call.args;
  const byNumber = /^\d{1,3}$/.test(wanted) ? sessions[Number(wanted) - 1] : undefined;
  const byTitle = sessions.find(({ title }) => title?.toLowerCase() === wanted.toLowerCase());
  const found = byNumber ?? byTitle ?? (await deps.engine.store.read('findSession', { idOrPrefix: wanted }));
  // The same answer as for one that does not exist: who asks is not to learn that it does.
  if (found.key !== call.conversation.key && !isOperator(call))
    throw new MoiraiError('session_not_found', `no session ${wanted} in this conversation`);
  return found;
}

function describe({ id, title, state, endReason, messageCount, startedAt }: Session): string {
  const when = new Date(startedAt).toISOString().slice(0, 16).replace('T', ' ');
  return `${title ?? 'untitled'} (${when}, ${messageCount} messages, ${endReason ?? state}) ${id}`;
}

import { randomUUID } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Engine } from '../engine/engine.ts';
import type { Session } from '../lifecycle/session.ts';
import { buildKey } from '../lifecycle/session-key.ts';
import type { Logger } from '../log/logger.ts';
import { findHome } from '../outbound/home-channel.ts';
import type { TurnResultRow } from '../store/transactions/turns.ts';
import { BOOT_NOTE, NOTHING_TO_SAY } from '../turns/texts.ts';
import type { Turns } from '../turns/turns.ts';

export interface BootDeps {
  readonly home: string;
  readonly engine: Engine;
  readonly turns: Turns;
  readonly log: Logger;
}

/**
 * Does what BOOT.md in the home says, in a session of its own, and tells the home channel what came of it. This is about
 * the start of this very process: one that died meanwhile has nothing to catch up with, since the next one starts too.
 */
export async function runBoot(deps: BootDeps): Promise<void> {
  const { log } = deps;
  try {
    const tasks = await readTasks(join(deps.home, 'BOOT.md'));
    if (tasks === null) return;
    const { session, over } = await begin(deps, tasks);
    await settle(deps, session, await over);
  } catch (error) {
    log.error('BOOT.md was not done', { error });
  }
}

/** What is to be done; null when there is nothing but headings, comments and empty lines. */
async function readTasks(path: string): Promise<string | null> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return '';
    throw error;
  });
  const lines = withoutComments(text).split('\n');
  return lines.every((line) => /^\s*(?:#|$)/.test(line)) ? null : text.trim();
}

function withoutComments(text: string): string {
  const kept: string[] = [];
  for (let at = 0; ; ) {
    const open = text.indexOf('<!--', at);
    const close = open < 0 ? -1 : text.indexOf('-->', open + 4);
    if (close < 0) return kept.join('') + text.slice(at);
    kept.push(text.slice(at, open));
    at = close + 3;
  }
}

async function begin(
  { engine, turns }: BootDeps,
  tasks: string,
): Promise<{ session: Session; over: Promise<TurnResultRow | null> }> {
  const key = buildKey({ profile: 'main', platform: 'batch', type: 'dm', chat: `boot-${randomUUID()}` });
  // Attached: if this process dies, nobody goes on with it.
  const conversation = { key, kind: 'batch', platform: 'batch', userId: null, origin: null, attached: true } as const;
  await engine.start(conversation, { title: 'BOOT.md' });
  const text = `${BOOT_NOTE}\n\n${tasks}`;
  const message = { conversation, text, originRef: null, by: 'system' } as const;
  const { session, turn } = await turns.receive(message, { mode: 'queue', uncapped: true });
  return { session, over: turns.channels.open(turn.id).ended };
}

async function settle(deps: BootDeps, session: Session, turn: TurnResultRow | null): Promise<void> {
  // Stopped meanwhile: who ends a process also ends what is attached to it.
  if (turn === null) return;
  const answer = turn.outcome === 'interrupted' ? '' : (turn.response ?? '').trim();
  if (answer !== '' && answer.replace(/\.$/, '') !== NOTHING_TO_SAY) await tellHome(deps, session, answer);
  const done = turn.outcome === 'done';
  const reason = done ? 'batch_complete' : 'batch_failed';
  const { engine } = deps;
  await engine.settle((context) => engine.end(session.id, { reason, trigger: 'process' }, context));
  deps.log.info('BOOT.md done', { session: session.id, turn: turn.id, outcome: turn.outcome });
}

async function tellHome({ engine, log }: BootDeps, session: Session, text: string): Promise<void> {
  const home = await findHome(engine.store);
  if (home === null) {
    log.info('BOOT.md brought an answer and there is no home channel to tell (/sethome makes one)', {
      ...{ session: session.id, text },
    });
    return;
  }
  const deliveries = [{ id: `${session.id}:boot`, ...home, text }];
  await engine.store.write('addDeliveries', { context: engine.commandContext(), sessionId: session.id, deliveries });
}

import { hasCode } from '../errors/moirai-error.ts';
import { isParked, type Session } from '../lifecycle/session.ts';
import type { Engine } from './engine.ts';

/** Parks a session, or releases it; one that is so already stays so. Throws `illegal_move` and `session_ended`. */
export async function parkSession(engine: Engine, sessionId: string, verb: 'suspend' | 'release'): Promise<Session> {
  try {
    return (await engine[verb](sessionId)).session;
  } catch (thrown) {
    if (!hasCode(thrown, 'illegal_move')) throw thrown;
    const session = await engine.store.read('getSession', { sessionId });
    const isSo = session !== null && (verb === 'suspend' ? isParked(session) : session.state !== 'suspended');
    if (!isSo) throw thrown;
    return session;
  }
}

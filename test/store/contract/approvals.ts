import { describe, expect } from 'vitest';
import type { Open, Scene } from './scene.ts';
import { sceneTests } from './scene.ts';

const HOUR = 3_600_000;

export function approvalsContract(open: Open): void {
  const test = sceneTests(open);

  async function ask(scene: Scene, id: string, exact = 'make'): Promise<string> {
    const { session, turn } = await scene.ask('1');
    await askIn(scene, id, session.id, turn.id, exact);
    return session.id;
  }

  function askIn(scene: Scene, id: string, sessionId: string, turnId: string, exact: string) {
    const facts = { id, sessionId, turnId, tool: 'run_command', summary: 'make', exact, askedOf: 'telegram:1' };
    return scene.store.write('askApproval', { context: scene.context(), ...facts, timeoutMs: HOUR });
  }

  function answer(scene: Scene, id: string, decision: 'once' | 'session' | 'always' | 'deny' | 'expired') {
    const facts = { id, decision, by: 'telegram:1', reason: null };
    return scene.store.write('answerApproval', { context: scene.context(), ...facts });
  }

  const waiting = async (scene: Scene) =>
    (await scene.store.read('waitingApprovals', { key: null })).map(({ id }) => id);

  describe('what agents ask people to allow', () => {
    test('waits until it is answered, the first answer counts, and both are events of the session', async (scene) => {
      const sessionId = await ask(scene, 'apr_1');
      expect(await waiting(scene)).toEqual(['apr_1']);
      expect(await answer(scene, 'apr_1', 'deny')).toMatchObject({ counts: true, approval: { decision: 'deny' } });
      expect(await answer(scene, 'apr_1', 'once')).toMatchObject({ counts: false, approval: { decision: 'deny' } });
      expect(await waiting(scene)).toEqual([]);
      const events = await scene.events(sessionId, ['approval:*']);
      expect(events).toMatchObject([
        { type: 'approval:asked', session_seq: null, approval_id: 'apr_1', tool: 'run_command', summary: 'make' },
        { type: 'approval:answered', session_seq: null, approval_id: 'apr_1', decision: 'deny', by: 'telegram:1' },
      ]);
    });

    test('is allowed once, in its session, or always until that is revoked', async (scene) => {
      const sessionId = await ask(scene, 'apr_1');
      const granted = (exact: string, id = sessionId) => scene.store.read('grantedApproval', { sessionId: id, exact });
      await answer(scene, 'apr_1', 'once');
      expect(await granted('make')).toBeNull();
      const [turn] = await scene.store.read('openTurns', { sessionId, limit: 1 });
      await askIn(scene, 'apr_2', sessionId, turn?.id ?? '', 'make');
      await answer(scene, 'apr_2', 'session');
      expect([await granted('make'), await granted('make clean'), await granted('make', 'ses_other')]).toEqual([
        'session',
        null,
        null,
      ]);
      await askIn(scene, 'apr_3', sessionId, turn?.id ?? '', 'make clean');
      await answer(scene, 'apr_3', 'always');
      expect(await granted('make clean', 'ses_other')).toBe('always');
      expect(await scene.store.read('listApprovalRules', {})).toMatchObject([{ id: 'apr_3', madeBy: 'telegram:1' }]);
      expect(await scene.store.write('revokeApprovalRule', { id: 'apr_3' })).toMatchObject({ id: 'apr_3' });
      expect(await scene.store.write('revokeApprovalRule', { id: 'apr_3' })).toBeNull();
      expect(await granted('make clean', 'ses_other')).toBeNull();
    });

    test('expires with its time, and with the turn that asked', async (scene) => {
      await ask(scene, 'apr_1');
      scene.clock.advance(HOUR);
      expect(await waiting(scene)).toEqual([]);
      expect(await scene.store.read('abandonedApprovals', { limit: 9 })).toEqual(['apr_1']);
      expect(await answer(scene, 'apr_1', 'once')).toMatchObject({ counts: false, approval: { decision: 'expired' } });
      const { session, turn } = await scene.ask('2');
      await askIn(scene, 'apr_2', session.id, turn.id, 'make');
      await scene.cut(session.id);
      expect(await waiting(scene)).toEqual([]);
      expect(await answer(scene, 'apr_2', 'always')).toMatchObject({
        counts: false,
        approval: { decision: 'expired' },
      });
      expect(await scene.store.read('listApprovalRules', {})).toEqual([]);
    });

    test('is answered by the call whose answer was lost, when that comes again', async (scene) => {
      await ask(scene, 'apr_1');
      const args = { context: scene.context(), id: 'apr_1', decision: 'once', by: 'api', reason: null } as const;
      expect(await scene.store.write('answerApproval', args)).toMatchObject({ counts: true });
      expect(await scene.store.write('answerApproval', args)).toMatchObject({ counts: true });
    });
  });
}

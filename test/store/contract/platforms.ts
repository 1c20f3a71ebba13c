import { describe, expect } from 'vitest';
import { hashCode } from '../../../src/people/pairing-store.ts';
import { codeOf } from './code-of.ts';
import { HOUR, MINUTE, type Open, type Scene, sceneTests } from './scene.ts';

/** Who may talk on a platform, who uses its credential, and which places it has. */
export function platformsContract(open: Open): void {
  const test = sceneTests(open);

  describe('a pairing', () => {
    test('is asked for once, approved by its code, and revoked', async (scene) => {
      expect(await ask(scene, 'ada')).toBe('asked');
      expect(await isPaired(scene, 'ada')).toBe(false);
      expect(await approve(scene, 'code-ada')).toMatchObject({ approved: { userId: 'ada', name: 'Ada' } });
      expect(await isPaired(scene, 'ada')).toBe(true);
      expect(await ask(scene, 'ada')).toBe('paired');
      expect(await approve(scene, 'code-ada')).toMatchObject({ refused: 'unknown' });
      const person = { platform: 'loom', userId: 'ada' };
      expect(await scene.store.write('revokePairing', person)).toBe(true);
      expect(await scene.store.write('revokePairing', person)).toBe(false);
      expect(await isPaired(scene, 'ada')).toBe(false);
    });

    test('is an admin as the first who is let in, on any platform, unless others are named', async (scene) => {
      for (const user of ['ada', 'bob', 'cyd']) await ask(scene, user);
      expect(await approve(scene, 'code-ada', false)).toMatchObject({ approved: { userId: 'ada', admin: false } });
      expect(await approve(scene, 'code-bob', true)).toMatchObject({ approved: { userId: 'bob', admin: true } });
      expect(await approve(scene, 'code-cyd', true)).toMatchObject({ approved: { userId: 'cyd', admin: false } });
      const isAdmin = (userId: string) => scene.store.read('isPairedAdmin', { platform: 'loom', userId });
      const set = (userId: string, admin: boolean) =>
        scene.store.write('setPairedAdmin', { platform: 'loom', userId, admin });
      expect([await isAdmin('bob'), await isAdmin('cyd'), await isAdmin('nobody')]).toEqual([true, false, false]);
      expect([await set('cyd', true), await set('bob', false), await set('nobody', true)]).toEqual([true, true, false]);
      expect([await isAdmin('bob'), await isAdmin('cyd')]).toEqual([false, true]);
      await scene.store.write('revokePairing', { platform: 'loom', userId: 'cyd' });
      await scene.store.write('admit', { platform: 'loom', userId: 'cyd', name: null, requestId: 'again' });
      expect(await isAdmin('cyd')).toBe(false);
    });

    test('is of one platform', async (scene) => {
      await ask(scene, 'ada');
      expect(
        await scene.store.write('approvePairing', { platform: 'spindle', code: 'code-ada', firstIsAdmin: true }),
      ).toMatchObject({
        refused: 'unknown',
      });
      expect(await approve(scene, 'CODE-ada')).toMatchObject({ approved: { userId: 'ada' } });
      expect(await scene.store.read('isPaired', { platform: 'spindle', userId: 'ada' })).toBe(false);
    });

    test('gets a code every ten minutes at most, and it counts for an hour', async (scene) => {
      await ask(scene, 'ada', 'first');
      expect(await ask(scene, 'ada', 'second')).toBe('quiet');
      scene.clock.advance(10 * MINUTE);
      expect(await ask(scene, 'ada', 'third')).toBe('asked');
      expect(await approve(scene, 'first')).toMatchObject({ refused: 'unknown' });
      scene.clock.advance(HOUR);
      expect(await approve(scene, 'third')).toMatchObject({ refused: 'unknown' });
      expect(await scene.store.read('listPairings', {})).toEqual([]);
    });

    test('waits with two others; a fourth gets in when the oldest had its time', async (scene) => {
      for (const user of ['a', 'b', 'c']) {
        expect(await ask(scene, user)).toBe('asked');
        scene.clock.advance(MINUTE);
      }
      expect(await ask(scene, 'd')).toBe('quiet');
      scene.clock.advance(8 * MINUTE);
      expect(await ask(scene, 'd')).toBe('asked');
      expect((await scene.store.read('listPairings', {})).map(({ userId }) => userId)).toEqual(['b', 'c', 'd']);
    });

    test('wrong codes close the door for an hour, not for a request id', async (scene) => {
      await ask(scene, 'ada');
      await ask(scene, 'bob');
      for (let i = 1; i < 5; i++) expect(await approve(scene, 'wrong')).toEqual({ refused: 'unknown', until: null });
      expect(await approve(scene, 'wrong')).toEqual({ refused: 'unknown', until: scene.clock.now() + HOUR });
      expect(await approve(scene, 'code-ada')).toMatchObject({ refused: 'locked' });
      expect(await approve(scene, 'request-bob')).toMatchObject({ approved: { userId: 'bob' } });
      scene.clock.advance(HOUR);
      await ask(scene, 'ada', 'again');
      expect(await approve(scene, 'again')).toMatchObject({ approved: { userId: 'ada' } });
    });

    test('a right code forgets the wrong ones', async (scene) => {
      await ask(scene, 'ada');
      for (let i = 0; i < 4; i++) await approve(scene, 'wrong');
      await approve(scene, 'code-ada');
      await ask(scene, 'bob');
      for (let i = 0; i < 4; i++) await approve(scene, 'wrong');
      expect(await approve(scene, 'code-bob')).toMatchObject({ approved: { userId: 'bob' } });
    });

    test('an operator may let somebody in without a code', async (scene) => {
      const person = { platform: 'loom', userId: 'ada', name: null, requestId: 'r' };
      await scene.store.write('admit', person);
      expect(await isPaired(scene, 'ada')).toBe(true);
      expect(await codeOf(scene.store.write('admit', { ...person, userId: ' ' }))).toBe('bad_input');
    });
  });

  describe('a credential', () => {
    test('belongs to one living instance at a time, and is free when it is given back', async (scene) => {
      const other = await scene.joinedBy('two');
      expect(await take(scene)).toBeNull();
      expect(await take(scene)).toBeNull();
      expect(await take(other)).toMatchObject({ instance: 'one', host: 'loom', pid: 1 });
      await other.store.write('releaseCredential', { instance: 'two', credential: 'token' });
      expect(await take(other)).toMatchObject({ instance: 'one' });
      await scene.store.write('releaseCredential', { instance: 'one', credential: 'token' });
      expect(await take(other)).toBeNull();
      expect(await take(scene)).toMatchObject({ instance: 'two' });
    });

    test('is free when the lease of its holder has run out', async (scene) => {
      const mortal = await scene.joinedBy('mortal', MINUTE);
      await take(mortal);
      scene.clock.advance(MINUTE - 1);
      expect(await take(scene)).toMatchObject({ instance: 'mortal' });
      scene.clock.advance(1);
      expect(await take(scene)).toBeNull();
      expect(await codeOf(take(mortal))).toBe('lease_lost');
    });
  });

  describe('a place', () => {
    test('is known once somebody talked there, by its name and by ours', async (scene) => {
      const at = { platform: 'loom', id: '7' };
      await see(scene, '7', 'Weavers');
      await see(scene, '7', null);
      await scene.store.write('namePlace', { ...at, alias: 'work' });
      expect(await scene.store.read('findPlace', at)).toMatchObject({
        ...{ name: 'Weavers', alias: 'work', place: { chat: '7' }, goneAt: null },
      });
      await see(scene, '8', 'Spinners');
      expect(await codeOf(scene.store.write('namePlace', { platform: 'loom', id: '8', alias: 'work' }))).toBe(
        'bad_input',
      );
      expect(await codeOf(scene.store.write('namePlace', { platform: 'loom', id: '9', alias: 'x' }))).toBe('bad_input');
      expect(await scene.store.read('listPlaces', { platform: 'spindle' })).toEqual([]);
      expect((await scene.store.read('listPlaces', { platform: null })).map(({ id }) => id).toSorted()).toEqual([
        '7',
        '8',
      ]);
    });

    test('is gone when nothing can be sent there, until somebody talks there again', async (scene) => {
      const at = { platform: 'loom', id: '7' };
      await see(scene, '7', null);
      await scene.store.write('markPlace', { ...at, because: 'they left' });
      expect(await scene.store.read('findPlace', at)).toMatchObject({
        goneBecause: 'they left',
        goneAt: scene.clock.now(),
      });
      await see(scene, '7', null);
      expect(await scene.store.read('findPlace', at)).toMatchObject({ goneBecause: null, goneAt: null });
    });
  });

  describe('a submission', () => {
    test('of a program is sent on once within its time, and is new after that', async (scene) => {
      const key = 'agent:main:webhook:dm:alerts:d1';
      const conversation = scene.conversation('d1', { key, kind: 'webhook', platform: 'webhook', userId: null });
      const forward = () => {
        const ids = { context: scene.context(), newSessionId: scene.id('ses') };
        return scene.store.write('forwardSubmission', {
          ...ids,
          conversation,
          text: 'full',
          deliveries: [],
          ttlMs: 24 * HOUR,
        });
      };
      const { sessionId, duplicate } = await forward();
      scene.clock.advance(24 * HOUR - 1);
      expect([duplicate, await forward()]).toEqual([false, { sessionId, duplicate: true }]);
      scene.clock.advance(1);
      expect(await forward()).toMatchObject({ duplicate: false });
      expect(await scene.types()).toEqual(['session:start', 'session:end', 'session:start', 'session:end']);
    });
  });
}

function ask(scene: Scene, userId: string, code = `code-${userId}`): Promise<string> {
  const name = userId === 'ada' ? 'Ada' : null;
  const secret = { salt: `salt-${userId}`, codeHash: hashCode(`salt-${userId}`, code) };
  return scene.store.write('requestPairing', {
    ...{ platform: 'loom', userId, name, requestId: `request-${userId}`, ...secret },
  });
}

function approve(scene: Scene, code: string, firstIsAdmin = false) {
  return scene.store.write('approvePairing', { platform: 'loom', code, firstIsAdmin });
}

function isPaired(scene: Scene, userId: string): Promise<boolean> {
  return scene.store.read('isPaired', { platform: 'loom', userId });
}

function take(scene: Scene) {
  const context = { instanceId: scene.instance, commandId: scene.id('cmd') };
  return scene.store.write('takeCredential', { context, credential: 'token' });
}

function see(scene: Scene, id: string, name: string | null): Promise<void> {
  return scene.store.write('seePlace', { platform: 'loom', id, place: { chat: id }, name });
}

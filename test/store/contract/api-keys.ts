import { describe, expect } from 'vitest';
import { codeOf } from './code-of.ts';
import { type Open, sceneTests } from './scene.ts';

/** Keys of HTTP clients, and the conversations that are theirs. */
export function apiKeysContract(open: Open): void {
  const test = sceneTests(open);

  describe('an API key', () => {
    test('is found by its hash until it is revoked, and its name is taken as long', async ({ store }) => {
      const key = { name: 'loom', hash: 'h1', scopes: ['chat', 'read'] } as const;
      await store.write('addApiKey', key);
      const found = { name: 'loom', scopes: ['chat', 'read'], createdAt: expect.any(Number) };
      expect(await store.read('findApiKey', { hash: 'h1' })).toEqual(found);
      expect(await store.read('listApiKeys', {})).toEqual([found]);
      expect(await codeOf(store.write('addApiKey', { ...key, hash: 'h2' }))).toBe('api_key_exists');
      expect(await store.write('revokeApiKey', { name: 'loom' })).toBe(true);
      expect(await store.write('revokeApiKey', { name: 'loom' })).toBe(false);
      expect(await store.read('findApiKey', { hash: 'h1' })).toBeNull();
      await store.write('addApiKey', { ...key, hash: 'h2' });
    });
  });

  describe('what is asked for within some conversations', () => {
    const within = ['agent:main:api:dm:loom:', 'agent:main:web:dm:loom:'];

    test('has their sessions and events, and no others', async (scene) => {
      const { store } = scene;
      const start = (key: string) => scene.start('', { key, kind: 'api', platform: 'api' });
      const own = [await start('agent:main:api:dm:loom:a:'), await start('agent:main:web:dm:loom:b:')];
      const others = ['agent:main:api:dm:loom', 'agent:main:api:dm:loom2:a:', 'agent:main:api:dm:lool:z:'];
      const other = await Promise.all(others.map(start));
      const filter = { states: [], kinds: [], platforms: [], reasons: [], key: null, user: null, text: null };
      const page = { ...filter, since: null, limit: 50, cursor: null };
      const ids = (sessions: readonly { id: string }[]) => sessions.map(({ id }) => id).sort();
      expect(ids((await store.read('listSessions', { ...page, within })).sessions)).toEqual(ids(own));
      expect(ids((await store.read('listSessions', page)).sessions)).toEqual(ids([...own, ...other]));
      const { events } = await store.read('listEvents', { after: 0, limit: 50, types: [], sessionId: null, within });
      expect(events.map(({ event }) => event.session_id)).toEqual(own.map(({ id }) => id));
      const [mine, theirs] = [own[0]?.id ?? '', other[0]?.id ?? ''];
      expect(await codeOf(store.read('findSession', { idOrPrefix: theirs, within }))).toBe('session_not_found');
      expect((await store.read('findSession', { idOrPrefix: mine, within })).id).toBe(mine);
    });
  });
}

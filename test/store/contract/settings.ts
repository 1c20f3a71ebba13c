import { describe, expect } from 'vitest';
import { type Open, sceneTests } from './scene.ts';

/** Settings made while the gateway runs. */
export function settingsContract(open: Open): void {
  const test = sceneTests(open);

  describe('a setting', () => {
    test('is what was kept last, and null before', async ({ store }) => {
      expect(await store.read('findSetting', { name: 'home' })).toBeNull();
      await store.write('keepSetting', { name: 'home', value: 'one' });
      await store.write('keepSetting', { name: 'home', value: 'two' });
      await store.write('keepSetting', { name: 'other', value: 'three' });
      expect(await store.read('findSetting', { name: 'home' })).toBe('two');
    });

    test("never touches the store's own facts", async ({ store }) => {
      await store.write('keepSetting', { name: 'schema', value: '999' });
      expect(await store.read('findSetting', { name: 'schema' })).toBe('999');
      // A newer schema than ours would be refused here.
      expect(await store.read('listSubscribers', {})).toEqual([]);
    });
  });
}

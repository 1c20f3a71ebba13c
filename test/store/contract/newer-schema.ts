import { describe, expect } from 'vitest';
import { SCHEMA_VERSION } from '../../../src/store/migrations/migrations.ts';
import { codeOf } from './code-of.ts';
import { type Open, sceneTests } from './scene.ts';

/** Another program brings the schema further while this store is open. */
export function newerSchemaContract(open: Open): void {
  const test = sceneTests(open);

  describe('a store whose schema a newer program has raised', () => {
    test('takes no writes any more, leaves nothing of them behind, and still answers', async (scene) => {
      const { id } = await scene.start('1');
      const setSchema = (version: number) =>
        scene.raw("UPDATE meta SET value = ? WHERE name = 'schema'", String(version));
      await setSchema(SCHEMA_VERSION + 1);
      try {
        expect(await codeOf(scene.say('1', 'hello'))).toBe('store_newer');
        expect(await codeOf(scene.store.write('beat', { instance: scene.instance, ttlMs: 1000 }))).toBe('store_newer');
        expect(await codeOf(scene.store.write('keepSetting', { name: 'newer', value: 'one' }))).toBe('store_newer');
        expect((await scene.session(id)).messageCount).toBe(0);
        expect(await scene.store.read('findSetting', { name: 'newer' })).toBeNull();
      } finally {
        await setSchema(SCHEMA_VERSION);
      }
      await scene.say('1', 'hello');
    });
  });
}

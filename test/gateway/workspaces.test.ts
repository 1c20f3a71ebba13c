import { readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { listFilesTool, readFileTool } from '../../src/agent/tools/file-tools.ts';
import { toolPorts } from '../../src/gateway/tool-ports.ts';
import { workspaceFor } from '../../src/people/workspaces.ts';
import { PeopleScene } from './people-scene.ts';

describe('the folder of a conversation', () => {
  const own = { folder: '/home/workspaces', perConversation: true };
  const folderOf = (key: string) => workspaceFor(own, { kind: 'chat', key });

  test('is never that of another, however alike the keys are', () => {
    const keys = ['agent:main:x:dm:1', 'agent:main:x:dm:1:', 'agent:main:x:dm:a/b', 'agent:main:x:dm:a-b'];
    const folders = keys.map(folderOf);
    expect(new Set(folders).size).toBe(keys.length);
    for (const folder of folders) expect(folder).toMatch(/^\/home\/workspaces\/agent-main-x-dm-[a-z0-9-]+$/);
  });

  test('is the one of all terminals for the operator, and the shared one where that is configured', () => {
    expect(workspaceFor(own, { kind: 'cli', key: 'agent:main:cli:dm:1' })).toBe('/home/workspaces/operator');
    const shared = { folder: '/home/workspace', perConversation: false };
    expect(workspaceFor(shared, { kind: 'chat', key: 'agent:main:x:dm:1' })).toBe('/home/workspace');
  });
});

describe('what one person sends', () => {
  let scene: PeopleScene;
  afterEach(() => scene.close());

  test('makes room for what they send next, and takes none from others', async () => {
    scene = await PeopleScene.open([1, 2], { agent: { max_received: '1KB' } });
    const received = (id: number): string[] => {
      const own = readdirSync(join(scene.gateway.home, 'workspaces')).filter((name) => name.includes(`dm-${id}`));
      return own.flatMap((name) => readdirSync(join(scene.gateway.home, 'workspaces', name, 'received')));
    };
    for (const [sent, id] of [2, 1, 1, 1].entries()) {
      const file = scene.bot.keepFile(Buffer.alloc(600, sent));
      scene.say(id, '', 'dm', { text: undefined, document: { ...file, file_name: `${sent}.bin` } });
      await scene.until('it is answered', () => scene.seen(1).length + scene.seen(2).length > sent);
    }
    expect([received(1).length, received(2).length]).toEqual([1, 1]);
  });

  test('is read by the tools of their conversation, and by those of no other', async () => {
    scene = await PeopleScene.open([1, 2]);
    const file = scene.bot.keepFile(Buffer.from('salary: 4000'));
    scene.say(1, '', 'dm', { text: undefined, document: { ...file, file_name: 'payslip.txt' } });
    await scene.sees(1, 'did:');
    scene.say(2, 'hello');
    await scene.sees(2, 'did:');
    const { engine } = scene.gateway.gateway;
    const workspace = { folder: join(scene.gateway.home, 'workspaces'), perConversation: true };
    const ports = toolPorts({
      ...{
        engine,
        agent: { workspace, maxReceived: 1_000_000 },
        rules: { groupPerUser: true, threadPerUser: false },
        platform: () => null,
      },
      children: () => {
        throw new TypeError('no work is delegated');
      },
    });
    const workspaceOf = ports.workspaceOf ?? (() => Promise.reject(new TypeError('no workspace')));
    const context = async (id: number) => {
      const session = await scene.gateway.store.read('openSession', { key: `agent:main:telegram:dm:${id}` });
      const signal = AbortSignal.timeout(10_000);
      return { sessionId: session?.id ?? '', turnId: 'trn', platform: 'telegram', userId: String(id), signal };
    };
    const [folder = ''] = readdirSync(workspace.folder);
    const [name = ''] = readdirSync(join(workspace.folder, folder, 'received'));
    const path = `received/${name}`;
    expect(readFileSync(join(workspace.folder, folder, path), 'utf8')).toBe('salary: 4000');
    for (const made of ['', folder, join(folder, 'received'), join(folder, path)]) {
      expect([made, statSync(join(workspace.folder, made)).mode & 0o077]).toEqual([made, 0]);
    }
    expect(await readFileTool(workspaceOf).run({ path }, await context(1))).toBe('salary: 4000');
    for (const reached of [path, `../${folder}/${path}`, join(workspace.folder, folder, path)]) {
      await expect(readFileTool(workspaceOf).run({ path: reached }, await context(2))).rejects.toThrow();
    }
    expect(await listFilesTool(workspaceOf).run({ depth: 5 }, await context(2))).toBe('The folder is empty.');
  });
});

import { describe, expect, test } from 'vitest';
import { patience } from '../../support/patience.ts';
import { never, until } from '../contract/scene.ts';
import { DM, openAnswering, openScene } from './scenes.ts';
import { GROUP } from './world.ts';

describe('a file', () => {
  const fileOf = (bytes: Uint8Array, name = 'data.bin', kind: 'document' | 'image' | 'voice' = 'document') =>
    ({ kind, name, mime: null, bytes }) as const;

  test('that is large goes in parts, to the same place as its message', async () => {
    await using scene = await openAnswering('group');
    const bytes = new Uint8Array(
      Buffer.alloc(11 * 1024 * 1024, Buffer.from(Array.from({ length: 253 }, (_, at) => at))),
    );
    await scene.send({ text: '', key: 'k', files: [fileOf(bytes)] });
    const [message] = scene.messages.shown;
    expect(Buffer.from(message?.file?.bytes ?? []).equals(bytes)).toBe(true);
    const { server } = scene.world;
    const [prepared] = server.callsTo('POST', /upload_prepare$/);
    expect(prepared?.path).toBe(`/v2/groups/${GROUP}/upload_prepare`);
    expect(prepared?.body).toMatchObject({ file_type: 4, file_size: String(bytes.length), file_name: 'data.bin' });
    expect(server.callsTo('POST', /upload_part_finish$/)).toHaveLength(3);
  });

  test('is what QQ can show of it, and else a file', async () => {
    await using scene = await openAnswering();
    scene.messages.mostAnswers = 10;
    const bytes = new Uint8Array(4);
    const names = ['a.png', 'b.webp', 'c.silk', 'd.opus'] as const;
    for (const name of names) {
      const kind = /png|webp/.test(name) ? 'image' : 'voice';
      await scene.send({ text: '', key: name, files: [fileOf(bytes, name, kind)] });
    }
    expect(scene.messages.shown.map(({ file }) => file?.type)).toEqual([1, 4, 3, 4]);
  });

  test('that was not taken is told below the words', async () => {
    await using scene = await openAnswering();
    scene.world.server.takesFiles = false;
    await scene.send({ text: 'here it is', key: 'k', files: [fileOf(new Uint8Array(2))] });
    expect(scene.messages.shown.map((message) => message.text)).toEqual(['here it is', '(data.bin could not be sent)']);
    expect(scene.warnings.join('\n')).toContain('a file was not sent');
  });
});

test('a file that has to wait does not keep a call that is called off', async () => {
  await using scene = await openAnswering();
  const file = { kind: 'document', name: 'a.csv', mime: null, bytes: new Uint8Array(2) } as const;
  const off = new AbortController();
  const { server } = scene.world;
  server.onTaken = () => {
    server.onTaken = null;
    server.failNext({ status: 429, retryAfter: 3600 });
  };
  const sent = scene.platform.send(DM, { text: 'here', key: 'k', reply: scene.reply, files: [file] }, off.signal);
  await until(() => server.callsTo('POST', /\/messages$/).length === 2, 'the refusal');
  const started = performance.now();
  setTimeout(() => off.abort(), 20);
  await sent;
  expect(performance.now() - started).toBeLessThan(patience(2000));
});

test('a file is read from QQ and from nowhere else', async () => {
  await using scene = await openScene();
  const { server } = scene.world;
  const address = `http:${server.keepFile(new TextEncoder().encode('bytes'))}`;
  const read = async (ref: string) => Buffer.from(await scene.platform.openFile(ref, 100, never)).toString();
  expect(await read(address)).toBe('bytes');
  const { pathname } = new URL(address);
  // The hosts of QQ are all the one that is configured.
  expect(await read(`https://multimedia.nt.qq.com.cn${pathname}`)).toBe('bytes');
  for (const ref of ['http://169.254.169.254/x', 'https://qq.com.evil.test/x', 'file:///etc/passwd', 'x']) {
    await expect(read(ref)).rejects.toThrow('not on a server of QQ');
  }
  await expect(read(`${server.url}/download/none`)).rejects.toThrow('404');
});

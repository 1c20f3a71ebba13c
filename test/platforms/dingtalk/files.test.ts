import { describe, expect, test } from 'vitest';
import { voiceLength } from '../../../src/platforms/dingtalk/voice-length.ts';
import type { OutgoingFile } from '../../../src/platforms/platform.ts';
import { never } from '../contract/scene.ts';
import { caught, contextOf, DIRECT_SEND, GROUP_SEND, openScene } from './scene.ts';
import { paramOf } from './world.ts';

describe('files', () => {
  const bytes = new TextEncoder().encode('#!AMR\nvoice');

  test('go as what they are: pictures, recordings that DingTalk plays, and documents', async () => {
    await using scene = await openScene();
    const files: OutgoingFile[] = [
      { kind: 'image', name: 'a.png', mime: 'image/png', bytes },
      { kind: 'voice', name: 'v.amr', mime: 'audio/amr', bytes: amr(50) },
      { kind: 'voice', name: 'v.mp3', mime: 'audio/mpeg', bytes: new TextEncoder().encode('ID3 no length') },
      { kind: 'video', name: '/tmp/secret/v.MP4', mime: 'video/mp4', bytes },
      { kind: 'document', name: 'noextension', mime: null, bytes },
    ];
    await scene.platform.send(scene.world.place('group'), { text: '', files }, never);
    const sent = scene.fake.callsTo(GROUP_SEND);
    expect(sent.map(({ body }) => body.msgKey)).toEqual([
      ...['sampleImageMsg', 'sampleAudio', 'sampleFile', 'sampleFile', 'sampleFile'],
    ]);
    expect(paramOf(sent[1]!)).toMatchObject({ duration: '1000' });
    expect(paramOf(sent[3]!)).toMatchObject({ fileName: 'v.MP4', fileType: 'mp4' });
    expect(paramOf(sent[4]!)).toMatchObject({ fileName: 'noextension', fileType: 'bin' });
    const types = scene.fake.callsTo('/media/upload').map(({ query }) => query.get('type'));
    expect(types).toEqual(['image', 'voice', 'file', 'file', 'file']);
  });

  test('that fail behind the words are said to be missing, and the words are there once', async () => {
    await using scene = await openScene();
    scene.fake.failNext('/media/upload', { status: 200, body: { errcode: 40005, errmsg: 'no such type' } });
    const file: OutgoingFile = { kind: 'document', name: 'a.exe', mime: null, bytes };
    await scene.platform.send(scene.world.place('dm'), { text: 'here', files: [file] }, never);
    expect(scene.fake.messages.map(({ text }) => text)).toEqual(['here', '(a.exe could not be sent)']);
    expect(scene.warnings.join()).toContain('a file was not sent');
  });

  test('whose message is not answered are not sent twice, and are said to be missing maybe', async () => {
    await using scene = await openScene();
    const message = await scene.heard({});
    scene.fake.failNext(DIRECT_SEND, 'lost');
    const file: OutgoingFile = { kind: 'document', name: 'a.txt', mime: null, bytes };
    await scene.platform.send(message.place, { text: 'here', files: [file], reply: contextOf(message) }, never);
    const shown = scene.fake.messages.map(({ text, files }) => files[0]?.name ?? text);
    expect(shown).toEqual(['here', 'a.txt', '(a.txt may be missing)']);
  });

  test('whose upload is not answered have not been sent yet', async () => {
    await using scene = await openScene();
    scene.fake.failNext('/media/upload', 'lost');
    const file: OutgoingFile = { kind: 'image', name: 'a.png', mime: null, bytes };
    const failure = await scene.platform
      .send(scene.world.place('dm'), { text: '', files: [file] }, never)
      .catch(caught);
    expect(failure).toMatchObject({ kind: 'transient' });
    expect(scene.fake.messages).toEqual([]);
  });

  test('that people send are read by the code they came with, also from DingTalk at another root', async () => {
    await using scene = await openScene();
    scene.fake.files.set('code', { bytes, url: 'https://bucket.oss-cn-hangzhou.aliyuncs.com/storage/code' });
    const read = await scene.platform.openFile('robot-1:code', 1000, never);
    expect(Buffer.from(read).toString()).toBe('#!AMR\nvoice');
    const [asked] = scene.fake.callsTo('/v1.0/robot/messageFiles/download');
    expect(asked?.body).toEqual({ robotCode: 'robot-1', downloadCode: 'code' });
  });

  test.each([
    ['a host that is none of DingTalk', 'https://example.org/a'],
    ['a private address', 'http://169.254.169.254/latest/meta-data'],
    ['a file of the machine', 'file:///etc/passwd'],
    ['nothing', ''],
  ])('are not read where the answer names %s', async (_, url) => {
    await using scene = await openScene();
    scene.fake.files.set('code', { bytes, url });
    const failure = await scene.platform.openFile('robot-1:code', 1000, never).catch(caught);
    expect(failure).toMatchObject({ name: 'SendFailure', retryAfterMs: null });
  });

  test('whose code is over cannot be read, now or later', async () => {
    await using scene = await openScene();
    const failure = await scene.platform.openFile('robot-1:old', 1000, never).catch(caught);
    expect(failure).toMatchObject({ name: 'SendFailure', retryAfterMs: null });
  });

  test('have the length of their recording', () => {
    expect(voiceLength(amr(100))).toBe(2000);
    expect(voiceLength(ogg(96_000n))).toBe(2000);
    for (const odd of ['', '#!AMR\n', 'OggS', 'RIFF....WAVE']) {
      expect(voiceLength(new TextEncoder().encode(odd))).toBeNull();
    }
    expect(voiceLength(ogg(-1n))).toBeNull();
  });
});

/** A recording of so many frames of 20 ms. */
function amr(frames: number): Uint8Array {
  const frame = [0x3c, ...Array.from({ length: 31 }, () => 1)];
  return Uint8Array.from([...Buffer.from('#!AMR\n'), ...Array.from({ length: frames }, () => frame).flat()]);
}

/** Ogg with one page that ends behind so many samples. */
function ogg(samples: bigint): Uint8Array {
  const page = Buffer.alloc(28);
  page.write('OggS', 'latin1');
  page.writeBigInt64LE(samples, 6);
  return page;
}

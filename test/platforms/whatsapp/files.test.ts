import { describe, expect, test } from 'vitest';
import { SendFailure } from '../../../src/platforms/platform.ts';
import { mediaAddress } from '../../../src/platforms/whatsapp/media.ts';
import { refusal } from '../../fakes/whatsapp-rules.ts';
import { never } from '../contract/scene.ts';
import { fileOf, openScene } from './scene.ts';

describe('buttons', () => {
  const row = (count: number) => [
    Array.from({ length: count }, (_, index) => ({ label: `Choice ${index}`, data: `data:${index}` })),
  ];
  const interactive = ({ payload }: { payload: unknown }) =>
    (payload as { interactive: { type: string; action: object } }).interactive;

  test('up to three stand under the text', async () => {
    await using scene = await openScene();
    await scene.send({ text: '**Which?**', buttons: row(3) });
    expect(interactive(scene.shown()[0]!)).toMatchObject({
      type: 'button',
      body: { text: '*Which?*' },
      action: { buttons: [{ type: 'reply', reply: { id: 'data:0', title: 'Choice 0' } }, {}, {}] },
    });
  });

  test('that are more, or stand under a long text, are a list', async () => {
    await using scene = await openScene();
    await scene.send({ text: 'Which?', buttons: row(4) });
    await scene.send({ text: 'w '.repeat(1000), buttons: row(2) });
    expect(scene.shown().map((each) => interactive(each).type)).toEqual(['list', 'list']);
    expect(interactive(scene.shown()[0]!).action).toMatchObject({ sections: [{ rows: { length: 4 } }] });
  });

  test('that are more than ten are several lists', async () => {
    await using scene = await openScene();
    await scene.send({ text: 'Which?', buttons: row(12) });
    const rows = scene
      .shown()
      .map((each) => (interactive(each).action as { sections: { rows: object[] }[] }).sections[0]!.rows);
    expect(rows.map(({ length }) => length)).toEqual([10, 2]);
  });

  test('with long labels that are alike are told apart', async () => {
    await using scene = await openScene();
    const label = 'The same long label for everything';
    const buttons = [['a', 'b'].map((data) => ({ label, data }))];
    await scene.send({ text: 'Which?', buttons });
    const { buttons: sent } = interactive(scene.shown()[0]!).action as { buttons: { reply: { title: string } }[] };
    const titles = sent.map(({ reply }) => reply.title);
    expect(new Set(titles).size).toBe(2);
    expect(Math.max(...titles.map(({ length }) => length))).toBeLessThanOrEqual(20);
  });

  test('with more data than comes back are refused before anything is sent', async () => {
    await using scene = await openScene();
    const buttons = [[{ label: 'x', data: 'x'.repeat(201) }]];
    expect(await scene.failureOf({ text: 'x', buttons })).toMatchObject({ kind: 'bad_format', retryAfterMs: null });
    expect(scene.fake.calls).toEqual([]);
  });
});

describe('a file', () => {
  test.each([
    [fileOf('image', 'a.png', 'image/png'), 'image', 'image/png'],
    [fileOf('image', 'a.jpeg'), 'image', 'image/jpeg'],
    [fileOf('image', 'a.png', 'image/png', 6 * 1024 * 1024), 'document', 'image/png'],
    [fileOf('image', 'a.gif', 'image/gif'), 'document', 'text/plain'],
    [fileOf('voice', 'a.ogg', 'audio/ogg; codecs=opus'), 'audio', 'audio/ogg'],
    [fileOf('audio', 'a.mp3', 'audio/mpeg'), 'audio', 'audio/mpeg'],
    [fileOf('audio', 'a.wav', 'audio/wav'), 'document', 'text/plain'],
    [fileOf('video', 'a.mp4', 'video/mp4'), 'video', 'video/mp4'],
    [fileOf('sticker', 'a.webp', 'image/webp'), 'sticker', 'image/webp'],
    [fileOf('document', 'a.pdf', 'application/pdf'), 'document', 'application/pdf'],
    [fileOf('document', 'data.bin', 'application/octet-stream'), 'document', 'text/plain'],
    [fileOf('document', 'toString', null), 'document', 'text/plain'],
  ])('goes as what WhatsApp takes of it: %#', async (file, type, mime) => {
    await using scene = await openScene();
    await scene.send({ files: [file] });
    const [shown] = scene.shown();
    expect(shown?.payload.type).toBe(type);
    expect(shown?.files).toMatchObject([{ name: file.name, type: mime }]);
    expect(shown?.files[0]?.bytes).toHaveLength(file.bytes.length);
  });

  test('has its words below it where there is room, and before it otherwise', async () => {
    await using scene = await openScene();
    await scene.send({ text: '**look**', files: [fileOf('image', 'a.png')] });
    await scene.send({ text: 'listen', files: [fileOf('voice', 'a.ogg')] });
    await scene.send({ text: 'w '.repeat(600), files: [fileOf('document', '/home/me/a.txt')] });
    const shown = scene.shown().map(({ payload, text, files }) => [payload.type, text.slice(0, 6), files[0]?.name]);
    expect(shown).toEqual([
      ['image', 'look', 'a.png'],
      ['text', 'listen', undefined],
      ['audio', '', 'a.ogg'],
      ['text', 'w w w ', undefined],
      ['document', '', 'a.txt'],
    ]);
  });

  test('that fails behind another does not make the first come again, and is told of', async () => {
    await using scene = await openScene();
    scene.fake.failNext('media', { answer: { id: '42' } });
    const files = [fileOf('document', 'one.txt'), fileOf('document', 'two.txt')];
    expect(await scene.failureOf({ files: [files[0]!] })).toMatchObject({ kind: 'bad_format' });
    scene.fake.failNext('media', { answer: 'nothing' }, refusal(100, 'no'));
    await scene.failureOf({ files: [files[0]!] });
    await scene.send({ text: 'both', files });
    expect(scene.shown().map(({ text }) => text)).toEqual(['both', '(one.txt could not be sent)', '']);
  });

  test('that came is read by its id, from the server that everything is asked of', async () => {
    await using scene = await openScene();
    const { id } = scene.fake.keepFile(Buffer.from('bytes'), 'text/plain') as { id: string };
    expect(Buffer.from(await scene.platform.openFile(id, 100, never)).toString()).toBe('bytes');
    expect(scene.fake.downloads).toMatchObject([{ authorization: `Bearer ${scene.fake.token}` }]);
  });

  test.each([
    ['is larger than it may be', 5, 4],
    ['claims to be larger than it may be', 5, 100],
    ['is larger than it claims', 1, 4],
  ])('that %s is not read', async (_, claimed, most) => {
    await using scene = await openScene();
    const size = claimed === 5 && most === 100 ? 200 : claimed;
    const { id } = scene.fake.keepFile(Buffer.from('12345'), 'text/plain', size) as { id: string };
    const failure = await scene.platform.openFile(id, most, never).catch((thrown: unknown) => thrown);
    expect(failure).toMatchObject({ name: 'SendFailure', kind: 'too_large' });
  });

  test('that is gone is a failure that no trying mends', async () => {
    await using scene = await openScene();
    const failure = await scene.platform.openFile('404', 100, never).catch((thrown: unknown) => thrown);
    expect(failure).toBeInstanceOf(SendFailure);
  });

  test.each([
    ['https://lookaside.fbsbx.com/whatsapp_business/attachments/?mid=1&hash=a', true],
    ['https://mmg.whatsapp.net/d/f', true],
    ['https://graph.facebook.com/x', true],
    ['http://lookaside.fbsbx.com/x', false],
    ['https://lookaside.fbsbx.com:8443/x', false],
    ['https://fbsbx.com.evil.org/x', false],
    ['https://evilfbsbx.com/x', false],
    ['https://lookaside.fbsbx.com@evil.org/x', false],
    ['https://127.0.0.1/x', false],
    ['file:///etc/passwd', false],
    ['', false],
    [null, false],
  ])('at %s is read with the token only if that is Meta', (url, isMeta) => {
    if (isMeta) expect(mediaAddress(url, null)).toBe(url);
    else expect(() => mediaAddress(url, null)).toThrow(SendFailure);
    if (isMeta) expect(mediaAddress(url, 'http://127.0.0.1:9')).toMatch(/^http:\/\/127\.0\.0\.1:9\//);
  });
});

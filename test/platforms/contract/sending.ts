import { expect, test } from 'vitest';
import { SendFailure } from '../../../src/platforms/platform.ts';
import { splitText } from '../../../src/platforms/split-text.ts';
import { answerable, never, openStarted, type PlatformUnderTest, until } from './scene.ts';

/** What goes to people. */
export function sendingContract(under: PlatformUnderTest): void {
  const { abilities, plays } = under;

  test('a message is shown, and has the id that was returned', async () => {
    await using scene = await openStarted(under);
    const { messageId } = await scene.send(scene.driver.place('dm'), { text: 'hello' }, never);
    expect(scene.driver.shown()).toMatchObject([{ messageId, text: 'hello' }]);
  });

  test('odd signs arrive as they are', async () => {
    await using scene = await openStarted(under);
    const text = 'if (a < b && c > d) { "x" } 👩‍👩‍👧‍👦 \u202e\u0301';
    await scene.send(scene.driver.place('dm'), { text }, never);
    expect(scene.driver.shown().at(-1)?.text).toBe(scene.driver.visible?.(text) ?? text);
  });

  test('a long text with code and emoji arrives in order, in parts that fit', async () => {
    await using scene = await openStarted(under);
    const lines = Array.from({ length: 400 }, (_, line) => `line ${line} 😀 with some words`);
    const text = `${lines.slice(0, 100).join('\n')}\n\n\`\`\`ts\n${lines.slice(100).join('\n')}\n\`\`\``;
    for (const part of splitText(text, abilities)) {
      await scene.send(scene.driver.place('dm'), { text: part }, never);
    }
    const seen = scene.driver.shown().map((shown) => shown.text);
    const shownLines = seen
      .join('\n')
      .split('\n')
      .filter((line) => line.startsWith('line '));
    expect(shownLines.map((line) => line.trim())).toEqual(lines);
    expect(seen.every((part) => part.isWellFormed())).toBe(true);
  });

  test('an answer refers to what it answers, and comes also when that is gone', async () => {
    await using scene = await openStarted(under);
    const replyTo = await scene.driver.say({ text: 'question' });
    await scene.send(scene.driver.place('dm'), { text: 'answer', replyTo }, never);
    expect(scene.driver.shown().at(-1)?.text).toBe('answer');
    expect([replyTo, null]).toContain(scene.driver.shown().at(-1)?.repliesTo);
  });

  if (abilities.edit) {
    test('a message is changed, and changing it to what it is already is no failure', async () => {
      await using scene = await openStarted(under);
      const place = scene.driver.place('dm');
      const { messageId } = await scene.send(place, { text: 'thinking' }, never);
      await scene.platform.edit!(place, messageId, { text: 'done' }, never);
      await scene.platform.edit!(place, messageId, { text: 'done' }, never);
      expect(scene.driver.shown()).toMatchObject([{ messageId, text: 'done' }]);
    });
  }

  if (abilities.remove) {
    test('a message is removed, and one that is gone already counts as removed', async () => {
      await using scene = await openStarted(under);
      const place = scene.driver.place('dm');
      const { messageId } = await scene.send(place, { text: 'oops' }, never);
      await scene.platform.remove!(place, messageId, never);
      await scene.platform.remove!(place, messageId, never);
      expect(scene.driver.shown()).toEqual([]);
    });
  }

  if (abilities.typing) {
    test('people see that an answer is being made', async () => {
      await using scene = await openStarted(under);
      // Some platforms show it at the message that is answered.
      const { reply } = await answerable(scene);
      if (plays.typesByItself) await until(() => scene.driver.typed!() === 1, 'what the library shows by itself');
      const before = scene.driver.typed!();
      await scene.platform.showTyping!(scene.driver.place('dm'), never, reply);
      expect(scene.driver.typed!()).toBe(before + 1);
    });
  }

  if (abilities.reactions) {
    test('a sign is put at a message, replaced, and taken away', async () => {
      await using scene = await openStarted(under);
      const place = scene.driver.place('dm');
      const messageId = await scene.driver.say({ text: 'work' });
      for (const sign of ['seen', 'done', 'failed'] as const) {
        await scene.platform.react!(place, messageId, sign, never);
        expect(scene.driver.reactions!(messageId)).toHaveLength(1);
      }
      await scene.platform.react!(place, messageId, null, never);
      expect(scene.driver.reactions!(messageId)).toEqual([]);
    });
  }

  if (abilities.buttons) {
    test('a pressed button comes back with its data, and who pressed it is answered', async () => {
      await using scene = await openStarted(under);
      const buttons = [
        [
          { label: 'Yes', data: 'approve:1' },
          { label: 'No', data: 'deny:1' },
        ],
      ];
      const { messageId } = await scene.send(scene.driver.place('dm'), { text: 'Allow this?', buttons }, never);
      expect(scene.driver.shown().at(-1)?.buttons).toEqual(['Yes', 'No']);
      scene.inbox.answer = 'Thanks.';
      expect(await scene.driver.press!(messageId, 'approve:1')).toBe('Thanks.');
      expect(scene.inbox.presses).toMatchObject([{ messageId, data: 'approve:1' }]);
      expect(scene.inbox.presses[0]?.place).toMatchObject(scene.driver.place('dm'));
    });
  }

  if (abilities.files.out) {
    test('files are sent, with words and without, and their bytes arrive', async () => {
      await using scene = await openStarted(under);
      const bytes = Uint8Array.from({ length: 300_000 }, (_, index) => index % 251);
      const file = { kind: 'document', name: 'data.bin', mime: 'application/octet-stream', bytes } as const;
      const place = scene.driver.place('dm');
      await scene.send(place, { text: 'here', files: [file] }, never);
      await scene.send(place, { text: '', files: [file, { ...file, kind: 'image', name: 'a.png' }] }, never);
      const files = scene.driver.shown().flatMap((shown) => shown.files);
      expect(files.map(({ name }) => name)).toEqual(['data.bin', 'data.bin', 'a.png']);
      expect(files.every((each) => Buffer.from(each.bytes).equals(bytes))).toBe(true);
      expect(
        scene.driver
          .shown()
          .map(({ text }) => text)
          .filter((text) => text !== ''),
      ).toEqual(['here']);
    });
  }

  if (plays.refusals) {
    test('a server that asks for patience gets it, and then the message', async () => {
      await using scene = await openStarted(under);
      const send = () => scene.send(scene.driver.place('dm'), { text: 'patient' }, never);
      scene.driver.limitRate!(1000);
      const failure = await send().catch((thrown: unknown) => thrown);
      expect(failure).toBeInstanceOf(SendFailure);
      expect(failure).toMatchObject({ kind: 'rate_limited' });
      expect((failure as SendFailure).retryAfterMs).toBeGreaterThanOrEqual(1000);
      expect(scene.driver.shown()).toEqual([]);
      let sent = false;
      await until(() => {
        if (!sent)
          void send().then(
            () => (sent = true),
            () => undefined,
          );
        return scene.driver.shown().length > 0;
      }, 'the message');
      expect(scene.driver.shown()[0]?.text).toBe('patient');
    });

    test('a failure that passes says that trying again is of use', async () => {
      await using scene = await openStarted(under);
      scene.driver.stumble!();
      const failure = await scene
        .send(scene.driver.place('dm'), { text: 'x' }, never)
        .catch((thrown: unknown) => thrown);
      expect(failure).toMatchObject({ kind: 'transient' });
      expect((failure as SendFailure).retryAfterMs).not.toBeNull();
      await scene.send(scene.driver.place('dm'), { text: 'y' }, never);
      expect(scene.driver.shown().map(({ text }) => text)).toEqual(['y']);
    });
  }

  test('a call that is called off ends', async () => {
    await using scene = await openStarted(under);
    const place = scene.driver.place('dm');
    await expect(scene.send(place, { text: 'no' }, AbortSignal.abort())).rejects.toThrow();
    expect(scene.driver.shown()).toEqual([]);
  });

  if (plays.lostAnswers) {
    test('a message whose answer is lost may have arrived, and says so', async () => {
      await using scene = await openStarted(under);
      const place = scene.driver.place('dm');
      // Some platforms answer only who has written to them.
      const reply = await answerable(scene);
      scene.driver.loseAnswer!();
      const send = () => scene.send(place, { text: 'once', key: 'dlv_lost', ...reply }, never);
      const failure = await send().catch((thrown: unknown) => thrown);
      expect(failure).toMatchObject({ name: 'SendFailure', kind: 'uncertain' });
      expect((failure as SendFailure).retryAfterMs).not.toBeNull();
      expect(scene.driver.shown().map(({ text }) => text)).toEqual(['once']);
      if (abilities.idempotent) {
        const { messageId } = await send();
        expect(scene.driver.shown()).toMatchObject([{ text: 'once', messageId }]);
      }
      expect(scene.platform.findSent !== undefined).toBe(plays.searched ?? false);
      if (scene.platform.findSent !== undefined) {
        const [shown] = scene.driver.shown();
        expect(await scene.platform.findSent(place, 'dlv_lost', never)).toMatchObject({ messageId: shown?.messageId });
        expect(await scene.platform.findSent(place, 'dlv_other', never)).toBeNull();
      }
    });
  }

  if (abilities.idempotent) {
    test('two messages with the same words and other keys are two', async () => {
      await using scene = await openStarted(under);
      const reply = await answerable(scene);
      const place = scene.driver.place('dm');
      for (const key of ['dlv_one', 'dlv_two', 'dlv_two', 'dlv_one']) {
        await scene.send(place, { text: 'same', key, ...reply }, never);
      }
      expect(scene.driver.shown().map(({ text }) => text)).toEqual(['same', 'same']);
    });
  }

  if (plays.window) {
    test('an answer that comes too late says so, and the next message lets it through', async () => {
      await using scene = await openStarted(under);
      const place = scene.driver.place('dm');
      const late = await answerable(scene);
      scene.driver.closeWindow!();
      const failure = await scene
        .send(place, { text: 'late', key: 'dlv_late', ...late }, never)
        .catch((thrown: unknown) => thrown);
      expect(failure).toMatchObject({ name: 'SendFailure', kind: 'expired' });
      const again = await answerable(scene);
      await scene.send(place, { text: 'late', key: 'dlv_late:again', ...again }, never);
      expect(scene.driver.shown().map(({ text }) => text)).toEqual(['late']);
    });
  }

  test('a text that grows when it is rendered is split so that its parts fit', async () => {
    await using scene = await openStarted(under);
    const { platform } = scene;
    const text = Array.from(
      { length: 3000 },
      (_, line) => `**${line}** <a & b> [x](https://e.org/${line}) \`_*~\``,
    ).join('\n');
    const measure = { ...abilities, ...(platform.measure ? { rendered: platform.measure.bind(platform) } : {}) };
    const parts = splitText(text.slice(0, abilities.maxText * 3), measure);
    expect(parts.every((part) => (platform.measure?.(part) ?? 0) <= abilities.maxText)).toBe(true);
    for (const part of parts.slice(0, 3)) await scene.send(scene.driver.place('dm'), { text: part }, never);
    expect(scene.driver.shown().length).toBeGreaterThanOrEqual(Math.min(parts.length, 3));
  });
}

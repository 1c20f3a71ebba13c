import { describe, expect, test } from 'vitest';
import { Mailbox } from './mailbox.ts';

describe('a mailbox', () => {
  test('hands out all that waits, in order', async () => {
    const mailbox = new Mailbox<string>(100);
    for (const item of ['a', 'b']) mailbox.put(item, 1);
    expect(await mailbox.take(0)).toEqual(['a', 'b']);
    expect(await mailbox.take(0)).toEqual([]);
  });

  test('wakes a reader that waits', async () => {
    const mailbox = new Mailbox<string>(100);
    const taken = mailbox.take(60_000);
    mailbox.put('a', 1);
    expect(await taken).toEqual(['a']);
  });

  test('is over once it is closed and empty', async () => {
    const mailbox = new Mailbox<string>(100);
    mailbox.put('a', 1);
    mailbox.close();
    mailbox.put('b', 1);
    expect(await mailbox.take(0)).toEqual(['a']);
    expect(await mailbox.take(0)).toBeNull();
    const waiting = new Mailbox<string>(100);
    const taken = waiting.take(60_000);
    waiting.close();
    expect(await taken).toBeNull();
  });

  test('has room for so much, and for one that is larger than that', async () => {
    const mailbox = new Mailbox<string>(10);
    expect(mailbox.put('large', 50)).toBe(true);
    expect(mailbox.put('more', 1)).toBe(false);
    expect(await mailbox.take(0)).toEqual(['large']);
    expect(mailbox.put('again', 10)).toBe(true);
  });

  test('keeps a last item whatever there is', async () => {
    const mailbox = new Mailbox<string>(10);
    mailbox.put('large', 50);
    mailbox.close('the end');
    mailbox.close('another end');
    expect(await mailbox.take(0)).toEqual(['large', 'the end']);
    expect(await mailbox.take(0)).toBeNull();
  });
});

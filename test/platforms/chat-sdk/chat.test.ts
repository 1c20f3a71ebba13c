import type { ChatInstance, StateAdapter } from 'chat';
import { describe, expect, test } from 'vitest';
import type { Adapter } from '../../../src/platforms/chat-sdk/adapter.ts';
import { AdapterChat } from '../../../src/platforms/chat-sdk/chat.ts';
import { WebhookRequests } from '../../../src/platforms/chat-sdk/requests.ts';
import { AdapterState } from '../../../src/platforms/chat-sdk/state.ts';
import { ThreadIds } from '../../../src/platforms/chat-sdk/thread-ids.ts';
import { TestInbox, testRuntime, until } from '../contract/scene.ts';

// What adapters are given is what the library gives them.
type IsAssignable<From, To> = From extends To ? true : never;
const state: IsAssignable<AdapterState, Omit<StateAdapter, 'dequeue'>> = true;
const chat: IsAssignable<
  Omit<AdapterChat, 'getState' | 'getLogger' | 'history' | 'transcripts'>,
  Omit<Methods, 'history'>
> = true;
type Methods = Pick<ChatInstance, keyof ChatInstance & `process${string}`>;

/** An adapter that does what a test says with a webhook. */
class ScriptedAdapter {
  readonly name = 'scripted';
  botUserId = 'bot';
  userName = 'ann';
  chat!: AdapterChat;
  work: (request: Request, options: { waitUntil?: (task: Promise<unknown>) => void }) => void = () => undefined;

  async initialize(): Promise<void> {}

  async handleWebhook(request: Request, options: object): Promise<Response> {
    this.work(request, options);
    return new Response('ok');
  }

  parseMessage(raw: unknown): unknown {
    return raw;
  }

  channelIdFromThreadId(threadId: string): string {
    return threadId.split(':').slice(0, 2).join(':');
  }

  isDM(threadId: string): boolean {
    return threadId.startsWith('scripted:dm');
  }

  async postMessage(): Promise<{ id: string }> {
    return { id: '1' };
  }

  /** Brings a message without waiting for it, as most adapters do. */
  say(text: string, threadId = 'scripted:dm1', rest: object = {}): void {
    void this.chat.processMessage(this, threadId, messageOf(text, rest));
  }
}

function messageOf(text: string, rest: object = {}): object {
  const author = { userId: 'u1', userName: 'ada', fullName: 'Ada', isBot: false, isMe: false };
  return { id: text, text, author, metadata: { dateSent: new Date(1000), edited: false }, attachments: [], ...rest };
}

function openScene(speed = 100) {
  const adapter = new ScriptedAdapter();
  const runtime = testRuntime('chat-sdk', speed);
  const inbox = new TestInbox();
  const threads = new ThreadIds(adapter as unknown as Adapter, runtime);
  const deps = {
    adapter: adapter as unknown as Adapter,
    threads,
    runtime,
    redact: (text: string) => text,
    userName: '',
  };
  const shown: string[] = [];
  const standIn = new AdapterChat({ ...deps, show: (_, userId, text) => void shown.push(`${userId}: ${text}`) });
  adapter.chat = standIn;
  standIn.open(inbox);
  const bring = async (work: ScriptedAdapter['work']): Promise<number> => {
    adapter.work = work;
    const request = new Request('http://gateway.test/', { method: 'POST' });
    return (await standIn.requests.run((options) => adapter.handleWebhook(request, options)))?.status ?? 503;
  };
  return { adapter, runtime, inbox, threads, shown, bring, chat: standIn, state: standIn.getState() };
}

const later = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 20));

test('what an adapter gets has what the library promises it', () => expect([state, chat]).toEqual([true, true]));

describe('a webhook', () => {
  test('is answered when the inbox has what the adapter did not wait for', async () => {
    const { adapter, inbox, bring } = openScene();
    const release = inbox.hold();
    const answered = bring(() => adapter.say('precious'));
    expect(await Promise.race([answered, later().then(() => 'waiting')])).toBe('waiting');
    release();
    expect(await answered).toBe(200);
    expect(inbox.texts).toEqual(['precious']);
  });

  test('has to be brought again when one of several messages was not taken, and leaves no rejection behind', async () => {
    const { adapter, inbox, bring } = openScene();
    const both = (): void => {
      adapter.say('one', 'scripted:dm1');
      adapter.say('two', 'scripted:dm2');
    };
    inbox.refuseNext();
    expect(await bring(both)).toBe(503);
    expect(await bring(both)).toBe(200);
    expect(new Set(inbox.texts)).toEqual(new Set(['one', 'two']));
  });

  test('waits also for what the adapter does later, in a task that it hands on or in one that it keeps to itself', async () => {
    const { adapter, inbox, bring } = openScene();
    const handedOn = bring((_, { waitUntil }) => waitUntil?.(later().then(() => adapter.say('handed on'))));
    expect(await handedOn).toBe(200);
    expect(inbox.texts).toEqual(['handed on']);
    expect(
      await bring((_, { waitUntil }) => waitUntil?.(later().then(() => Promise.reject(new TypeError('lost'))))),
    ).toBe(503);
  });

  test('whose message is fetched first is taken when that is there, and refused when it cannot be had', async () => {
    const { adapter, inbox, bring } = openScene();
    const lazily = (message: () => Promise<object>) => () =>
      void adapter.chat.processMessage(adapter, 'scripted:dm1', message).catch(() => undefined);
    expect(await bring(lazily(async () => messageOf('fetched')))).toBe(200);
    expect(await bring(lazily(() => Promise.reject(new TypeError('gone'))))).toBe(503);
    expect(inbox.texts).toEqual(['fetched']);
  });

  test('that the adapter has seen is new again when the inbox could not take it', async () => {
    const { adapter, inbox, bring, state } = openScene();
    const once = (_: Request, { waitUntil }: { waitUntil?: (task: Promise<unknown>) => void }): void => {
      waitUntil?.(state.setIfNotExists('update:1', true, 60_000).then((isNew) => isNew && adapter.say('once')));
    };
    inbox.refuseNext();
    expect(await bring(once)).toBe(503);
    expect(await bring(once)).toBe(200);
    expect(await bring(once)).toBe(200);
    expect(inbox.texts).toEqual(['once']);
  });

  test('that repeats one which is not done yet is a repetition only if that one is taken', async () => {
    const { adapter, inbox, bring, state } = openScene();
    const once = (_: Request, { waitUntil }: { waitUntil?: (task: Promise<unknown>) => void }): void => {
      waitUntil?.(state.setIfNotExists('update:1', true).then((isNew) => isNew && adapter.say('once')));
    };
    const release = inbox.hold();
    inbox.refuseNext();
    const first = bring(once);
    await until(() => inbox.tried.length === 1, 'the first try');
    const second = bring(once);
    release();
    expect([await first, await second]).toEqual([503, 200]);
    expect(inbox.texts).toEqual(['once']);
  });

  test('over which an adapter hangs is given up, and so is one that waits for the same', async () => {
    const requests = new WebhookRequests(50);
    const state = new AdapterState(testRuntime('chat-sdk', 1), requests);
    const answer = async (): Promise<Response> => new Response('ok');
    const hanging = requests.run(async () => {
      await state.setIfNotExists('update:1', true);
      return new Promise<Response>(() => undefined);
    });
    const repeated = requests.run(async () => {
      expect(await state.setIfNotExists('update:1', true)).toBe(true);
      return answer();
    });
    expect(await hanging).toBeNull();
    await repeated;
    // The next one finds nothing in its way.
    const next = requests.run(async () =>
      (await state.setIfNotExists('update:2', true)) ? answer() : Promise.reject(),
    );
    expect((await next)?.status).toBe(200);
  });

  test('that was answered already is not what its late work belongs to: that is tried until it is taken', async () => {
    const { adapter, inbox, bring } = openScene();
    expect(await bring(() => void later().then(() => adapter.say('late')))).toBe(200);
    inbox.refuseNext(2);
    await until(() => inbox.texts.includes('late'), 'what came late');
    expect(inbox.tried).toHaveLength(3);
  });

  test('with a piece of a message fails with the one that brought the rest', async () => {
    const { adapter, inbox, bring, state } = openScene();
    const piece =
      (isLast: boolean) =>
      (_: Request, { waitUntil }: { waitUntil?: (task: Promise<unknown>) => void }) => {
        waitUntil?.(
          (async () => {
            const lock = await state.acquireLock('album', 1000);
            if (lock !== null) await state.releaseLock(lock);
            await later();
            if (isLast) adapter.say('both pieces');
          })(),
        );
      };
    inbox.refuseNext();
    expect(await Promise.all([bring(piece(false)), bring(piece(true))])).toEqual([503, 503]);
    expect(await Promise.all([bring(piece(false)), bring(piece(true))])).toEqual([200, 200]);
  });
});

describe('what comes in another way than by a webhook', () => {
  test('is tried until the inbox takes it, in order', async () => {
    const { adapter, inbox } = openScene();
    inbox.refuseNext(3);
    adapter.say('one');
    adapter.say('two');
    await until(() => inbox.received.length === 2, 'both');
    expect(inbox.texts).toEqual(['one', 'two']);
  });

  test('is left alone once nothing is taken any more', async () => {
    const { adapter, inbox, chat: standIn } = openScene(1);
    inbox.refuseNext(1000);
    const brought = adapter.chat.processMessage(adapter, 'scripted:dm1', messageOf('late'));
    await until(() => inbox.tried.length > 0, 'a try');
    await standIn.close();
    await expect(brought).rejects.toThrow();
  });
});

describe('what an adapter remembers', () => {
  test('is kept for the next process when it is to last, and lives as long as it said', async () => {
    const { runtime, state: before } = openScene();
    await before.set('installation:ada/loom', { id: 7 });
    await before.set('token', 'short', 3_600_000);
    await before.set('space', 'long', 30 * 86_400_000);
    await before.set('gone', 'x');
    await before.delete('gone');
    const kept = [...runtime.state.keys()].sort();
    expect(kept).toEqual(['state:installation:ada/loom', 'state:space']);
    const adapter = new ScriptedAdapter() as unknown as Adapter;
    const threads = new ThreadIds(adapter, runtime);
    const next = new AdapterChat({
      adapter,
      threads,
      runtime,
      redact: (text) => text,
      userName: '',
      show: () => undefined,
    });
    expect(await next.getState().get('installation:ada/loom')).toEqual({ id: 7 });
    expect(await next.getState().get('space')).toBe('long');
    expect(await next.getState().get('token')).toBeNull();
    expect(await before.get('token')).toBe('short');
  });

  test('of locks is one holder at a time, until it lets go or is too slow', async () => {
    const { state: locks } = openScene(1000);
    const first = await locks.acquireLock('thread', 60_000);
    expect(await locks.acquireLock('thread', 60_000)).toBeNull();
    expect(await locks.extendLock(first!, 60_000)).toBe(true);
    await locks.releaseLock(first!);
    const second = await locks.acquireLock('thread', 1000);
    await later();
    expect(await locks.acquireLock('thread', 60_000)).not.toBeNull();
    expect(await locks.extendLock(second!, 60_000)).toBe(false);
  });

  test('of lists is bounded, and there is no queue', async () => {
    const { state: lists } = openScene();
    for (let n = 0; n < 5; n += 1) await lists.appendToList('history', n, { maxLength: 3 });
    expect(await lists.getList('history')).toEqual([2, 3, 4]);
    await expect(lists.enqueue('thread', {}, 10)).rejects.toThrow('only queue');
  });
});

describe('what happens beside messages', () => {
  test('is told: presses with what is shown for them, changes, deletions, reactions, commands, new members', async () => {
    const { adapter, inbox, shown } = openScene();
    const user = { userId: 'u1', userName: 'ada', fullName: 'Ada', isBot: 'unknown', isMe: false };
    const at = { threadId: 'scripted:room:t1', messageId: 'm1' };
    inbox.answer = 'Thanks.';
    await adapter.chat.processAction({ ...at, actionId: 'approve:1', user, raw: {} });
    await adapter.chat.processMessageUpdated({ threadId: at.threadId, message: messageOf('changed') });
    await adapter.chat.processMessageDeleted(at);
    await adapter.chat.processReaction({ ...at, user, added: false, rawEmoji: '+1' });
    await adapter.chat.processSlashCommand({
      channelId: 'scripted:room',
      command: '/status',
      text: 'now',
      user,
      raw: {},
    });
    adapter.chat.processMemberJoinedChannel({ channelId: 'scripted:room', userId: 'u2' });
    await until(() => inbox.events.length === 3, 'the events');
    const place = { type: 'thread', chat: 'room', thread: 't1' };
    expect(inbox.presses).toMatchObject([
      { place, messageId: 'm1', data: 'approve:1', from: { id: 'u1', bot: false } },
    ]);
    expect(shown).toEqual(['u1: Thanks.']);
    expect(inbox.received).toMatchObject([
      { place, text: 'changed', edited: true },
      { place: { type: 'group', chat: 'room' }, text: '/status now', addressed: true },
    ]);
    expect(inbox.events).toMatchObject([
      { kind: 'message_deleted', place, messageId: 'm1', id: 'room:m1' },
      { kind: 'reaction_removed', place, messageId: 'm1', reaction: '+1' },
      { kind: 'member_joined', from: { id: 'u2' } },
    ]);
  });

  test('and is nothing when it is our own, or no such thing', async () => {
    const { adapter, inbox } = openScene();
    const self = { userId: 'bot', userName: 'ann', fullName: 'Ann', isBot: true, isMe: false };
    for (const odd of [null, 3, 'x', [], {}, { threadId: 7 }, { threadId: 'other:1', messageId: 'm', user: self }]) {
      await adapter.chat.processMessage(adapter, 'scripted:dm1', odd);
      await adapter.chat.processMessage(adapter, odd, messageOf('nowhere'));
      await adapter.chat.processAction(odd);
      await adapter.chat.processReaction(odd);
      await adapter.chat.processSlashCommand(odd);
      await adapter.chat.processMessageDeleted(odd);
      await adapter.chat.processMessageUpdated(odd);
      adapter.chat.processMemberJoinedChannel(odd);
    }
    await adapter.chat.processMessage(adapter, 'scripted:dm1', messageOf('ours', { author: self }));
    expect([inbox.tried, inbox.presses, inbox.events]).toEqual([[], [], []]);
  });
});

describe('the id of a thread', () => {
  test.each([
    ['scripted:dm1', { type: 'dm', chat: 'dm1' }],
    ['scripted:room', { type: 'group', chat: 'room' }],
    ['scripted:room:t1:r2', { type: 'thread', chat: 'room', thread: 't1:r2' }],
    ['scripted:room:scripted:x', { type: 'thread', chat: 'room', thread: 'scripted:room:scripted:x' }],
  ])('%s is a place, and the place is that thread again', async (threadId, place) => {
    const { threads } = openScene();
    expect(await threads.placeOf(threadId)).toEqual(place);
    expect(await threads.threadOf(place as never)).toBe(threadId);
  });

  test.each([
    ['too long', 'x'.repeat(300)],
    ['leading out', '../up'],
    ['turned around', 'a\u202eb'],
    ['beginning with a space', ' space'],
    ['like a digest', '~tilde'],
  ])('that no session key takes is known by its digest, also to the next process: %s', async (_, odd) => {
    const { threads, runtime } = openScene();
    const threadId = `scripted:room:${odd}`;
    const place = await threads.placeOf(threadId);
    expect(place?.thread).toMatch(/^~[\w-]{32}$/);
    const next = new ThreadIds(new ScriptedAdapter() as unknown as Adapter, runtime);
    expect(await next.threadOf(place!)).toBe(threadId);
  });

  test('is none where the adapter could not have made it', async () => {
    for (const odd of [null, 7, '', 'other:room', 'scripted:', 'scripted', 'x'.repeat(5000)]) {
      expect(await openScene().threads.placeOf(odd)).toBeNull();
    }
  });
});

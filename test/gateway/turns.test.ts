import { afterEach, describe, expect, test } from 'vitest';
import { notResumedText } from '../../src/turns/texts.ts';
import { Scene } from './scene.ts';

let scene: Scene;

afterEach(() => scene.close());

async function begin(settings: Record<string, unknown> = {}): Promise<void> {
  scene = await Scene.open(settings);
}

async function eventTypes(): Promise<string[]> {
  return (await scene.events()).filter(({ session_id }) => session_id !== null).map(({ type }) => type);
}

describe('a message', () => {
  test('is answered, and the reply is sent to where it came from', async () => {
    await begin();
    expect(await scene.ask('1', 'hello')).toBe('did: hello');
    await scene.until('the reply is sent', () => scene.pigeons.textsTo('1').includes('did: hello'));
    const { id } = await scene.sessionOf('1');
    expect((await scene.messages(id)).map(({ role, text }) => [role, text])).toEqual([
      ['user', 'hello'],
      ['assistant', 'did: hello'],
    ]);
    await scene.until('it is told', async () => (await eventTypes()).includes('delivery:sent'));
    expect(await eventTypes()).toEqual(['session:start', 'agent:start', 'agent:end', 'delivery:sent']);
  });

  test('that comes twice is one turn', async () => {
    await begin();
    const [first, second] = await Promise.all([scene.say('1', 'hello', 'p:1'), scene.say('1', 'hello', 'p:1')]);
    if (first.type !== 'turn' || second.type !== 'turn') throw new TypeError('not a turn');
    expect(second.received.turn.id).toBe(first.received.turn.id);
    expect((await first.channel.ended)?.response).toBe('did: hello');
    expect((await second.channel.ended)?.response).toBe('did: hello');
    expect(scene.runner.tasks).toHaveLength(1);
  });

  test('that fails is told, and the session stays usable', async () => {
    await begin();
    expect(await scene.ask('1', 'please fail')).toContain('told to fail');
    const { id, state } = await scene.sessionOf('1');
    expect(state).toBe('open');
    expect((await scene.messages(id)).map(({ text }) => text)).toEqual(['please fail']);
    await scene.until('the failure is sent', () => scene.pigeons.textsTo('1').length === 1);
    expect(await scene.ask('1', 'again')).toBe('did: again');
  });

  test('whose gateway has lost its lease is let go of: those who wait are told at once', async () => {
    await begin();
    const said = await scene.say('1', 'please wait');
    if (said.type !== 'turn') throw new TypeError('not a turn');
    await scene.store.write('stopInstance', { instance: scene.gateway.engine.instance });
    await scene.gateway.stop('shutdown');
    expect(await said.channel.ended).toBeNull();
  });

  test('without words is refused', async () => {
    await begin();
    await expect(scene.say('1', '  \n')).rejects.toMatchObject({ code: 'bad_input' });
  });

  test('without progress is stopped and told', async () => {
    await begin({ agent: { turn_timeout: '300ms' } });
    expect(await scene.ask('1', 'wait')).toContain('no progress for 300ms');
    const end = (await scene.events()).find(({ type }) => type === 'agent:end');
    expect(end).toMatchObject({ outcome: 'timeout' });
    expect(await scene.ask('1', 'hello')).toBe('did: hello');
  });
});

describe('messages that come while one is being answered', () => {
  test('are answered one after the other, in their order', async () => {
    await begin();
    const heard = [];
    for (const text of ['wait 1', '2', '3']) heard.push(await scene.say('1', text));
    await scene.until('it runs', () => scene.runner.tasks.length > 0);
    expect(scene.runner.tasks.map(({ text }) => text)).toEqual(['wait 1']);
    scene.runner.release();
    const replies = await Promise.all(
      heard.map(async (one) => (one.type === 'turn' ? (await one.channel.ended)?.response : null)),
    );
    expect(replies).toEqual(['did: wait 1', 'did: 2', 'did: 3']);
    expect(scene.runner.tasks.map(({ text }) => text)).toEqual(['wait 1', '2', '3']);
    await scene.until('all is sent', () => scene.pigeons.textsTo('1').length === 3);
    expect(scene.pigeons.textsTo('1')).toEqual(['did: wait 1', 'did: 2', 'did: 3']);
  });

  test('interrupt it where that is the mode', async () => {
    await begin({ agent: { busy_mode: 'interrupt' } });
    const first = await scene.say('1', 'wait');
    await scene.until('it is under way', () => scene.runner.tasks.length === 1);
    expect(await scene.ask('1', 'this instead')).toBe('did: this instead');
    expect(first.type === 'turn' && (await first.channel.ended)).toMatchObject({ outcome: 'interrupted' });
    const { id } = await scene.sessionOf('1');
    expect((await scene.messages(id)).map(({ text }) => text)).toEqual([
      'wait',
      'thinking',
      'this instead',
      'did: this instead',
    ]);
  });

  test('of other conversations wait for a free place, and the one that waited longest is next', async () => {
    await begin({ gateway: { max_concurrent_turns: 2 } });
    const heard = [];
    for (const [chat, text] of [
      ['1', 'wait 1'],
      ['2', 'wait 2'],
      ['1', 'more of 1'],
      ['3', '3'],
      ['4', '4'],
    ] as const) {
      heard.push(await scene.say(chat, text));
    }
    expect(scene.gateway.load.running).toBe(2);
    scene.runner.release();
    await Promise.all(heard.map((one) => (one.type === 'turn' ? one.channel.ended : null)));
    expect(scene.runner.tasks.map(({ text }) => text)).toHaveLength(5);
    const order = scene.runner.tasks.map(({ text }) => text);
    expect(order.indexOf('3')).toBeLessThan(order.indexOf('4'));
  });
});

describe('a stop', () => {
  test('lets a turn finish that is quick enough', async () => {
    await begin();
    const heard = await scene.say('1', 'wait');
    setTimeout(() => scene.runner.release(), 100);
    await scene.stop();
    await scene.start();
    expect(
      heard.type === 'turn' && (await scene.store.read('turnResult', { turnId: heard.received.turn.id })),
    ).toMatchObject({
      state: 'over',
      outcome: 'done',
    });
  });

  test.each(['restart', 'shutdown'] as const)(
    'cuts one that is not, and the next process goes on with it (%s)',
    async (why) => {
      await begin({ gateway: { drain_timeout: '100ms' } });
      const heard = await scene.say('1', 'tool wait');
      if (heard.type !== 'turn') throw new TypeError('not a turn');
      await scene.until(
        'the tool was used',
        async () => (await scene.messages(heard.received.session.id)).length === 3,
      );
      await scene.stop(why);
      await scene.start();
      await scene.until('it goes on', () => scene.runner.tasks.length === 1);
      const [task] = scene.runner.tasks;
      expect(task).toMatchObject({ sessionId: heard.received.session.id, turnId: heard.received.turn.id, text: null });
      expect(task?.note).toContain(why === 'restart' ? 'restarted' : 'shut down');
      scene.runner.release();
      await scene.until(
        'it is done',
        async () => (await scene.store.read('turnResult', { turnId: heard.received.turn.id }))?.state === 'over',
      );
      const types = (await eventTypes()).filter((type) => !type.startsWith('delivery'));
      expect(types).toEqual([
        ...['session:start', 'agent:start', 'agent:end', 'session:resume_pending'],
        ...['session:resume', 'agent:start', 'agent:end'],
      ]);
      await scene.until('both were told', () => scene.pigeons.textsTo('1').length === 2);
      expect(scene.pigeons.textsTo('1')[0]).toContain('interrupted');
    },
  );

  test('leaves what waits to the next process', async () => {
    await begin({ gateway: { drain_timeout: '50ms' } });
    await scene.say('1', 'wait');
    await scene.say('1', 'behind it');
    await scene.stop();
    await scene.start();
    scene.runner.release();
    await scene.until('both are answered', () => scene.pigeons.textsTo('1').includes('did: behind it'));
    expect(scene.pigeons.textsTo('1').filter((text) => text.startsWith('did'))).toEqual([
      'did: wait',
      'did: behind it',
    ]);
  });

  test('what it interrupted goes on within the resume window, also past the deadline of the session', async () => {
    await begin({
      gateway: { drain_timeout: '1ms' },
      sessions: { resume_window: '1h', reset: { mode: 'idle', idle: '10m' } },
    });
    await scene.say('1', 'please wait');
    await scene.until('it runs', () => scene.runner.tasks.length === 1);
    await scene.stop();
    scene.later(50 * 60_000);
    await scene.start();
    scene.runner.release();
    await scene.until('it is answered', () => scene.pigeons.textsTo('1').includes('did: please wait'));
  });

  test.each(['idle', 'none'])(
    'what it interrupted longer ago is told and not gone on with, reset mode %s',
    async (mode) => {
      await begin({
        gateway: { drain_timeout: '1ms' },
        sessions: { resume_window: '1h', reset: { mode, idle: '10m' } },
      });
      const heard = await scene.say('1', 'please wait');
      if (heard.type !== 'turn') throw new TypeError('not a turn');
      await scene.until('it runs', () => scene.runner.tasks.length === 1);
      await scene.stop();
      scene.later(2 * 3_600_000);
      await scene.start();
      const told = notResumedText('please wait');
      await scene.until('it is told', () => scene.pigeons.textsTo('1').includes(told));
      const { turn, session } = heard.received;
      expect(await scene.store.read('turnResult', { turnId: turn.id })).toMatchObject({
        outcome: 'interrupted',
        response: told,
      });
      expect((await scene.messages(session.id)).filter(({ role }) => role === 'user')).toHaveLength(1);
      await scene.gateway.turns.adopt();
      expect(scene.runner.tasks).toEqual([]);
      if (mode === 'idle') {
        await scene.until('it expires', async () => (await scene.session(session.id)).endReason === 'idle_expiry');
      }
    },
  );

  test('what goes on is told the truth: nothing was finished where only words were shown', async () => {
    await begin({ gateway: { drain_timeout: '1ms' } });
    const notes: (string | null)[] = [];
    for (const text of ['please wait', 'tool wait']) {
      await scene.say(text, text);
      await scene.until('it runs', () => scene.runner.tasks.some((task) => task.text === text));
    }
    await scene.until('the tool ran', async () => (await scene.sessionOf('tool wait')).messageCount > 2);
    await scene.stop();
    await scene.start();
    await scene.until('both go on', () => scene.runner.tasks.length === 2);
    const sessions = [await scene.sessionOf('please wait'), await scene.sessionOf('tool wait')];
    for (const { id } of sessions)
      notes.push(scene.runner.tasks.find(({ sessionId }) => sessionId === id)?.note ?? null);
    expect(notes[0]).toContain('What you had said is shown above and is not finished. Answer it now, whole.');
    expect(notes[1]).toContain('What is shown above was finished before that.');
    scene.runner.release();
  });

  test('what goes on is told the truth: there is nothing above where nothing was begun', async () => {
    await begin({ gateway: { drain_timeout: '1ms' } });
    await scene.say('1', 'ponder');
    await scene.until('it runs', () => scene.runner.tasks.length === 1);
    await scene.stop();
    await scene.start();
    await scene.until('it goes on', () => scene.runner.tasks.length === 1);
    expect(scene.runner.tasks[0]?.note).toBe(
      'You were interrupted before you could answer this: the gateway was shut down. Answer it now.',
    );
    scene.runner.release();
    await scene.until('it is answered', () => scene.pigeons.textsTo('1').includes('did: ponder'));
  });

  test('takes nothing new meanwhile', async () => {
    await begin();
    await scene.gateway.drain('test');
    await expect(scene.say('1', 'hello')).rejects.toMatchObject({ code: 'draining' });
    await scene.gateway.undrain();
    expect(await scene.ask('1', 'hello')).toBe('did: hello');
  });
});

describe('a turn that is cut again and again', () => {
  test('parks the session, tells the user, and the next message starts afresh', async () => {
    await begin({ gateway: { drain_timeout: '1ms' } });
    const heard = await scene.say('1', 'wait');
    if (heard.type !== 'turn') throw new TypeError('not a turn');
    for (let cut = 1; cut <= 3; cut++) {
      await scene.until('it runs', () => scene.runner.tasks.length === 1);
      await scene.stop('restart');
      await scene.start();
    }
    await scene.until('the user is told', () =>
      scene.pigeons.textsTo('1').some((text) => text.includes('several times')),
    );
    expect(await scene.session(heard.received.session.id)).toMatchObject({ state: 'suspended' });
    scene.runner.release();
    expect(await scene.ask('1', 'hello')).toBe('did: hello');
    expect(await scene.session(heard.received.session.id)).toMatchObject({
      state: 'ended',
      endReason: 'auto_reset',
      endCause: 'suspended',
    });
  });
});

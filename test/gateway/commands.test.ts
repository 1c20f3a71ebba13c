import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { COMMANDS } from '../../src/commands/catalogue.ts';
import { formatDuration } from '../../src/lifecycle/duration.ts';
import { parseCommand } from '../../src/turns/command.ts';
import { BACKGROUND_CUT_TEXT, besideNote, besideText } from '../../src/turns/texts.ts';
import { Scene } from './scene.ts';

let scene: Scene;

beforeEach(async () => {
  scene = await Scene.open();
});
afterEach(() => scene.close());

const CLOSED = { reason: 'admin_close', trigger: 'api' } as const;

/** Nobody writes for a long time. */
async function expires(chat: string): Promise<void> {
  const { id } = await scene.sessionOf(chat);
  scene.later(25 * 3_600_000);
  await scene.gateway.engine.expire('watcher');
  expect(await scene.session(id)).toMatchObject({ endReason: 'idle_expiry' });
}

async function types(): Promise<string[]> {
  const events = await scene.events();
  return events
    .filter(({ session_id, type }) => session_id !== null && !type.startsWith('delivery'))
    .map(({ type }) => type);
}

async function texts(sessionId: string): Promise<string[]> {
  return (await scene.messages(sessionId)).map(({ text }) => text);
}

describe('what is a command', () => {
  test.each([
    ['/new', { name: 'new', args: '' }],
    ['  /NEW  my day ', { name: 'new', args: 'my day' }],
    ['/new@moirai_bot x', { name: 'new', args: 'x' }],
    ['/etc/hosts is wrong', null],
    ['/ new', null],
    ['say /new', null],
    ['/1', null],
  ])('%s', (text, expected) => {
    expect(parseCommand(text)).toEqual(expected);
  });

  test('an unknown one is told, and is no message', async () => {
    expect(await scene.ask('1', '/nwe')).toContain('there is no command /nwe');
    expect(await scene.events()).not.toContainEqual(expect.objectContaining({ type: 'agent:start' }));
  });

  test('/help lists every one', async () => {
    const help = await scene.ask('1', '/help');
    for (const { name } of COMMANDS) expect(help).toContain(`/${name}`);
  });
});

describe('/new', () => {
  test('ends the session and starts another, in that order', async () => {
    await scene.ask('1', 'hello');
    const old = await scene.sessionOf('1');
    expect(await scene.ask('1', '/new my day')).toContain(old.id);
    const fresh = await scene.sessionOf('1');
    expect(await scene.session(old.id)).toMatchObject({ state: 'ended', endReason: 'user_reset' });
    expect(fresh).toMatchObject({ parentId: old.id, lineage: 'reset', title: 'my day', messageCount: 0 });
    expect((await types()).slice(-4)).toEqual(['command:new', 'session:end', 'session:start', 'session:reset']);
  });

  test('in the middle of a turn loses nothing: the transcript is whole, what waited goes on in the new session', async () => {
    const first = await scene.say('1', 'tool wait');
    await scene.until(
      'the tool was used',
      async () => (await scene.messages((await scene.sessionOf('1')).id)).length === 3,
    );
    const old = await scene.sessionOf('1');
    const second = await scene.say('1', 'behind it');
    await scene.ask('1', '/new');
    expect(first.type === 'turn' && (await first.channel.ended)).toMatchObject({ outcome: 'interrupted' });
    expect(second.type === 'turn' && (await second.channel.ended)?.response).toBe('did: behind it');
    expect(await texts(old.id)).toEqual(['tool wait', '', 'seen', 'thinking']);
    expect(await texts((await scene.sessionOf('1')).id)).toEqual(['behind it', 'did: behind it']);
    await scene.until('its tools are closed', () => scene.runner.forgotten.includes(old.id));
  });

  test('without a session only starts one', async () => {
    await scene.ask('1', '/new');
    expect(await types()).toEqual(['session:start', 'command:new']);
  });
});

describe('/stop', () => {
  test('stops the turn and keeps the session', async () => {
    const first = await scene.say('1', 'wait');
    await scene.until('it runs', () => scene.runner.tasks.length === 1);
    expect(await scene.ask('1', '/stop')).toBe('Stopped.');
    expect(first.type === 'turn' && (await first.channel.ended)).toMatchObject({ outcome: 'interrupted' });
    expect((await scene.sessionOf('1')).state).toBe('open');
    expect(await scene.ask('1', '/stop')).toContain('Nothing');
  });
});

describe('/resume and /branch', () => {
  test('go on in a new session that sees the old one', async () => {
    await scene.ask('1', 'one');
    const first = await scene.sessionOf('1');
    await scene.ask('1', '/new');
    await scene.ask('1', 'two');
    const second = await scene.sessionOf('1');
    expect(await scene.ask('1', '/resume')).toContain(first.id);
    await scene.ask('1', `/resume ${first.id}`);
    const third = await scene.sessionOf('1');
    expect(third).toMatchObject({ parentId: first.id, lineage: 'resume' });
    expect(await scene.session(second.id)).toMatchObject({ endReason: 'switched' });
    await scene.ask('1', 'three');
    expect(scene.runner.tasks.at(-1)?.transcript.map(({ text }) => text)).toEqual(['one', 'did: one']);
    await scene.ask('1', '/branch aside');
    expect(await scene.session(third.id)).toMatchObject({ endReason: 'branched' });
    expect(await scene.sessionOf('1')).toMatchObject({ parentId: third.id, lineage: 'branch', title: 'aside' });
  });

  test('by number and by title', async () => {
    await scene.ask('1', '/new first');
    const first = await scene.sessionOf('1');
    await scene.ask('1', '/new second');
    await scene.ask('1', '/resume FIRST');
    expect(await scene.sessionOf('1')).toMatchObject({ parentId: first.id });
    await scene.ask('1', '/resume 3');
    expect(await scene.sessionOf('1')).toMatchObject({ parentId: first.id });
  });

  test('never into somebody else’s conversation', async () => {
    await scene.ask('1', 'secret');
    const { id } = await scene.sessionOf('1');
    await scene.ask('1', '/new');
    expect(await scene.ask('2', `/resume ${id}`)).toContain('no session');
    expect(await scene.open('2')).toBeNull();
  });
});

describe('/undo and /retry', () => {
  test('leave out what was said, and say it again', async () => {
    await scene.ask('1', 'one');
    await scene.ask('1', 'two');
    expect(await scene.ask('1', '/undo')).toContain('two');
    expect(await scene.ask('1', '/retry')).toBe('did: one');
    const { id } = await scene.sessionOf('1');
    expect((await scene.gateway.transcripts.withoutUndone(id)).map(({ text }) => text)).toEqual(['one', 'did: one']);
    expect(await scene.ask('1', '/undo 5')).toContain('one');
    expect(await scene.ask('1', '/undo')).toContain('nothing');
    expect(await scene.ask('1', '/undo x')).toContain('not a number');
  });
});

describe('the others', () => {
  test('/title, /status, /usage, /whoami, /sessions, /model', async () => {
    expect(await scene.ask('1', '/status')).toContain('no open session');
    await scene.ask('1', 'hello');
    expect(await scene.ask('1', '/title My day')).toBe('Title: My day');
    expect(await scene.ask('1', '/title')).toBe('My day');
    expect(await scene.ask('1', '/status')).toContain('My day');
    expect(await scene.ask('1', '/usage')).toContain('2 messages, 1 tokens read, 1 tokens written');
    expect(await scene.ask('1', '/whoami')).toContain('user-1 on pigeon');
    expect(await scene.ask('1', '/sessions')).toContain('My day');
    expect(await scene.ask('1', '/model')).toContain('- other');
    expect(await scene.ask('1', '/model nothing')).toContain('there is no model nothing');
    expect(await scene.ask('1', '/model other')).toContain('other');
    await scene.ask('1', 'hello');
    expect(scene.runner.tasks.at(-1)?.model).toBe('other');
  });

  test('/usage says what it cost, where prices are known', async () => {
    await scene.close();
    scene = await Scene.open({ model: { price_in: 2_000_000, price_out: 10_000_000 } });
    await scene.ask('1', 'hello');
    expect(await scene.ask('1', '/usage')).toContain('at a cost of 12.0000');
  });

  test('/queue waits its turn, /steer is taken at the next step, both answered', async () => {
    const first = await scene.say('1', 'wait');
    await scene.until('it runs', () => scene.runner.tasks.length === 1);
    const queued = await scene.say('1', '/queue later');
    const steered = await scene.say('1', '/steer to the left');
    const task = scene.runner.tasks[0];
    expect(await task?.context.takeSteering()).toMatchObject([{ role: 'user', text: 'to the left' }]);
    scene.runner.release();
    expect(first.type === 'turn' && (await first.channel.ended)?.response).toBe('did: wait');
    expect(queued.type === 'turn' && (await queued.channel.ended)?.response).toBe('did: later');
    expect(steered.type === 'turn' && (await steered.channel.ended)).toMatchObject({ outcome: 'done' });
    expect(scene.runner.tasks).toHaveLength(2);
  });

  test('/background works beside the conversation and tells', async () => {
    await scene.ask('1', 'hello');
    const parent = await scene.sessionOf('1');
    expect(await scene.ask('1', '/background count the sheep')).toContain('beside');
    await scene.until('it is told', () =>
      scene.pigeons.textsTo('1').some((text) => text.includes('did: count the sheep')),
    );
    const [child] = (await scene.events()).filter(({ kind, type }) => kind === 'child' && type === 'session:end');
    expect(child).toMatchObject({ reason: 'batch_complete' });
    expect(await scene.session(child?.session_id ?? '')).toMatchObject({ parentId: parent.id, lineage: 'spawn' });
  });

  test('/background that dies with its process is told as well, and the conversation knows', async () => {
    await scene.close();
    scene = await Scene.open({ gateway: { drain_timeout: '100ms' } });
    await scene.ask('1', 'hello');
    await scene.ask('1', '/background wait');
    await scene.until('it runs', () => scene.runner.tasks.at(-1)?.text === 'wait');
    await scene.stop('restart');
    await scene.start();
    await scene.until('it is told', () => scene.pigeons.textsTo('1').some((text) => text.includes('beside')));
    expect(scene.pigeons.textsTo('1').at(-1)).toBe(besideText('wait', BACKGROUND_CUT_TEXT, false));
    const { id } = await scene.sessionOf('1');
    expect((await scene.messages(id)).at(-1)).toMatchObject({ role: 'note', text: expect.stringContaining('beside') });
  });

  test.each([
    ['is reset', () => scene.ask('1', '/new')],
    ['is closed', async () => void (await scene.gateway.engine.end((await scene.sessionOf('1')).id, CLOSED))],
    ['expires', () => expires('1')],
  ])('/background is told to the conversation when its session %s meanwhile', async (_, happens) => {
    await scene.ask('1', 'hello');
    await scene.ask('1', '/background wait');
    await scene.until('it runs', () => scene.runner.tasks.at(-1)?.text === 'wait');
    const { id } = await scene.sessionOf('1');
    await happens();
    expect(await scene.session(id)).toMatchObject({ state: 'ended' });
    scene.runner.release();
    const told = besideText('wait', 'did: wait', true);
    await scene.until('it is told', () => scene.pigeons.textsTo('1').includes(told));
    await scene.ask('1', 'what was that?');
    const { id: next } = await scene.sessionOf('1');
    const known = besideNote('user-1', 'wait', 'did: wait', true);
    expect(await scene.messages(next)).toContainEqual(expect.objectContaining({ role: 'note', text: known }));
  });

  test('/background over HTTP is in the transcript of the conversation when it is done', async () => {
    const conversation = { ...scene.conversation('w'), platform: 'web' };
    const say = (text: string) => scene.gateway.conversations.receive({ conversation, text, originRef: null });
    await say('/background count the sheep');
    const { id } = await scene.sessionOf('w');
    await scene.until('it is told', async () =>
      (await texts(id)).some((text) => text.includes('did: count the sheep')),
    );
  });

  test('/background and /model as the first words after an expiry begin a session, and are kept to', async () => {
    expect(await scene.ask('1', '/model other')).toBe('From now on: other');
    await scene.ask('1', 'hello');
    expect(scene.runner.tasks.at(-1)?.model).toBe('other');
    await expires('1');
    expect(await scene.ask('1', '/background count the sheep')).toContain('You will be told.');
    await scene.until('it is told', () => scene.pigeons.textsTo('1').some((text) => text.includes('did: count')));
  });

  test('a command is activity: it moves the deadline', async () => {
    await scene.ask('1', 'hello');
    const before = await scene.sessionOf('1');
    scene.later(3_600_000);
    await scene.ask('1', '/status');
    expect((await scene.sessionOf('1')).expiresAt).toBeGreaterThanOrEqual((before.expiresAt ?? 0) + 3_600_000);
  });

  test('/status says when the session ends, counted from the /status itself', async () => {
    await scene.ask('1', 'hello');
    const { expiresAt, lastActivityAt } = await scene.sessionOf('1');
    const wholeTime = formatDuration((expiresAt ?? 0) - lastActivityAt);
    scene.later(3_600_000);
    expect(await scene.ask('1', '/status')).toContain(`Ends in ${wholeTime} unless you write`);
  });

  test('work beside a conversation asks there, and is answered there', async () => {
    await scene.ask('1', 'hello');
    await scene.ask('1', '/background wait');
    await scene.until('it runs', () => scene.runner.tasks.at(-1)?.text === 'wait');
    const answer = scene.runner.tasks.at(-1)?.context.approve({ tool: 'run_command', action: 'make clean' });
    await scene.until('it is asked', () => scene.pigeons.textsTo('1').some((text) => text.includes('make clean')));
    expect(await scene.ask('1', '/approve')).toContain('Allowed: make clean');
    expect(await answer).toEqual({ allowed: true });
  });

  test.each([
    ['was reset', () => scene.ask('1', '/new')],
    ['expired', () => expires('1')],
  ])('work beside a conversation whose session %s asks there, and is answered there', async (_, happens) => {
    await scene.ask('1', 'hello');
    await scene.ask('1', '/background wait');
    await scene.until('it runs', () => scene.runner.tasks.at(-1)?.text === 'wait');
    const task = scene.runner.tasks.at(-1);
    await happens();
    const answer = task?.context.approve({ tool: 'run_command', action: 'make clean' });
    await scene.until('it is asked', () => scene.pigeons.textsTo('1').some((text) => text.includes('make clean')));
    expect(await scene.ask('1', '/approve')).toContain('Allowed: make clean');
    expect(await answer).toEqual({ allowed: true });
    const promises = await scene.store.read('checkPromises', { sample: 10 });
    expect(promises.filter(({ broken }) => broken > 0)).toEqual([]);
  });

  test('work that a turn delegates asks in its conversation, and is answered there', async () => {
    await scene.say('1', 'wait');
    await scene.until('it runs', () => scene.runner.tasks.length === 1);
    const { sessionId = '', turnId = '', platform = '', userId = null } = scene.runner.tasks[0] ?? {};
    const asker = { sessionId, turnId, platform, userId };
    const done = scene.ports.delegate?.('ask', asker, AbortSignal.timeout(30_000));
    await scene.until('it is asked', () => scene.pigeons.textsTo('1').some((text) => text.includes('spin the wheel')));
    expect(await scene.ask('1', '/approve')).toContain('Allowed: spin the wheel');
    expect(await done).toBe('did: ask, allowed');
  });

  test('a message right behind /undo is not taken back by it', async () => {
    for (let i = 0; i < 20; i++) {
      await scene.ask('1', `first ${i}`);
      const undone = scene.ask('1', '/undo');
      const second = scene.ask('1', `second ${i}`);
      expect(await undone).toBe(`Undone: “first ${i}”`);
      expect(await second).toBe(`did: second ${i}`);
    }
  });

  test('/approve and /deny answer the oldest question; silence is a no', async () => {
    await scene.say('1', 'wait');
    await scene.until('it runs', () => scene.runner.tasks.length === 1);
    const context = scene.runner.tasks[0]?.context;
    const first = context?.approve({ tool: 'run_command', action: 'rm -r /' });
    const second = context?.approve({ tool: 'run_command', action: 'ls' });
    await scene.until('it is asked', () => scene.pigeons.textsTo('1').some((text) => text.includes('rm -r /')));
    expect(await scene.ask('1', '/deny not that')).toContain('Refused: rm -r /');
    expect(await first).toEqual({ allowed: false, reason: 'not that' });
    expect(await scene.ask('1', '/approve')).toContain('Allowed: ls');
    expect(await second).toEqual({ allowed: true });
    expect(await scene.ask('1', '/approve')).toContain('Nothing');
  });
});

test('/undo takes back a message that waits before one that is being answered', async () => {
  await scene.say('1', 'wait');
  await scene.until('it runs', () => scene.runner.tasks.length === 1);
  const later = scene.say('1', 'later');
  await later;
  expect(await scene.ask('1', '/undo')).toBe('Undone: “later”');
  expect(scene.runner.tasks[0]?.signal.aborted).toBe(false);
  await scene.say('1', 'later still');
  expect(await scene.ask('1', '/undo 2')).toBe('Undone: “later still”, “wait”');
  const { id } = await scene.sessionOf('1');
  const kept = await scene.gateway.transcripts.withoutUndone(id);
  expect(kept.filter(({ role }) => role === 'user')).toEqual([]);
});

describe('what a person allows', () => {
  const allowed = (times: number) => scene.runner.tasks[times]?.context;

  test('in a session or always is not asked again for the same command, until it is revoked', async () => {
    await scene.say('1', 'wait');
    await scene.until('it runs', () => scene.runner.tasks.length === 1);
    const make = { tool: 'run_command', action: 'make', args: { command: 'make' } };
    const asked = () => scene.gateway.approvals.waiting();
    const first = allowed(0)?.approve(make);
    await scene.until('it is asked', async () => (await asked()).length === 1);
    expect(await scene.ask('1', '/approve session')).toBe('Allowed in this session: make');
    expect(await first).toEqual({ allowed: true });
    expect(await allowed(0)?.approve(make)).toEqual({ allowed: true });
    const other = allowed(0)?.approve({ ...make, args: { command: 'make', timeout_seconds: 9 } });
    await scene.until('other arguments are asked for', async () => (await asked()).length === 1);
    expect(await scene.ask('1', '/approve always')).toBe('Allowed from now on: make');
    expect(await other).toEqual({ allowed: true });
    const [rule] = await scene.store.read('listApprovalRules', {});
    expect(await scene.ask('1', '/approvals')).toBe(`${rule?.id} is always allowed: make`);
    expect(await scene.ask('1', `/approvals revoke ${rule?.id}`)).toBe('Revoked: make');
    expect(await scene.ask('1', '/approvals')).toContain('Nothing waits');
    const types = (await scene.events()).map(({ type }) => type).filter((type) => type.startsWith('approval:'));
    expect(types).toEqual(['approval:asked', 'approval:answered', 'approval:asked', 'approval:answered']);
  });

  test('is answered by its id from another conversation', async () => {
    await scene.say('1', 'wait');
    await scene.until('it runs', () => scene.runner.tasks.length === 1);
    const answer = allowed(0)?.approve({ tool: 'run_command', action: 'make' });
    await scene.until('it is asked', async () => (await scene.gateway.approvals.waiting()).length === 1);
    const [question] = await scene.gateway.approvals.waiting();
    expect(await scene.ask('2', '/approve')).toBe('Nothing is being asked for.');
    expect(await scene.ask('2', `/deny ${question?.id} not now`)).toBe('Refused: make');
    expect(await answer).toEqual({ allowed: false, reason: 'not now' });
  });

  test('is not asked for any longer when the turn that asked was stopped', async () => {
    await scene.say('1', 'wait');
    await scene.until('it runs', () => scene.runner.tasks.length === 1);
    const answer = allowed(0)?.approve({ tool: 'run_command', action: 'make' });
    await scene.until('it is asked', async () => (await scene.gateway.approvals.waiting()).length === 1);
    await scene.ask('1', '/stop');
    expect(await answer).toEqual({ allowed: false, reason: 'the turn was stopped' });
    await scene.until('it expires', async () => (await scene.events()).some(({ decision }) => decision === 'expired'));
    expect(await scene.gateway.approvals.waiting()).toEqual([]);
  });
});

test.each(['mute', 'invisible'])('an empty reply is a failure, and the person is told (%s)', async (kind) => {
  expect(await scene.ask('1', kind)).toContain('(model_empty)');
  await scene.until('it is told', () => scene.pigeons.textsTo('1').some((text) => text.includes('(model_empty)')));
  const { id } = await scene.sessionOf('1');
  expect((await scene.messages(id)).map(({ role }) => role)).toEqual(['user']);
});

import { once } from 'node:events';
import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { HttpFake } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { CliFixture, chat, converse, finish, hasTerminal, launcher, type Process, until } from './cli-fixture.ts';

let cli: CliFixture;
let model: HttpFake | null = null;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(async () => {
  cli.remove();
  await model?.close();
  model = null;
});

/** Lets the home's agent talk to a scripted model. */
async function script(replies: ModelScript, more = ''): Promise<HttpFake> {
  model = await startOpenAiServer(replies);
  const config = `model: { provider: openai-compatible, base_url: "${model.url}", name: fake-model, api_key: none }\n${more}`;
  writeFileSync(join(cli.home, 'config.yaml'), config);
  return model;
}

/** The sessions of terminals, newest first. */
// biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests are about
async function sessions(): Promise<any[]> {
  return (await cli.json('sessions', 'list', '--kind', 'cli')).data;
}

async function expectAllWell(): Promise<void> {
  expect(await cli.json('sessions', 'stats')).toMatchObject({ open: 0, open_unowned: 0 });
  expect((await cli.json('doctor')).ok).toBe(true);
}

describe('one message', () => {
  test('is answered on standard output alone, and its session ends as cli_close', async () => {
    const outcome = await cli.moirai('chat', '-q', 'say the harbour is in the north');
    expect(outcome).toEqual({ code: 0, signal: null, output: 'the harbour is in the north\n', errors: '' });
    const [session] = await sessions();
    expect(session).toMatchObject({ kind: 'cli', platform: 'cli', state: 'ended', end_reason: 'cli_close' });
    expect(session.key).toMatch(/^agent:main:cli:dm:[0-9a-f-]{36}$/);
    expect(await cli.events('--types', 'session:end')).toMatchObject([{ reason: 'cli_close', trigger: 'cli' }]);
    expect(await cli.events('--types', 'gateway:*')).toEqual([]);
    await expectAllWell();
  });

  test.each([['chat'], ['chat', '-q', '-']])('may come through a pipe: %s %s %s', async (...args) => {
    const outcome = await cli.feed('say one\nand two\n', ...args.filter(Boolean));
    expect(outcome).toMatchObject({ code: 0, output: 'one\nand two\n', errors: '' });
    expect(await sessions()).toHaveLength(1);
  });

  test('is answered with --json by what came of it', async () => {
    const answer = await cli.json('chat', '-q', 'say yes');
    const [session] = await sessions();
    expect(answer).toEqual({
      ...{ session_id: session.id, reply: 'yes', outcome: 'done' },
      turn_id: expect.stringMatching(/^trn_/),
    });
  });

  test('that is a command is obeyed', async () => {
    const { code, output } = await cli.moirai('chat', '-q', '/help');
    expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining('/new, /reset [title] - ') });
  });

  test('that is empty is refused', async () => {
    expect(await cli.feed('\n', 'chat')).toMatchObject({ code: 2, errors: expect.stringContaining('[bad_input]') });
    await expectAllWell();
  });

  test('whose turn fails ends with 1 and the coded error', async () => {
    await script([{ status: 401, error: { message: 'no such key' } }]);
    const plain = await cli.moirai('chat', '-q', 'hello');
    expect(plain).toMatchObject({
      code: 1,
      output: '',
      errors: expect.stringMatching(/^error: .* \[model_unauthorized\]\n/),
    });
    const { code, output, errors } = await cli.moirai('chat', '-q', 'hello', '--json');
    expect(code).toBe(1);
    expect(JSON.parse(output)).toMatchObject({ reply: null, outcome: 'failed', turn_id: expect.any(String) });
    expect(JSON.parse(errors)).toMatchObject({ error: { code: 'model_unauthorized' } });
    expect(await cli.json('sessions', 'stats')).toMatchObject({ open: 0, ended: { cli_close: 2 } });
  });

  test('cannot act on the terminal with what comes back', async () => {
    await script([{ text: 'a\u001b[2Jb \u009bc\td\r\ne' }]);
    const { output } = await cli.moirai('chat', '-q', 'hello');
    expect(output).toBe('a\\x1b[2Jb \\u{9b}c\td\ne\n');
  });

  test('has its tools told on standard error, and nobody to ask', async () => {
    const call = { name: 'run_command', args: { command: 'touch made' } };
    await script((_, index) => (index === 0 ? { toolCalls: [call] } : { text: 'I was not allowed to.' }));
    const { code, output, errors } = await cli.moirai('chat', '-q', 'make it');
    expect({ code, output }).toEqual({ code: 0, output: 'I was not allowed to.\n' });
    expect(errors).toContain('· run_command {"command":"touch made"}\n');
    expect(errors).toContain('nobody is there to be asked');
  });

  test('can go on from an earlier session, which it sees', async () => {
    const { session_id: first } = await cli.json('chat', '-q', 'say the harbour');
    const counted = await cli.json('chat', '-q', 'how many messages', '--resume', first.slice(0, 20));
    expect(counted.reply).toContain('You had written 1 message ');
    expect(await sessions()).toMatchObject([
      { id: counted.session_id, parent_id: first, lineage: 'resume', end_reason: 'cli_close' },
      { id: first, end_reason: 'cli_close' },
    ]);
    await expectAllWell();
  });

  test("can go on from another platform's session, which stays as it is", async () => {
    const from = await cli.live((engine) => converse(engine, chat(7), 'where?', 'in the north'));
    const { session_id } = await cli.json('chat', '-q', 'how many messages', '--resume', from);
    const texts = await cli.live(async (engine) =>
      (await Array.fromAsync(engine.transcript(session_id))).map(({ text }) => text),
    );
    expect(texts.slice(0, 3)).toEqual(['where?', 'in the north', 'how many messages']);
    expect(await cli.json('sessions', 'show', from)).toMatchObject({ state: 'open' });
  });

  test('to an unknown session is refused, and no session starts', async () => {
    const outcome = await cli.moirai('chat', '-q', 'hello', '--resume', 'ses_nobody');
    expect(outcome).toMatchObject({ code: 1, output: '', errors: expect.stringContaining('[session_not_found]') });
    expect(await sessions()).toEqual([]);
  });

  test.each([
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('is given up in order on %s', async (signal, code) => {
    await script([{ text: 'one two three', hangAfter: 2 }]);
    const child = cli.start(['chat', '-q', 'hello']);
    const outcome = finish(child);
    await until('the model is asked', () => questions(model as HttpFake).length === 1);
    child.kill(signal);
    expect(await outcome).toMatchObject({ code, output: '', errors: expect.stringContaining('[turn_stopped]') });
    expect(await sessions()).toMatchObject([{ end_reason: 'cli_close' }]);
    expect(await cli.events('--types', 'agent:end')).toMatchObject([{ outcome: 'interrupted' }]);
    await expectAllWell();
  });

  test('whose process is killed leaves a session that the next command shows as reaped', async () => {
    await script([{ text: 'one two three', hangAfter: 2 }]);
    const child = cli.start(['chat', '-q', 'hello']);
    await until('the model is asked', () => questions(model as HttpFake).length === 1);
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(await cli.json('sessions', 'stats')).toMatchObject({ open: 0, open_unowned: 0, ended: { reaped: 1 } });
    await expectAllWell();
  });
});

test('without a terminal and without arguments, moirai says how it is called', async () => {
  expect(await cli.moirai()).toMatchObject({ code: 2, errors: expect.stringContaining('[usage]') });
});

/** A terminal in which somebody talks. */
class Talk {
  readonly process: Process;
  shown = '';

  constructor(args = 'chat', env = '') {
    this.process = cli.terminal(`exec env ${env} '${process.execPath}' '${launcher}' ${args}`);
    this.process.stdout.on('data', (bytes) => {
      this.shown += bytes;
    });
  }

  type(keys: string): void {
    this.process.stdin.write(keys);
  }

  async sees(text: string): Promise<void> {
    await until(text, () => this.shown.includes(text)).catch((error: Error) => {
      throw new Error(`${error.message}; the terminal shows ${JSON.stringify(this.shown)}`);
    });
  }

  /** Types a line and waits for what comes; all that was shown before is forgotten. */
  async say(line: string, answer: string): Promise<void> {
    this.shown = '';
    this.type(`${line}\r`);
    await this.sees(answer);
  }

  /** Waits until there is an empty prompt: then nothing is being done any more. */
  async isPrompted(): Promise<void> {
    await until('a prompt', () => this.shown.endsWith('> \r\u001b[2C'));
  }

  /** One message and its reply, with its turn over: the words of a reply are shown before that. */
  async exchange(): Promise<void> {
    await this.say('say something', '\r\nsomething\r\n');
    await this.isPrompted();
  }

  async ends(): Promise<number> {
    const [code] = this.process.exitCode === null ? await once(this.process, 'exit') : [this.process.exitCode];
    return code;
  }
}

async function begin(args?: string, env?: string): Promise<Talk> {
  const talk = new Talk(args, env);
  await talk.sees('> ');
  return talk;
}

/** The process id of the terminal's moirai, from the session it started. */
async function pidOf(): Promise<number> {
  return (await cli.events('--types', 'session:start')).at(-1).origin.pid;
}

const CTRL_C = '\u0003';
const CTRL_D = '\u0004';

describe.skipIf(!hasTerminal())('in a terminal', () => {
  test('messages are answered, and Ctrl-D ends the session as cli_close', async () => {
    const talk = await begin('');
    expect(talk.shown).toContain('offline');
    expect(await sessions()).toEqual([]);
    await talk.say('say first words', '\r\nfirst words\r\n');
    await talk.say('how many messages', 'You had written 1 message ');
    await talk.isPrompted();
    expect(await sessions()).toMatchObject([{ state: 'open', owner: expect.stringMatching(/^ins_/) }]);
    talk.type(CTRL_D);
    expect(await talk.ends()).toBe(0);
    const [{ id, end_reason }] = await sessions();
    expect(end_reason).toBe('cli_close');
    expect(talk.shown).toContain(`moirai chat --resume ${id}`);
    await expectAllWell();
  });

  test.each(['/quit', '/exit'])('%s leaves', async (command) => {
    const talk = await begin();
    await talk.exchange();
    talk.type(`${command}\r`);
    expect(await talk.ends()).toBe(0);
    expect(await sessions()).toMatchObject([{ end_reason: 'cli_close' }]);
  });

  test('leaving without a word starts no session', async () => {
    const talk = await begin();
    talk.type(CTRL_D);
    expect(await talk.ends()).toBe(0);
    expect(await sessions()).toEqual([]);
  });

  test('text is shown while the model still writes', async () => {
    await script([{ text: 'early words and then a long silence', hangAfter: 2 }]);
    const talk = await begin();
    await talk.say('hello', 'early words');
    expect(await cli.events('--types', 'agent:end')).toEqual([]);
  });

  test('Ctrl-C stops the turn, and the session goes on', async () => {
    await script((_, index) => (index === 0 ? { text: 'one two three', hangAfter: 2 } : { text: 'here again' }));
    const talk = await begin();
    await talk.say('hello', 'one two');
    talk.type(CTRL_C);
    await talk.sees('Stopped.');
    await talk.say('are you there?', 'here again');
    await talk.isPrompted();
    expect(await sessions()).toMatchObject([{ state: 'open' }]);
    expect(await cli.events('--types', 'agent:end')).toMatchObject([{ outcome: 'interrupted' }, { outcome: 'done' }]);
  });

  test('Ctrl-C at the prompt clears the line, and a second one leaves', async () => {
    const talk = await begin();
    await talk.exchange();
    talk.type(`say nothing${CTRL_C}`);
    await talk.sees('Ctrl-C again leaves.');
    talk.type(CTRL_C);
    expect(await talk.ends()).toBe(0);
    expect(await sessions()).toMatchObject([{ end_reason: 'cli_close', message_count: 2 }]);
  });

  test('a failed turn tells its code, and the next message is answered', async () => {
    await script((_, index) => (index === 0 ? { status: 401 } : { text: 'better now' }));
    const talk = await begin();
    await talk.say('hello', '(model_unauthorized)');
    await talk.say('and now?', 'better now');
  });

  test('/new ends the session and starts one, in that order', async () => {
    const talk = await begin();
    await talk.exchange();
    await talk.say('/new', 'A fresh session.');
    await talk.say('how many messages', 'You had written 0 messages');
    talk.type(CTRL_D);
    await talk.ends();
    const log = (await cli.events('--types', 'session:*')).map(({ type, reason }) => [type, reason ?? null]);
    expect(log.filter(([type]) => type === 'session:start' || type === 'session:end')).toEqual([
      ['session:start', null],
      ['session:end', 'user_reset'],
      ['session:start', null],
      ['session:end', 'cli_close'],
    ]);
    await expectAllWell();
  });

  test('/new in the middle of a turn ends the session with what was said', async () => {
    await script((_, index) => (index === 0 ? { text: 'one two three', hangAfter: 2 } : { text: 'fresh' }));
    const talk = await begin();
    await talk.say('hello', 'one two');
    await talk.say('/new', 'A fresh session.');
    await talk.say('hello again', 'fresh');
    talk.type(CTRL_D);
    await talk.ends();
    const [, first] = await sessions();
    expect(first).toMatchObject({ end_reason: 'user_reset' });
    const { output } = await cli.moirai('sessions', 'messages', first.id);
    expect(output).toContain('user: hello');
    expect(output).toContain('one two');
    await expectAllWell();
  });

  test('what is typed while a turn runs waits for it', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await script(async (_, index) => {
      if (index === 0) await held;
      return { text: index === 0 ? 'the first answer' : 'the second answer' };
    });
    const talk = await begin();
    talk.type('first\r');
    await until('the model is asked', () => questions(model as HttpFake).length === 1);
    talk.type('second\r');
    await until('both are kept', async () => (await sessions())[0]?.id !== undefined);
    release();
    await talk.sees('the second answer');
    await talk.isPrompted();
    expect(talk.shown.indexOf('the first answer')).toBeLessThan(talk.shown.indexOf('the second answer'));
    expect(await cli.events('--types', 'agent:end')).toMatchObject([{ message: 'first' }, { message: 'second' }]);
  });

  test.each([
    ['y', 'command done', true],
    ['', 'command failed', false],
  ])('an approval is asked for; "%s" is answered: %s', async (answer, seen, allowed) => {
    const call = { name: 'run_command', args: { command: 'echo harbour' } };
    const fake = await script((_, index) => (index === 0 ? { toolCalls: [call] } : { text: 'that was it' }));
    const talk = await begin();
    await talk.say('do it', 'Allow this? ');
    await talk.sees('[y/N] ');
    await talk.say(answer, seen);
    await talk.sees('that was it');
    expect(questions(fake)[1]?.raw.includes('the user said no')).toBe(!allowed);
  });

  test('several lines pasted at once are one message', async () => {
    const talk = await begin();
    talk.type('\u001b[200~say one\rand two\u001b[201~');
    await talk.say('', '\r\none\r\nand two\r\n');
    expect(await cli.events('--types', 'agent:start')).toMatchObject([{ message: 'say one\nand two' }]);
  });

  test('Ctrl-Z where there is no shell to go back to does no harm', async () => {
    const talk = await begin();
    talk.type('\u001a');
    await new Promise((resolve) => setTimeout(resolve, 300));
    await talk.exchange();
  });

  test('Tab completes commands', async () => {
    const talk = await begin();
    talk.type('/whoa\t\r');
    await talk.sees('You are ');
    talk.type('/st\t\t');
    await talk.sees('/status  /steer  /stop');
  });

  test('what was typed comes back with the arrow key, also in the next terminal', async () => {
    const first = await begin();
    await first.say('say harbour', '\r\nharbour\r\n');
    first.type(CTRL_D);
    await first.ends();
    const file = join(cli.home, 'chat_history');
    expect(readFileSync(file, 'utf8')).toBe('"say harbour"\n');
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const second = await begin();
    await second.say('\u001b[A', '\r\nharbour\r\n');
  });

  test('colours are there, but not with NO_COLOR', async () => {
    expect((await begin()).shown).toContain('\u001b[2m');
    expect((await begin('chat', 'NO_COLOR=1')).shown).not.toContain('\u001b[2m');
  });

  test('a reply cannot act on the terminal', async () => {
    await script([{ text: 'red \u001b[31malert \u001b]0;title\u0007 end' }]);
    const talk = await begin();
    await talk.say('hello', 'end\r\n');
    expect(talk.shown).toContain('red \\x1b[31malert \\x1b]0;title\\u{7} end');
  });

  test('an earlier session goes on', async () => {
    const { session_id } = await cli.json('chat', '-q', 'say harbour');
    const talk = await begin(`chat --resume ${session_id}`);
    expect(talk.shown).toContain(`Back in: ${session_id}`);
    expect((await sessions())[0]).toMatchObject({ state: 'open', parent_id: session_id, lineage: 'resume' });
    await talk.say('how many messages', 'You had written 1 message ');
  });

  test('/sessions lists those of other terminals, and /resume goes on from any', async () => {
    const { session_id } = await cli.json('chat', '-q', 'say harbour');
    const elsewhere = await cli.live((engine) => converse(engine, chat(7), 'where?', 'in the north'));
    const talk = await begin();
    await talk.say('/sessions', session_id);
    await talk.say('/resume 1', 'Back in: ');
    await talk.say('how many messages', 'You had written 1 message ');
    await talk.say(`/resume ${elsewhere}`, 'Back in: ');
    await talk.say('how many messages', 'You had written 1 message ');
    talk.type(CTRL_D);
    await talk.ends();
    expect(await sessions()).toMatchObject([
      { end_reason: 'cli_close', parent_id: elsewhere, kind: 'cli' },
      { end_reason: 'switched', parent_id: session_id },
      { id: session_id },
    ]);
  });

  test('what is done in the background is told when it is done', async () => {
    const talk = await begin();
    await talk.exchange();
    await talk.say('/background say harbour', 'Done beside this conversation: say harbour');
    await talk.sees('\r\nharbour');
  });

  test('with busy_mode interrupt a newer message takes the place of what is being done', async () => {
    const replies: ModelScript = (_, index) => (index === 0 ? { text: 'one two', hangAfter: 1 } : { text: 'newer' });
    await script(replies, 'agent: { busy_mode: interrupt }\n');
    const talk = await begin();
    await talk.say('first', 'one');
    await talk.say('second', 'Stopped for your newer message.');
    await talk.sees('newer');
  });

  test('a terminal that was stopped for longer than its lease says so and leaves', async () => {
    writeFileSync(join(cli.home, 'config.yaml'), 'sessions: { heartbeat: 500ms, lease_ttl: 4s }\n');
    const talk = await begin();
    await talk.exchange();
    const pid = await pidOf();
    cli.pause(pid);
    await until('it is given up', async () => (await sessions())[0].end_reason === 'reaped');
    process.kill(pid, 'SIGCONT');
    talk.process.kill('SIGCONT'); // `script` stops with what it runs.
    await talk.sees('away for longer than its lease');
    expect(await talk.ends()).toBe(1);
    expect(talk.shown).toContain(`moirai chat --resume ${(await sessions())[0].id}`);
    await expectAllWell();
  });

  test('a session that is ended from outside is told, and the next message starts another', async () => {
    const talk = await begin();
    await talk.exchange();
    const [{ id }] = await sessions();
    await cli.moirai('sessions', 'end', id);
    await talk.sees('ended from outside');
    await talk.say('how many messages', 'You had written 0 messages');
    expect(await sessions()).toMatchObject([{ state: 'open' }, { id, end_reason: 'admin_close' }]);
  });

  test('a session that an operator parks says so, and answers what was said once it is released', async () => {
    const talk = await begin();
    await talk.exchange();
    const [{ id }] = await sessions();
    await cli.moirai('sessions', 'suspend', id);
    await talk.say('how many messages', 'An operator parked this conversation. Your message is kept');
    await cli.moirai('sessions', 'release', id);
    await talk.sees('You had written 1 message ');
    expect(await sessions()).toMatchObject([{ id, state: 'open' }]);
  });

  test('a session that cannot go on is told when the next message rolls it over', async () => {
    const talk = await begin();
    await talk.exchange();
    const [{ id }] = await sessions();
    const command = { name: 'suspend', reason: 'stuck_loop' } as const;
    await cli.live((engine) =>
      engine.store.write('command', { context: engine.commandContext(), sessionId: id, command }),
    );
    await talk.say('how many messages', 'You had written 0 messages');
    const told = `Your last session ended because it had been interrupted too often; this is a fresh one. /resume ${id} brings it back.`;
    expect(talk.shown.split(told)).toHaveLength(2);
    expect(talk.shown.indexOf(told)).toBeLessThan(talk.shown.indexOf('You had written'));
    await talk.say(`/resume ${id}`, 'Back in: ');
    await talk.say('how many messages', 'You had written 1 message ');
  });

  test.each([
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const)('%s ends the session as cli_close', async (signal, code) => {
    const talk = await begin();
    await talk.exchange();
    process.kill(await pidOf(), signal);
    expect(await talk.ends()).toBe(code);
    expect(await sessions()).toMatchObject([{ end_reason: 'cli_close' }]);
    await expectAllWell();
  });

  test('SIGINT twice ends the session as cli_close', async () => {
    const talk = await begin();
    await talk.exchange();
    const pid = await pidOf();
    process.kill(pid, 'SIGINT');
    await talk.sees('Ctrl-C again leaves.');
    process.kill(pid, 'SIGINT');
    expect(await talk.ends()).toBe(130);
    expect(await sessions()).toMatchObject([{ end_reason: 'cli_close' }]);
  });

  test('a window that is closed ends the session as cli_close', async () => {
    const talk = await begin();
    await talk.exchange();
    talk.process.kill('SIGKILL');
    await until('the session has ended', async () => (await sessions())[0].end_reason === 'cli_close');
  });

  test('SIGKILL leaves a session that the next command shows as reaped', async () => {
    const talk = await begin();
    await talk.exchange();
    process.kill(await pidOf(), 'SIGKILL');
    await talk.ends();
    expect(await cli.json('sessions', 'stats')).toMatchObject({ open: 0, open_unowned: 0, ended: { reaped: 1 } });
    await expectAllWell();
  });
});

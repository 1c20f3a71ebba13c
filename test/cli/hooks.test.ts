import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { Dispatcher } from '../../src/events/dispatcher.ts';
import { startHttpFake } from '../fakes/http-fake.ts';
import { CliFixture, chat, converse, until } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

function hook(name: string, files: Record<string, string>): void {
  const folder = join(cli.home, 'hooks', name);
  mkdirSync(folder, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(folder, file), text);
}

/** One conversation, heard by a subscriber of this name that always fails. */
async function failing(name: string): Promise<string> {
  return cli.live(async (engine) => {
    const dispatcher = new Dispatcher({
      ...engine.queueDeps((error) => console.error(error)),
      store: engine.store,
    });
    const handle = (): never => {
      throw new TypeError('no\u001b[31m way');
    };
    await dispatcher.subscribe({ name, events: ['session:start'], maxAttempts: 1, handle });
    const id = await converse(engine, chat(1), 'hello', 'hi');
    await until('it failed', async () => {
      return (await engine.store.read('listDeadLetters', { subscriber: name, limit: 9 })).length === 1;
    });
    await dispatcher.stop();
    return id;
  });
}

test.each([
  ['list', 'no gateway has seen it yet'],
  ['test', '--json-file <file>'],
  ['replay', '--from <seq>'],
  ['dead', 'moirai hooks replay NAME --dead'],
])('hooks %s explains itself', async (name, words) => {
  const { code, output } = await cli.moirai('hooks', name, '-h');
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining(words) });
});

describe('hooks list', () => {
  test('shows hooks and webhooks, what is wrong with them, and what is left of old ones', async () => {
    expect((await cli.moirai('hooks', 'list')).output).toMatch(/^No hooks in .*, and no webhooks\.\n$/);
    hook('good', { 'HOOK.yaml': 'description: fine\nevents: [session:end]', 'handler.sh': '' });
    hook('typo', { 'HOOK.yaml': 'events: [session:edn]', 'handler.sh': '' });
    hook('off', { 'HOOK.yaml': 'events: [session:end]\nenabled: false', 'handler.ts': '' });
    writeFileSync(
      join(cli.home, 'config.yaml'),
      'hooks: { webhooks: [{ name: mirror, url: "http://x", secret: whsec_c2VjcmV0c2VjcmV0, events: ["*"] }] }',
    );
    await failing('hook:old');
    const { data } = await cli.json('hooks', 'list');
    expect(data).toMatchObject([
      { name: 'good', type: 'file', state: 'new', description: 'fine', events: ['session:end'], dead_letters: 0 },
      { name: 'off', state: 'disabled', handler: expect.stringContaining('handler.ts') },
      { name: 'typo', state: 'bad', problem: 'no event is called "session:edn"; did you mean "session:end"?' },
      { name: 'mirror', type: 'webhook', state: 'new', subscriber: 'webhook:mirror' },
      { name: 'old', type: 'file', state: 'removed', dead_letters: 1 },
    ]);
    const { output } = await cli.moirai('hooks', 'list');
    expect(output).toContain('did you mean "session:end"?');
    expect(output).not.toContain('c2VjcmV0');
    expect(output).not.toContain('\u001b');
  });
});

describe('hooks test', () => {
  test('runs a handler once with a sample, and shows its words and its time', async () => {
    hook('echo', { 'HOOK.yaml': 'events: [session:end]', 'handler.ts': ECHO });
    const { code, output } = await cli.moirai('hooks', 'test', 'echo', 'session:end');
    expect({ code, output }).toMatchObject({
      code: 0,
      output: expect.stringMatching(/^stdout: session:end idle_expiry\necho took session:end \(\d+ ms\)\n$/),
    });
    writeFileSync(join(cli.home, 'fields.json'), '{ "reason": "reaped", "type": "session:start" }');
    const result = await cli.json(
      ...['hooks', 'test', 'echo', 'session:end', '--json-file', join(cli.home, 'fields.json')],
    );
    expect(result).toMatchObject({
      ...{ name: 'echo', ok: true, error: null, ms: expect.any(Number) },
      event: { type: 'session:end', reason: 'reaped', session_id: 'ses_sample' },
      output: [{ stream: 'stdout', line: 'session:end reaped' }],
    });
  });

  test('exits with 1 when the event was not taken', async () => {
    hook('three', { 'HOOK.yaml': 'events: ["*"]', 'handler.sh': 'echo why >&2; exit 3' });
    const { code, output } = await cli.moirai('hooks', 'test', 'three', 'command:new');
    expect(code).toBe(1);
    expect(output).toMatch(/^stderr: why\nthree did not take command:new \(\d+ ms\): three exited with 3: why\n$/);
  });

  test('sends to a webhook too', async () => {
    await using receiver = await startHttpFake(async (_, response) => void response.writeHead(204).end());
    writeFileSync(
      join(cli.home, 'config.yaml'),
      `hooks: { webhooks: [{ name: mirror, url: "${receiver.url}", secret: whsec_c2VjcmV0c2VjcmV0, events: ["*"] }] }`,
    );
    expect(await cli.json('hooks', 'test', 'mirror', 'agent:end')).toMatchObject({ ok: true, output: [] });
    expect(receiver.requests[0]?.headers['webhook-id']).toBe('ses_sample:5');
  });

  test('refuses what it does not know', async () => {
    hook('echo', { 'HOOK.yaml': 'events: [session:end]', 'handler.ts': ECHO });
    expect(await cli.moirai('hooks', 'test', 'ecko', 'session:end')).toMatchObject({
      ...{
        code: 1,
        errors: expect.stringContaining('no hook or webhook "ecko"; did you mean "echo"? [hook_not_found]'),
      },
    });
    expect(await cli.moirai('hooks', 'test', 'echo', 'session:edn')).toMatchObject({
      ...{ code: 2, errors: expect.stringContaining('did you mean "session:end"? [unknown_event]') },
    });
  });
});

test('dead letters are listed, and replayed by name or by number', async () => {
  const id = await failing('hook:old');
  expect(await cli.json('hooks', 'dead')).toEqual({
    data: [
      {
        ...{ subscriber: 'hook:old', event_id: `${id}:1`, session_key: 'agent:main:telegram:dm:1', attempts: 1 },
        ...{ error: 'no\u001b[31m way', at: expect.any(String) },
      },
    ],
    next: null,
  });
  expect((await cli.moirai('hooks', 'dead', 'old')).output).toContain('no\\x1b[31m way');
  expect(await cli.json('hooks', 'replay', 'old')).toEqual({ subscriber: 'hook:old', events: 1 });
  expect((await cli.json('hooks', 'list')).data).toMatchObject([{ name: 'old', dead_letters: 1 }]);
  const [first] = await cli.events();
  expect(await cli.json('hooks', 'replay', 'hook:old', '--from', String(first.seq))).toEqual({
    ...{ subscriber: 'hook:old', events: (await cli.events()).length },
  });
  expect(await cli.moirai('hooks', 'replay', 'old', '--from', '1', '--dead')).toMatchObject({ code: 2 });
  expect(await cli.moirai('hooks', 'replay', 'nobody')).toMatchObject({ code: 1 });
});

const ECHO = `export function handle(eventType: string, context: { reason: string }) {
  console.log(eventType, context.reason);
}`;

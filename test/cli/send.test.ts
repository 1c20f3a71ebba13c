import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CliFixture } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

async function knownPlace(id: string, name: string, type = 'dm'): Promise<void> {
  await cli.live(({ store }) => store.write('seePlace', { platform: 'telegram', id, place: { type, chat: id }, name }));
}

async function waiting() {
  return cli.live(async (engine) => {
    const context = engine.commandContext();
    const limits = { again: false, limit: 10, retries: 10, repliesPerLane: 10 };
    const claim = { context, token: context.commandId, platform: 'telegram', ...limits };
    const { lanes } = await engine.store.write('claimReplies', claim);
    return lanes.flatMap(({ deliveries }) => deliveries);
  });
}

test('a message to a platform that is not connected here waits, and that is said', async () => {
  await knownPlace('42', 'Ada');
  const { code, output } = await cli.moirai('send', 'telegram:42', 'hello');
  const waits = 'telegram is not configured here; moirai platforms add telegram connects it.';
  expect([code, output]).toEqual([0, `On its way to telegram. ${waits}\n`]);
});

test('a message to a place that is known waits for a gateway, and is in the log', async () => {
  writeFileSync(join(cli.home, 'config.yaml'), 'platforms: { telegram: { token: "1:a" } }\n');
  await knownPlace('42', 'Ada');
  const { code, output } = await cli.moirai('send', 'telegram:42', 'the', 'linen', 'is', 'dry');
  expect([code, output]).toEqual([0, 'On its way to telegram. No gateway runs here: it leaves when one does.\n']);
  expect(await waiting()).toMatchObject([{ platform: 'telegram', target: { chat: '42' }, text: 'the linen is dry' }]);
  expect((await cli.events('--types', 'session:end')).map(({ reason }) => reason)).toEqual(['batch_complete']);
});

test('files go with a message, or without one', async () => {
  writeFileSync(join(cli.home, 'config.yaml'), 'platforms: { telegram: { token: "1:a" } }\n');
  await knownPlace('42', 'Ada');
  const paths = ['one.txt', 'two.png'].map((name) => join(cli.home, name));
  for (const path of paths) writeFileSync(path, 'x');
  const files = paths.flatMap((path) => ['--file', path]);
  expect((await cli.moirai('send', 'Ada', 'look', ...files)).code).toBe(0);
  expect((await cli.moirai('send', 'Ada', '--file', paths[0] ?? '')).code).toBe(0);
  const shapes = (await waiting()).map(({ text, shape }) => [
    text,
    ((shape?.files ?? []) as { name: string }[]).map(({ name }) => name),
  ]);
  expect(shapes).toEqual([
    ['look', ['one.txt', 'two.png']],
    ['', ['one.txt']],
  ]);
  const missing = await cli.moirai('send', 'Ada', 'look', '--file', join(cli.home, 'none.txt'));
  expect([missing.code, missing.errors]).toEqual([2, expect.stringContaining('none.txt cannot be read')]);
  expect((await waiting()).length).toBe(shapes.length);
});

test('a place goes by its name, by the beginning of it, and by an alias', async () => {
  await knownPlace('42', 'Ada Lovelace');
  await knownPlace('43', 'Bob');
  expect((await cli.moirai('send', 'telegram:43', '--alias', 'ops')).code).toBe(0);
  for (const target of ['ada lovelace', 'Ada', 'ops']) {
    expect([target, (await cli.moirai('send', target, 'hi')).code]).toEqual([target, 0]);
  }
  expect((await waiting()).map(({ target }) => target.chat)).toEqual(['42', '42', '43']);
  expect((await cli.json('send', '--list')).data).toMatchObject([
    { target: 'telegram:43', alias: 'ops', gone: null },
    { target: 'telegram:42', name: 'Ada Lovelace' },
  ]);
});

test.each([
  [['send', 'telegram:42', 'hi'], 'target_unknown', /nobody has talked there/],
  [['send', 'home', 'hi'], 'target_unknown', /\/sethome/],
  [['send', 'origin', 'hi'], 'target_unknown', /nothing can be sent to where this comes from/],
  [['send'], 'usage', /--list/],
  [['send', 'telegram:42', '  '], 'bad_input', /nothing to send/],
  [['pairing', 'approve', 'ABCDEFGH'], 'pairing_unknown', /nobody waits/],
  [['pairing', 'approve', 'telegram', 'ABCDEFGH'], 'pairing_unknown', /nobody on telegram/],
  [['pairing', 'approve', 'a', 'b', 'c'], 'usage', /one code/],
  [['pairing', 'revoke', '42'], 'pairing_unknown', /nobody called 42/],
])('%j is refused', async (args, code, message) => {
  const { code: exit, errors } = await cli.moirai(...args, '--json');
  expect(exit).not.toBe(0);
  const { error } = JSON.parse(errors) as { error: { code: string; message: string } };
  expect([error.code, error.message]).toEqual([code, expect.stringMatching(message)]);
});

test('two places of one name are told apart', async () => {
  await knownPlace('42', 'Ada');
  await knownPlace('43', 'ada');
  expect((await cli.moirai('send', 'Ada', 'hi')).errors).toMatch(/telegram:4[23] or telegram:4[23]/);
});

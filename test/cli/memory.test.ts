import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ownerHash } from '../../src/memory/scope.ts';
import { CliFixture, chat, converse } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

function configure(memory: object): void {
  writeFileSync(join(cli.home, 'config.yaml'), JSON.stringify({ memory }));
}

const ada = { platform: 'telegram', userId: 'user-1', sessionKey: chat(1).key };

test.each([
  ['list', 'moirai hooks replay memory:NAME'],
  ['show', 'PLATFORM:USER'],
])('memory %s explains itself', async (name, words) => {
  const { code, output } = await cli.moirai('memory', name, '-h');
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining(words) });
});

describe('memory list', () => {
  test('shows the memory of the configuration, and what it has not been told yet', async () => {
    expect((await cli.json('memory', 'list')).data).toMatchObject([
      { name: 'files', state: 'ready', subscriber: null, lag: 0 },
    ]);
    configure({ provider: 'sqlite' });
    expect((await cli.json('memory', 'list')).data).toMatchObject([
      { name: 'sqlite', state: 'new', subscriber: 'memory:sqlite', events: ['session:end'] },
    ]);
    await cli.live(async (engine) => {
      for (const name of ['memory:sqlite', 'memory-review', 'memory:old']) {
        await engine.store.write('subscribe', { name, patterns: ['session:end'], from: 'now' });
      }
      const id = await converse(engine, chat(1), 'hello', 'hi');
      await engine.end(id, { reason: 'admin_close', trigger: 'api' });
    });
    expect((await cli.json('memory', 'list')).data).toMatchObject([
      { name: 'sqlite', state: 'ready', lag: expect.any(Number), dead_letters: 0 },
      { name: 'review', state: 'ready', subscriber: 'memory-review' },
      { name: 'old', state: 'removed', subscriber: 'memory:old' },
    ]);
    const { output } = await cli.moirai('memory', 'list');
    expect(output).toMatch(/^NAME +STATE +HEARS +WAITING +DEAD +TROUBLE\nsqlite +ready +session:end +[1-9]/);
    expect(await cli.moirai('hooks', 'replay', 'sqlite')).toMatchObject({ code: 0 });
  });

  test('shows one that is none, or bad', async () => {
    configure({ provider: 'none' });
    expect(await cli.moirai('memory', 'list')).toMatchObject({ code: 0, output: 'No memory is configured.\n' });
    configure({ provider: 'mem0' });
    expect((await cli.json('memory', 'list')).data).toMatchObject([{ name: 'mem0', state: 'bad' }]);
  });
});

describe('memory show', () => {
  test('shows the files, of whom they are, and what is in them', async () => {
    expect(await cli.moirai('memory', 'show')).toMatchObject({ code: 0, output: 'Nothing is remembered yet.\n' });
    const folder = join(cli.home, 'memory', 'users', ownerHash(ada));
    mkdirSync(folder, { recursive: true });
    writeFileSync(join(folder, 'MEMORY.md'), '- likes \u001b[31mplums\n- and pears\n');
    writeFileSync(join(folder, 'USER.md'), '- is called Ada\n');
    writeFileSync(join(cli.home, 'memory', 'MEMORY.md'), 'the cellar is locked\n');
    expect((await cli.json('memory', 'show')).data).toEqual([
      { owner: 'everybody', who: null, entries: 1 },
      { owner: ownerHash(ada), who: null, entries: 3 },
    ]);
    for (const of of ['telegram:user-1', ownerHash(ada).slice(0, 8)]) {
      const { output } = await cli.moirai('memory', 'show', of);
      expect(output).toContain(String.raw`likes \x1b[31mplums`);
      expect(output).toContain('is called Ada');
    }
    expect((await cli.moirai('memory', 'show', 'everybody')).output).toContain('the cellar is locked');
    expect(await cli.moirai('memory', 'show', 'telegram:nobody')).toMatchObject({
      code: 0,
      output: 'Nothing is remembered here.\n',
    });
    const wrong = await cli.moirai('memory', 'show', 'zzz');
    expect(wrong).toMatchObject({ code: 2, errors: expect.stringContaining('[bad_input]') });
  });

  test('shows facts of the store, by person and by conversation', async () => {
    configure({ provider: 'sqlite' });
    await cli.live(async (engine) => {
      const owner = JSON.stringify(['user', 'telegram', 'user-1']);
      await engine.store.write('rememberFact', { id: 'f1', owner, text: 'likes plums', source: null });
      await converse(engine, chat(1), 'hello', 'hi');
    });
    expect((await cli.json('memory', 'show')).data).toEqual([
      { owner: ownerHash(ada), who: 'telegram:user-1', entries: 1 },
    ]);
    for (const of of ['telegram:user-1', chat(1).key]) {
      expect((await cli.json('memory', 'show', of)).data).toEqual([
        { text: 'likes plums', where: 'f1', at: expect.stringMatching(/^\d{4}-/) },
      ]);
    }
    expect((await cli.json('memory', 'show', 'files')).data).toEqual([]);
  });

  test('says of whom it cannot tell', async () => {
    configure({ provider: 'mem0', api_key: 'key' });
    const { code, errors } = await cli.moirai('memory', 'show');
    expect({ code, errors }).toMatchObject({ code: 2, errors: expect.stringContaining('cannot be looked at') });
  });
});

test('a memory that cannot be is told by config check, and no gateway starts with it', async () => {
  configure({ provider: 'yours' });
  const checked = await cli.moirai('config', 'check', '--json');
  expect(checked.code).toBe(78);
  expect(JSON.parse(checked.output)).toMatchObject({ ok: false, problems: [{ path: 'memory' }] });
  for (const command of [
    ['gateway', 'run'],
    ['chat', '-q', 'hello'],
  ]) {
    const { code, errors } = await cli.moirai(...command);
    expect({ code, errors }).toMatchObject({ code: 78, errors: expect.stringContaining('[memory_provider]') });
  }
});

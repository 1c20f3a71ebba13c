import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { CliFixture } from './cli-fixture.ts';

let cli: CliFixture;
beforeEach(() => {
  cli = new CliFixture();
});
afterEach(() => cli.remove());

test('a key is shown once when it is added, listed without what proves it, and revoked', async () => {
  expect((await cli.moirai('keys', 'list')).output).toBe('There are no keys beside gateway.api_key.\n');
  const added = await cli.json('keys', 'add', 'shop', '--scope', 'chat,read');
  expect(added).toEqual({ name: 'shop', scopes: ['chat', 'read'], key: expect.stringMatching(/^moirai_[\w-]{43}$/) });
  const listed = await cli.json('keys', 'list');
  const shown = { name: 'shop', scopes: ['chat', 'read'], from: 'store', created_at: expect.any(String) };
  expect(listed).toEqual({ data: [shown], next: null });
  const kept = readdirSync(cli.home).filter((file) => file.startsWith('state.db'));
  const bytes = kept.map((file) => readFileSync(join(cli.home, file), 'latin1')).join('');
  expect(bytes).toContain('shop');
  expect(bytes).not.toContain(added.key.slice('moirai_'.length));
  expect(await cli.moirai('keys', 'add', 'shop')).toMatchObject({ code: 1 });
  expect((await cli.moirai('keys', 'revoke', 'shop')).output).toBe('The key of shop does not count any more.\n');
  expect((await cli.moirai('keys', 'revoke', 'shop')).code).toBe(1);
  expect((await cli.json('keys', 'list')).data).toEqual([]);
});

test('a key that is added without a scope may chat; an unknown scope and a name that is none are refused', async () => {
  expect((await cli.json('keys', 'add', 'shop')).scopes).toEqual(['chat']);
  expect((await cli.moirai('keys', 'add', 'x', '--scope', 'raed')).errors).toContain('did you mean "read"?');
  expect((await cli.moirai('keys', 'add', 'a b')).errors).toContain('is no name');
});

test('the keys of config.yaml are listed too, and their names are taken', async () => {
  const keys = [{ name: 'board', key: 'a-long-enough-configured-key', scopes: ['read'] }];
  writeFileSync(join(cli.home, 'config.yaml'), JSON.stringify({ gateway: { keys } }));
  const { output } = await cli.moirai('keys', 'list', '--json');
  expect(JSON.parse(output).data).toEqual([{ name: 'board', scopes: ['read'], from: 'config', created_at: null }]);
  expect(output).not.toContain('a-long-enough');
  expect((await cli.moirai('keys', 'add', 'board')).errors).toContain('api_key_exists');
});

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadConfig } from '../../../src/config/load-config.ts';
import { abilitiesOf } from '../../../src/platforms/chat-sdk/abilities.ts';
import type { Adapter } from '../../../src/platforms/chat-sdk/adapter.ts';
import { loadAdapter } from '../../../src/platforms/chat-sdk/load.ts';
import { configuredPlatforms, notServed } from '../../../src/platforms/registry.ts';

let home: string;

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), 'moirai-adapters-'));
});
afterEach(() => rmSync(home, { recursive: true }));

const MADE = `({ name: 'parrot', options, initialize() {}, handleWebhook() {}, parseMessage() {}, channelIdFromThreadId() {}, postMessage() {} })`;

function install(name: string, manifest: object, files: Readonly<Record<string, string>>): void {
  const folder = join(home, 'node_modules', name);
  for (const [path, code] of Object.entries({ ...files, 'package.json': JSON.stringify({ name, ...manifest }) })) {
    mkdirSync(join(folder, path, '..'), { recursive: true });
    writeFileSync(join(folder, path), code);
  }
}

const wanted = (name: string, factory: string | null = null) => ({ name, from: home, factory });
const esm = `export const createParrotAdapter = (options) => ${MADE};`;

describe('an adapter is found', () => {
  test.each([
    [
      'by its exports',
      { type: 'module', exports: { '.': { types: './d.ts', import: './dist/a.js' } } },
      'dist/a.js',
      esm,
    ],
    ['by conditions inside conditions', { exports: { import: { default: './a.mjs' } } }, 'a.mjs', esm],
    ['by one export', { type: 'module', exports: './a.js' }, 'a.js', esm],
    [
      'by its main file, in the older kind of module',
      { main: 'a.cjs' },
      'a.cjs',
      `exports.createParrotAdapter = (options) => ${MADE};`,
    ],
    ['by nothing but its folder', { type: 'module' }, 'index.js', esm],
  ])('%s', async (_, manifest, path, code) => {
    install('@birds/parrot', manifest, { [path]: code });
    const adapter = await loadAdapter(wanted('@birds/parrot'), { token: 't' });
    expect(adapter).toMatchObject({ name: 'parrot', options: { token: 't' } });
  });

  test('in the folder first, then beside this program', async () => {
    const options = { token: 't', webhookSecret: 's' };
    expect((await loadAdapter(wanted('@chat-adapter/github'), options)).name).toBe('github');
    install('@chat-adapter/github', { type: 'module' }, { 'index.js': esm });
    expect((await loadAdapter(wanted('@chat-adapter/github'), options)).name).toBe('parrot');
  });

  test('by the name of its factory where there are several', async () => {
    const two = `${esm}\nexport const createCrowAdapter = (options) => ({ ...createParrotAdapter(options), name: 'crow' });`;
    install('birds', { type: 'module' }, { 'index.js': two });
    await expect(loadAdapter(wanted('birds'), {})).rejects.toThrow(
      /createCrowAdapter, createParrotAdapter; set factory/,
    );
    expect((await loadAdapter(wanted('birds', 'createCrowAdapter'), {})).name).toBe('crow');
    await expect(loadAdapter(wanted('birds', 'createOwlAdapter'), {})).rejects.toThrow('set factory');
  });
});

describe('what is no adapter is said, with what to do:', () => {
  test('a package that is not there', async () => {
    await expect(loadAdapter(wanted('chat-adapter-nobody'), {})).rejects.toMatchObject({
      code: 'platform_package',
      message: `the package chat-adapter-nobody is not in ${home}: npm install --prefix ${home} chat-adapter-nobody`,
    });
  });

  test.each([
    ['nothing that makes one', 'export const parrot = 1;', /which export of birds makes its adapter\? it has none/],
    ['something else', 'export const createParrotAdapter = () => ({ name: "x" });', /makes no adapter of the Chat SDK/],
    ['no program', 'export {', /the package birds cannot be loaded/],
  ])('a package with %s', async (_, code, said) => {
    install('birds', { type: 'module' }, { 'index.js': code });
    await expect(loadAdapter(wanted('birds'), {})).rejects.toThrow(said);
  });
});

describe('the settings', () => {
  const load = (platforms: object) => {
    writeFileSync(join(home, 'config.yaml'), JSON.stringify({ platforms: { 'chat-sdk': platforms } }));
    return loadConfig({ home, env: {} });
  };

  test('look for packages in the home unless they say another folder', () => {
    const { platforms } = load({ accounts: { a: { adapter: 'x', packages_from: 'adapters' }, b: { adapter: 'y' } } });
    expect(platforms['chat-sdk']).toMatchObject({
      packagesFrom: home,
      accounts: { a: { packagesFrom: join(home, 'adapters') } },
    });
  });

  test('that nobody gave are missed by nobody; an account without its adapter is', () => {
    expect(notServed(load({}))).toEqual([]);
    const config = load({ accounts: { teams: { adapter: '@chat-adapter/teams' }, lost: { options: { a: 'b' } } } });
    expect(configuredPlatforms(config).map(({ name }) => name)).toEqual(['chat-sdk@teams']);
    expect(notServed(config)).toMatchObject([
      { name: 'chat-sdk@lost', why: 'configured without adapter, so it is off' },
    ]);
  });

  test.each([
    ['adapter', '../../etc', 'no name of a package'],
    ['options', ['a'], 'not a map'],
    ['factory', 'a b', 'no name of an export'],
  ])('refuse a wrong %s', (key, value, said) => {
    expect(() => load({ [key]: value })).toThrow(said);
  });
});

describe('what an adapter can do', () => {
  const adapter = { rehydrateAttachment: () => ({}) } as unknown as Adapter;
  const whole = new Proxy({}, { get: () => () => undefined }) as Adapter;

  test('is what is known of its package, as far as it has the methods for it', () => {
    expect(abilitiesOf('@chat-adapter/teams', whole)).toMatchObject({ edit: true, buttons: true, typing: true });
    expect(abilitiesOf('@chat-adapter/teams', adapter)).toMatchObject({ edit: false, reactions: false, buttons: true });
    expect(abilitiesOf('@chat-adapter/github', whole)).toMatchObject({
      typing: false,
      buttons: false,
      maxText: 60_000,
    });
  });

  test('is words, and files that come in, where nothing is known', () => {
    for (const name of ['chat-adapter-of-a-friend', 'constructor', '__proto__']) {
      const { edit, remove, typing, reactions, buttons, files } = abilitiesOf(name, whole);
      expect([edit, remove, typing, reactions, buttons, files.out, files.in]).toEqual([
        ...[false, false, false, false, false, false, true],
      ]);
    }
    expect(abilitiesOf('x', {} as Adapter).files.in).toBe(false);
  });
});

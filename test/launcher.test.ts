import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { text } from 'node:stream/consumers';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';

const launcher = fileURLToPath(new URL('../bin/moirai.js', import.meta.url));
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2'] as const;

let project: string;

beforeEach(() => {
  project = mkdtempSync(join(tmpdir(), 'moirai-launcher-'));
  write('package.json', '{ "type": "module" }');
  mkdirSync(join(project, 'bin'));
  copyFileSync(launcher, join(project, 'bin/moirai.js'));
});

afterEach(() => rmSync(project, { recursive: true }));

test('these tests run on a Node that moirai runs on', () => {
  const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
  expect(major * 1_000 + minor).toBeGreaterThanOrEqual(24_015);
});

test('npm is told of no Node that moirai needs: a clone brings it along, and the launcher says what is missing', () => {
  const { engines } = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8'));
  expect(engines).toBeUndefined();
});

test('the README says in one line each how to start a clone and how to test it', () => {
  const lines = readFileSync(new URL('../README.md', import.meta.url), 'utf8').split('\n');
  expect(lines).toContain('npm ci && npm start');
  expect(lines).toContain('npm ci && npm test');
});

describe('on a Node that is new enough, moirai', () => {
  const node = { command: process.execPath, env: {} };

  test('runs the sources of a clone', async () => {
    writeMain('console.log("sources" as string, process.argv.slice(2))');
    expect(await run(node, 'chat', '--new')).toMatchObject({ code: 0, output: `sources [ 'chat', '--new' ]\n` });
  });

  test('runs what was built, if it was built', async () => {
    writeMain('console.log("sources")');
    write('dist/cli/main.js', 'console.log("built")');
    expect(await run(node)).toMatchObject({ code: 0, output: 'built\n' });
  });

  test('fails when its code cannot be loaded', async () => {
    writeMain('throw new Error("broken")');
    expect(await run(node)).toMatchObject({ code: 1, errors: expect.stringContaining('Error: broken') });
  });
});

describe.each(oldNodes())('on $name, moirai', (node) => {
  test('says what it needs when there is no other Node beside it', async () => {
    writeMain('console.log("ran")');
    const { code, output, errors } = await run(node);
    expect({ code, output }).toEqual({ code: 1, output: '' });
    expect(errors).toMatch(/^moirai needs Node\.js 24\.15 or newer; this is \d+\.\d+\.\d+ \(/);
    expect(errors).toContain('npx -y -p node@24 -p moirai moirai\n');
  });

  test('says the same when the Node beside it is too old', async () => {
    writeMain('console.log("ran")');
    bundleNode('24.14.0');
    expect(await run(node)).toMatchObject({ code: 1, output: '', errors: expect.stringContaining('24.15 or newer') });
  });

  test('runs on the Node beside it, with its arguments, its input and its exit code', async () => {
    bundleNode();
    writeMain(`
      const input: Buffer[] = await process.stdin.toArray();
      console.log(process.version, process.argv.slice(2), Buffer.concat(input).toString(), process.env.MOIRAI_LIFELINE_FD);
      process.exitCode = 7;
    `);
    const inner = start(node, 'chat', 'a b');
    inner.stdin.end('hello');
    expect(await finish(inner)).toMatchObject({
      code: 7,
      output: `${process.version} [ 'chat', 'a b' ] hello undefined\n`,
      errors: '',
    });
  });

  test('passes signals on to it', async () => {
    bundleNode();
    writeMain(`
      for (const signal of ${JSON.stringify(SIGNALS)}) process.on(signal, () => console.log(signal));
      process.on('SIGTERM', () => process.exit(0));
      setInterval(() => {}, 1000);
      console.log('ready');
    `);
    const inner = start(node);
    for (const signal of SIGNALS.toReversed()) {
      await once(inner.stdout, 'data');
      inner.kill(signal);
    }
    expect(await finish(inner)).toMatchObject({ code: 0, signal: null, output: 'SIGTERM\n' });
  });

  test.each(['SIGTERM', 'SIGKILL', 'SIGINT'] as const)('dies of %s when the inner process does', async (signal) => {
    bundleNode();
    writeMain(`process.kill(process.pid, '${signal}'); setInterval(() => {}, 1000);`);
    expect(await run(node)).toMatchObject({ code: null, signal });
  });

  test('takes the inner process with it when it is killed', async () => {
    bundleNode();
    writeMain(`
      for (const signal of ${JSON.stringify(SIGNALS)}) process.on(signal, () => {});
      setInterval(() => {}, 1000);
      console.log(process.pid);
    `);
    const outer = start(node);
    const [line] = await once(outer.stdout, 'data');
    expect(Number(line)).not.toBe(outer.pid);
    outer.kill('SIGKILL');
    await finish(outer); // the output ends when the last process that holds it is gone
  });
});

interface Node {
  readonly command: string;
  readonly env: Record<string, string>;
}

type Process = ReturnType<typeof start>;

function start(node: Node, ...args: string[]) {
  return spawn(node.command, [join(project, 'bin/moirai.js'), ...args], {
    env: { PATH: process.env.PATH, ...node.env },
    stdio: ['pipe', 'pipe', 'pipe'],
  });
}

async function finish(child: Process) {
  const [output, errors, [code, signal]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'exit') as Promise<[number | null, NodeJS.Signals | null]>,
  ]);
  return { code, signal, output, errors };
}

async function run(node: Node, ...args: string[]) {
  return finish(start(node, ...args));
}

/** This Node in disguise, and whatever older one the machine has. */
function oldNodes(): (Node & { name: string })[] {
  const disguise = `Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.20.2' } })`;
  const env = { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(disguise)}` };
  const disguised = { name: 'a Node that says it is 20.20.2', command: process.execPath, env };
  const installed = (process.env.PATH ?? '')
    .split(delimiter)
    .filter((folder) => folder !== '' && !folder.includes('node_modules'))
    .map((folder) => ({ command: join(folder, 'node'), version: versionOf(join(folder, 'node')) }))
    .filter(({ version }) => /^v(1[4-9]|2[0-3])\./.test(version));
  const oldest = installed[0];
  return oldest ? [disguised, { name: `Node ${oldest.version}`, command: oldest.command, env: {} }] : [disguised];
}

function versionOf(command: string): string {
  try {
    return execFileSync(command, ['--version'], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] }).trim();
  } catch {
    return ''; // no Node in this folder
  }
}

/** Puts a Node beside the launcher as the npm package `node` does; it is this one, without a disguise. */
function bundleNode(version = process.versions.node): void {
  write('node_modules/node/package.json', JSON.stringify({ name: 'node', version }));
  write('node_modules/node/bin/node', `#!/bin/sh\nunset NODE_OPTIONS\nexec '${process.execPath}' "$@"\n`, 0o755);
}

function writeMain(code: string): void {
  write('src/cli/main.ts', code);
}

function write(path: string, content: string, mode = 0o644): void {
  mkdirSync(dirname(join(project, path)), { recursive: true });
  writeFileSync(join(project, path), content, { mode });
}

import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CliFixture, finish, type Process, until } from '../cli/cli-fixture.ts';
import { freePort } from '../support/free-port.ts';

let fixture: CliFixture;
let gateway: Server;
let url: string;
const keys: (string | undefined)[] = [];

beforeEach(async () => {
  fixture = new CliFixture();
  keys.length = 0;
  gateway = createServer(({ headers }, outgoing) => {
    keys.push(headers.authorization);
    outgoing.end('{}');
  }).listen(0, '127.0.0.1');
  await once(gateway, 'listening');
  url = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
});

afterEach(() => {
  fixture.remove();
  gateway.closeAllConnections();
  gateway.close();
});

/** What it says first. */
async function firstWords(child: Process): Promise<string> {
  let said = '';
  child.stdout.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  let errors = '';
  child.stderr.on('data', (chunk: Buffer) => {
    errors += chunk.toString();
  });
  await until('it has started', () => said.includes('\n') || child.exitCode !== null, 15_000);
  if (child.exitCode !== null) throw new Error(`it exited with ${child.exitCode}: ${errors}`);
  return said;
}

async function startSpace(args: readonly string[], env: Record<string, string> = {}) {
  const child = fixture.start(['space', '--port', '0', '--json', ...args], { env });
  const said = await firstWords(child);
  expect(said.trim().split('\n')).toHaveLength(1);
  return { child, url: JSON.parse(said).url as string };
}

async function get(address: string, headers: Record<string, string> = {}) {
  const answer = await fetch(address, { headers });
  // biome-ignore lint/suspicious/noExplicitAny: the shape is what the tests are about
  return { status: answer.status, json: (await answer.json()) as any };
}

describe('moirai space', () => {
  test('takes keys from where others do not see them, and stops when it is told to', async () => {
    writeFileSync(join(fixture.home, 'north.key'), 'key-of-north\n');
    const space = await startSpace(
      [
        ...['--gateway', `loom=${url},env:LOOM_KEY`, '--gateway', `${url},file:${join(fixture.home, 'north.key')}`],
        ...['--gateway', `${url}/below,plain,key`, '--gateway', url, '--key', 'env:SPACE_KEY'],
      ],
      { LOOM_KEY: 'key-of-loom', SPACE_KEY: 'key-of-space' },
    );
    const headers = { authorization: 'Bearer key-of-space' };
    expect((await get(`${space.url}/space.json`)).status).toBe(401);
    const { host } = new URL(url);
    const names = (await get(`${space.url}/space.json`, headers)).json.sources.map(
      ({ name }: { name: string }) => name,
    );
    expect(names).toEqual(['loom', host, `${host}/below`, host]);
    for (const n of [0, 1, 2, 3]) expect((await get(`${space.url}/gateways/${n}/ready`, headers)).status).toBe(200);
    expect(keys).toEqual(['Bearer key-of-loom', 'Bearer key-of-north', 'Bearer plain,key', undefined]);
    space.child.kill('SIGINT');
    expect((await once(space.child, 'exit'))[0]).toBe(0);
  });

  test('says where it is, and over what', async () => {
    const child = fixture.start(['space', '--port', '0', '--gateway', `loom=${url},hidden-key`]);
    const said = await firstWords(child);
    expect(said).toMatch(/^url +http:\/\/127\.0\.0\.1:\d+\n/);
    expect(said).toMatch(/\ngateways +loom\n$/);
    expect(said).not.toContain('hidden-key');
    child.kill('SIGTERM');
    expect((await once(child, 'exit'))[0]).toBe(0);
  });

  test('shows the gateway of the home unless told otherwise, and notices when it is killed', async () => {
    const port = await freePort();
    const config = `gateway: { port: ${port}, name: loom, api_key: key-of-the-home }\n`;
    writeFileSync(join(fixture.home, 'config.yaml'), config);
    const space = await startSpace([]);
    expect((await get(`${space.url}/space.json`)).json).toEqual({
      sources: [{ name: 'loom', base: '/gateways/0' }],
      chat: true,
    });
    const down = await get(`${space.url}/gateways/0/ready`);
    expect([down.status, down.json.error.code]).toEqual([502, 'gateway_unreachable']);
    const running = fixture.start(['gateway', 'run']);
    await firstWords(running);
    expect(await get(`${space.url}/gateways/0/ready`)).toMatchObject({ status: 200, json: { state: 'ready' } });
    const stream = await fetch(`${space.url}/gateways/0/v1/events`, { headers: { accept: 'text/event-stream' } });
    const reader = stream.body!.getReader();
    expect((await reader.read()).done).toBe(false);
    running.kill('SIGKILL');
    const toTheEnd = async () => {
      while (!(await reader.read()).done);
    };
    await expect(toTheEnd()).rejects.toThrow('terminated');
  });

  test.each([
    ['an address that others reach needs a key', ['--host', '0.0.0.0'], 78, 'config_invalid'],
    ['a port is a number', ['--port', 'x'], 2, 'bad_input'],
    ['a gateway has a web address', ['--gateway', 'ftp://a,secret'], 2, 'bad_input'],
    ['a key is no address', ['--gateway', 'secret,http://127.0.0.1'], 2, 'bad_input'],
    ['a password is no part of it', ['--gateway', 'http://me:secret@127.0.0.1'], 2, 'bad_input'],
    ['nor is a query', ['--gateway', 'http://127.0.0.1/?key=secret'], 2, 'bad_input'],
    ['a variable is set', ['--key', 'env:MOIRAI_NOT_SET'], 2, 'bad_input'],
    ['a file is there', ['--key', 'file:/nowhere/at/all'], 2, 'bad_input'],
    ['a key has letters', ['--gateway', 'http://127.0.0.1,'], 2, 'bad_input'],
    ['a key is one line', ['--key', 'secret\nx'], 2, 'bad_input'],
  ])('%s', async (_, args, code, error) => {
    const ended = await finish(fixture.start(['space', '--gateway', url, '--port', '0', ...args]));
    expect([ended.code, ended.errors]).toEqual([code, expect.stringContaining(`[${error}]`)]);
    expect(ended.errors + ended.output).not.toContain('secret');
  });
});

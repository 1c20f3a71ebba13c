import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { GatewayProcess } from '../gateway/process.ts';
import { freePort } from '../support/free-port.ts';
import { testInFullRun } from '../support/full-run.ts';
import { CliFixture, finish, isRunning, until } from './cli-fixture.ts';

let cli: CliFixture;
let slow: Server | null = null;

beforeEach(() => {
  cli = new CliFixture();
  configure('gateway: { port: 0, drain_timeout: 20s }');
});

afterEach(async () => {
  killGateway();
  cli.remove();
  slow?.closeAllConnections();
  slow?.close();
  slow = null;
});

function configure(yaml: string): void {
  writeFileSync(join(cli.home, 'config.yaml'), `${yaml}\n`);
}

/** Gateways in the background are no children of ours. */
function killGateway(): void {
  const note = join(cli.home, 'gateway.json');
  if (!existsSync(note)) return;
  const { pid } = JSON.parse(readFileSync(note, 'utf8'));
  if (isRunning(pid)) process.kill(pid, 'SIGKILL');
}

async function post(url: string, path: string, body: unknown, key?: string) {
  const authorization: Record<string, string> = key === undefined ? {} : { authorization: `Bearer ${key}` };
  const headers = { 'content-type': 'application/json', ...authorization };
  const answer = await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) });
  return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
}

const say = (url: string, text: string) => post(url, '/v1/chat', { text, conversation: 'a' });

/** A model that thinks for ever. Resolves `asked` when it is first asked. */
async function slowModel(): Promise<{ url: string; asked: Promise<unknown> }> {
  slow = createServer(() => undefined);
  const asked = once(slow, 'request');
  slow.listen(0, '127.0.0.1');
  await once(slow, 'listening');
  return { url: `http://127.0.0.1:${(slow.address() as AddressInfo).port}/v1`, asked };
}

describe('a gateway in the background', () => {
  test('is started, talks, and is stopped', async () => {
    const started = await cli.json('gateway', 'start');
    const log = join(cli.home, 'logs', 'gateway.log');
    expect(started).toEqual({ running: true, pid: expect.any(Number), url: expect.stringMatching(/^http:/), log });
    expect(statSync(log).mode & 0o777).toBe(0o600);
    expect(await say(started.url, 'hello')).toMatchObject({ status: 200, body: { outcome: 'done' } });
    const status = await cli.json('gateway', 'status');
    expect(status).toMatchObject({
      ...{ running: true, state: 'ready', pid: started.pid, url: started.url, home: cli.home, started_by: 'start' },
      ...{ turns: { running: 0, waiting: 0 }, sessions_open: 1, error: null },
      checks: { store: { ok: true }, model: { ok: true } },
    });
    expect(status.uptime_ms).toBeGreaterThan(0);
    const { output } = await cli.moirai('gateway', 'status');
    expect(output).toMatch(/^state +ready\nurl +http:/);
    expect(await cli.json('gateway', 'stop')).toEqual({ running: false, pid: started.pid });
    expect(isRunning(started.pid)).toBe(false);
    expect(await cli.json('sessions', 'stats')).toMatchObject({ open: 1, open_unowned: 0 });
    const types = (await cli.events()).map(({ type }) => type).filter((type) => type.startsWith('gateway:'));
    expect(types).toEqual(['gateway:startup', 'gateway:draining', 'gateway:shutdown']);
  });

  test('is one per home: a second start says who holds it', async () => {
    const { pid, url } = await cli.json('gateway', 'start');
    for (const verb of ['start', 'run']) {
      const { code, errors } = await cli.moirai('gateway', verb);
      expect(code).toBe(1);
      expect(errors).toContain(`is running already: process ${pid}, since `);
      expect(errors).toContain(` at ${url} [gateway_running]`);
    }
  });

  test('that is not there is said to be so, and nothing is made', async () => {
    const home = join(cli.home, 'nowhere');
    expect(await cli.moirai('--home', home, 'gateway', 'status')).toMatchObject({
      ...{ code: 3, output: `No gateway runs in ${home}.\n`, errors: '' },
    });
    const { code, output } = await cli.moirai('--home', home, 'gateway', 'status', '--json');
    expect({ code, view: JSON.parse(output) }).toEqual({ code: 3, view: { running: false, home } });
    for (const verb of ['stop', 'drain', 'undrain']) {
      const { code, errors } = await cli.moirai('--home', home, 'gateway', verb);
      expect({ code, errors }).toMatchObject({ code: 1, errors: expect.stringContaining('[gateway_not_running]') });
    }
    expect(existsSync(home)).toBe(false);
  });

  test('keeps its sessions over a restart', async () => {
    const before = await cli.json('gateway', 'start');
    const first = await say(before.url, 'hello');
    const after = await cli.json('gateway', 'restart');
    expect(after).toMatchObject({ running: true, previous_pid: before.pid });
    expect(after.pid).not.toBe(before.pid);
    const second = await say(after.url, 'again');
    expect(second.body.session_id).toBe(first.body.session_id);
    expect(await cli.json('gateway', 'status')).toMatchObject({ state: 'ready', started_by: 'start' });
    const draining = await cli.events('--types', 'gateway:draining');
    expect(draining).toMatchObject([{ reason: 'restart' }]);
  });

  test('starts itself again when a user asks for it, unless it could not come back', async () => {
    const before = await cli.json('gateway', 'start');
    const settings = readFileSync(join(cli.home, 'config.yaml'), 'utf8');
    configure('gateway: { prot: 1 }');
    expect((await say(before.url, '/restart')).body.reply).toMatch(/^Not restarting: the configuration is wrong/);
    const log = join(cli.home, 'logs', 'gateway.log');
    await until('it is told', () => readFileSync(log, 'utf8').includes('not restarting: the configuration is wrong'));
    expect(isRunning(before.pid)).toBe(true);
    configure(settings);
    await say(before.url, '/restart');
    await until(
      'another one is there',
      async () => {
        const { code, output } = await cli.moirai('gateway', 'status', '--json');
        const status = JSON.parse(output);
        return code === 0 && status.pid !== before.pid && status.state === 'ready';
      },
      15_000,
    );
    expect(isRunning(before.pid)).toBe(false);
  });

  test('in the foreground begins again in its place when a user asks for it, and answers', async () => {
    const gateway = new GatewayProcess({ model: { provider: 'offline' } });
    await gateway.start();
    const { pid } = gateway;
    const { session_id } = await gateway.chat({ text: 'hello', conversation: 'c' });
    const starts = async (): Promise<number> => (await gateway.events('gateway:startup')).length;
    expect(await starts()).toBe(1);
    expect((await gateway.chat({ text: '/restart', conversation: 'c' })).reply).toMatch(/^Restarting/);
    await until('it began again', async () => (await starts().catch(() => 0)) === 2, 15_000);
    expect(await gateway.chat({ text: 'again', conversation: 'c' })).toMatchObject({ outcome: 'done', session_id });
    expect(gateway.pid).toBe(pid);
    expect(await gateway.end('SIGTERM')).toBe(0);
    await gateway.close();
  });

  test('that was killed can be started again, and its sessions go on', async () => {
    const before = await cli.json('gateway', 'start');
    const first = await say(before.url, 'hello');
    process.kill(before.pid, 'SIGKILL');
    await until('it is gone', () => !isRunning(before.pid));
    expect((await cli.moirai('gateway', 'status')).code).toBe(3);
    const after = await cli.json('gateway', 'start');
    expect((await say(after.url, 'again')).body.session_id).toBe(first.body.session_id);
  });

  test('drains and takes messages again', async () => {
    const { url } = await cli.json('gateway', 'start');
    expect(await cli.json('gateway', 'drain')).toMatchObject({ state: 'draining' });
    expect(await say(url, 'hello')).toMatchObject({ status: 503, body: { error: { code: 'draining' } } });
    expect(await cli.json('gateway', 'status')).toMatchObject({ running: true, state: 'draining' });
    expect((await cli.moirai('gateway', 'undrain')).output).toBe('The gateway takes messages again.\n');
    expect(await say(url, 'hello')).toMatchObject({ status: 200 });
  });

  test('with a key is asked with the key', async () => {
    configure('gateway: { port: 0, api_key: open-sesame }');
    const { url } = await cli.json('gateway', 'start');
    expect(await post(url, '/v1/chat', { text: 'hi' })).toMatchObject({ status: 401 });
    expect(await post(url, '/v1/chat', { text: 'hi' }, 'open-sesame')).toMatchObject({ status: 200 });
    expect(await cli.json('gateway', 'drain')).toMatchObject({ state: 'draining' });
    configure('gateway: { port: 0, api_key: another-key }');
    expect(await cli.json('gateway', 'status')).toMatchObject({ running: true, error: { code: 'unauthorized' } });
    expect(await cli.json('gateway', 'stop')).toMatchObject({ running: false });
  });

  test('that cannot start says why, and its code is passed on', async () => {
    const taken = createServer();
    taken.listen(0, '127.0.0.1');
    await once(taken, 'listening');
    try {
      configure(`gateway: { port: ${(taken.address() as AddressInfo).port} }`);
      const { code, errors } = await cli.moirai('gateway', 'start');
      expect(code).toBe(1);
      expect(errors).toContain('| error: port ');
      expect(errors).toContain('[gateway_not_started]');
    } finally {
      taken.close();
    }
    configure('gateway: { prot: 1 }');
    expect(await cli.moirai('gateway', 'start')).toMatchObject({
      ...{ code: 78, errors: expect.stringContaining('[config_invalid]') },
    });
    // A gateway that runs is not stopped for a configuration with which it would not come back.
    configure('gateway: { port: 0 }');
    const { pid } = await cli.json('gateway', 'start');
    configure('gateway: { prot: 1 }');
    expect((await cli.moirai('gateway', 'restart')).code).toBe(78);
    expect(isRunning(pid)).toBe(true);
  });

  test('is not waited for when told to stop now, and goes on with the turn afterwards', async () => {
    const model = await slowModel();
    configure(`gateway: { port: 0, drain_timeout: 60s }\nmodel: { base_url: "${model.url}", name: slow }`);
    const { url } = await cli.json('gateway', 'start');
    const answer = say(url, 'think').catch(() => null);
    await model.asked;
    expect(await cli.json('gateway', 'status')).toMatchObject({ turns: { running: 1 } });
    const began = performance.now();
    const { code, errors } = await cli.moirai('gateway', 'stop', '--now');
    expect({ code, errors }).toEqual({ code: 0, errors: '' });
    expect(performance.now() - began).toBeLessThan(15_000);
    await answer;
    const { data } = await cli.json('sessions', 'list');
    expect(data).toMatchObject([{ state: 'resume_pending', resume_reason: 'shutdown' }]);
  });

  test('drops the turn of a session that is deleted, and goes on', async () => {
    const model = await slowModel();
    configure(`gateway: { port: 0, drain_timeout: 5s }\nmodel: { base_url: "${model.url}", name: slow }`);
    const { url } = await cli.json('gateway', 'start');
    const answer = say(url, 'think');
    await model.asked;
    const [session] = (await cli.json('sessions', 'list')).data;
    expect(await cli.json('sessions', 'delete', session.id)).toMatchObject({ ended: true });
    await answer;
    await until('it is free again', async () => (await cli.json('gateway', 'status')).turns.running === 0);
    expect(await cli.json('sessions', 'stats')).toMatchObject({ total: 0 });
    expect(await post(url, '/v1/chat', { text: '/status', conversation: 'b' })).toMatchObject({ status: 200 });
    expect(await cli.json('doctor')).toMatchObject({ ok: true });
  });

  testInFullRun('says what it waits for while it drains', async () => {
    const model = await slowModel();
    configure(`gateway: { port: 0, drain_timeout: 5s }\nmodel: { base_url: "${model.url}", name: slow }`);
    const { url } = await cli.json('gateway', 'start');
    const answer = say(url, 'think').catch(() => null);
    await model.asked;
    const { code, errors } = await cli.moirai('gateway', 'stop');
    expect(code).toBe(0);
    expect(errors).toMatch(/^stopping: turns 1 running, 0 waiting; 1\ds left\n/);
    await answer;
  });
});

describe('a gateway in the foreground', () => {
  test('reads its configuration again on SIGHUP, and keeps the old one when the file is wrong', async () => {
    configure('gateway: { port: 0 }\nlog: { format: json }');
    const gateway = cli.start(['gateway', 'run']);
    const errors: string[] = [];
    gateway.stderr.on('data', (bytes) => errors.push(String(bytes)));
    const said = (text: string) => until(text, () => errors.join('').includes(text), 10_000);
    const [first] = await once(gateway.stdout, 'data');
    const url = /http:\S+/.exec(String(first))?.[0] ?? '';
    await until('it listens to signals', async () => (await cli.json('gateway', 'status')).url === url);
    configure(
      'gateway: { port: 0, name: other }\nsessions: { reset: { idle: 1h } }\nlog: { format: json, level: warn }',
    );
    gateway.kill('SIGHUP');
    await until('the new rules hold', async () => {
      const { body } = await say(url, 'hello');
      const { expires_at, last_activity_at } = await cli.json('sessions', 'show', String(body.session_id));
      return Date.parse(expires_at) - Date.parse(last_activity_at) === 3_600_000;
    });
    configure('nonsense: 1');
    gateway.kill('SIGHUP');
    await said('the configuration is wrong and was not taken over');
    expect(await say(url, 'hello')).toMatchObject({ status: 200 });
    configure('gateway: { port: 0, name: other }\nlog: { format: json }');
    gateway.kill('SIGHUP');
    await said('"needs_restart":["gateway"]');
    gateway.kill('SIGTERM');
    expect(await finish(gateway)).toMatchObject({ code: 0 });
  });

  test('takes keys over on SIGHUP: a new one is let in, one that was taken out is not', async () => {
    const [before, after] = ['the-first-key-of-all-keys', 'the-next-key-of-all-keys'];
    const withKey = (key: string) =>
      configure(
        `gateway: { port: 0, keys: [{ name: shop, key: ${key}, scopes: [admin] }] }\nlog: { format: json, level: info }`,
      );
    withKey(before);
    const gateway = cli.start(['gateway', 'run']);
    let errors = '';
    gateway.stderr.on('data', (bytes) => {
      errors += String(bytes);
    });
    const [first] = await once(gateway.stdout, 'data');
    const url = /http:\S+/.exec(String(first))?.[0] ?? '';
    const statusWith = async (key: string) =>
      (await fetch(`${url}/v1/sessions`, { headers: { Authorization: `Bearer ${key}` } })).status;
    await until('it listens to signals', async () => (await cli.json('gateway', 'status')).url === url);
    expect([await statusWith(before), await statusWith(after)]).toEqual([200, 401]);
    withKey(after);
    gateway.kill('SIGHUP');
    await until('it was read', () => errors.includes('the configuration was read again'), 10_000);
    expect([await statusWith(before), await statusWith(after)]).toEqual([401, 200]);
    expect(errors).toContain('"needs_restart":[]');
    gateway.kill('SIGTERM');
    expect(await finish(gateway)).toMatchObject({ code: 0 });
  });

  test('takes its port from the command line, takes the place of another one, and opens a browser', async () => {
    const telegram = { token: '1:a', api_root: 'http://127.0.0.1:9' };
    const platforms = JSON.stringify({ telegram: { ...telegram, accounts: { spare: {} } } });
    configure(`model: { provider: offline }\nplatforms: ${platforms}`);
    const bin = join(cli.home, 'bin');
    mkdirSync(bin);
    const opened = join(cli.home, 'opened');
    writeFileSync(join(bin, 'xdg-open'), `#!/bin/sh\necho "$1" > ${opened}.new && mv ${opened}.new ${opened}\n`, {
      mode: 0o755,
    });
    const [first, second] = [await freePort(), await freePort()];
    const before = cli.start(['gateway', 'run', '--port', String(first)]);
    const [lines] = await once(before.stdout, 'data');
    expect(String(lines)).toMatch(new RegExp(`^url +http://127.0.0.1:${first}$`, 'm'));
    expect(String(lines)).toMatch(/^platforms +web, api, telegram \((starting|connecting|degraded)\)$/m);
    expect(String(lines)).toMatch(/^telegram@spare +configured without token, so it is off$/m);
    const exit = finish(before);
    const env = { PATH: `${bin}:${process.env.PATH}` };
    const after = cli.start(['gateway', 'run', '--replace', '--open', '--port', String(second)], { env });
    expect(await exit).toMatchObject({ code: 0 });
    const url = `http://127.0.0.1:${second}`;
    await until('the browser is opened', () => existsSync(opened), 15_000);
    expect(readFileSync(opened, 'utf8').trim()).toBe(url);
    expect(await cli.json('gateway', 'status')).toMatchObject({ url, pid: after.pid });
    after.kill('SIGTERM');
    expect(await finish(after)).toMatchObject({ code: 0 });
  });

  test('exits with 75 when it is to be started again, and a supervisor does that', async () => {
    const supervised = () => cli.start(['gateway', 'run', '--supervised']);
    const gateway = supervised();
    await once(gateway.stdout, 'data');
    const exit = finish(gateway);
    await until('it is ready', async () => (await cli.json('gateway', 'status')).state === 'ready');
    const restarted = cli.json('gateway', 'restart');
    expect(await exit).toMatchObject({ code: 75 });
    const next = supervised();
    expect(await restarted).toMatchObject({ pid: next.pid, previous_pid: gateway.pid });
    next.kill('SIGTERM');
    expect(await finish(next)).toMatchObject({ code: 0 });
  });

  test('exits with 75 under a supervisor when a user sends /restart', async () => {
    const gateway = cli.start(['gateway', 'run', '--supervised']);
    await once(gateway.stdout, 'data');
    const exit = finish(gateway);
    await until('it is ready', async () => (await cli.json('gateway', 'status')).state === 'ready');
    const { url } = await cli.json('gateway', 'status');
    expect((await say(url, '/restart')).body.reply).toMatch(/^Restarting/);
    expect(await exit).toMatchObject({ code: 75 });
  });

  testInFullRun('is taken to the background by a restart', async () => {
    const gateway = cli.start(['gateway', 'run']);
    await once(gateway.stdout, 'data');
    const exit = finish(gateway);
    await until('it is ready', async () => (await cli.json('gateway', 'status')).state === 'ready');
    const { pid } = await cli.json('gateway', 'restart');
    expect(await exit).toMatchObject({ code: 75 });
    expect(await cli.json('gateway', 'status')).toMatchObject({ pid, started_by: 'start' });
  });
});

describe.runIf(process.platform === 'linux')('a service', () => {
  const unitOf = (config: string) => join(config, 'systemd', 'user', 'moirai.service');

  async function moirai(config: string, ...args: string[]) {
    const child = cli.start(args, { env: { XDG_CONFIG_HOME: config } });
    child.stdin.end();
    return finish(child);
  }

  test('is printed without being written', async () => {
    const config = join(cli.home, 'config');
    const { code, output } = await moirai(config, 'gateway', 'install', '--print');
    expect(code).toBe(0);
    expect(output).toContain(`Environment="MOIRAI_HOME=${cli.home}"`);
    expect(output).toMatch(/^ExecStart=":\/.*" "\/.*bin\/moirai\.js" "gateway" "run" "--supervised"$/m);
    expect(output).toContain('TimeoutStopSec=35\n');
    expect(readdirSync(cli.home)).toEqual(['config.yaml']);
  });

  test('is written, told how to be used, and removed', async () => {
    const config = join(cli.home, 'config');
    const { output } = await moirai(config, 'gateway', 'install');
    expect(output).toContain('systemctl --user enable --now moirai\n');
    expect(readFileSync(unitOf(config), 'utf8')).toContain('RestartForceExitStatus=75');
    expect((await moirai(config, 'gateway', 'uninstall')).output).toContain('systemctl --user stop moirai\n');
    expect(existsSync(unitOf(config))).toBe(false);
    expect((await moirai(config, 'gateway', 'uninstall')).output).toContain('There is no service at');
  });

  test("of somebody else's is left alone", async () => {
    const config = join(cli.home, 'config');
    mkdirSync(join(config, 'systemd', 'user'), { recursive: true });
    writeFileSync(unitOf(config), '[Service]\n');
    for (const verb of ['install', 'uninstall']) {
      const { code, errors } = await moirai(config, 'gateway', verb);
      expect({ code, errors }).toMatchObject({ code: 1, errors: expect.stringContaining('[service_not_ours]') });
    }
    expect(readFileSync(unitOf(config), 'utf8')).toBe('[Service]\n');
  });
});

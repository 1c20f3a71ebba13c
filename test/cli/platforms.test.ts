import { spawn } from 'node:child_process';
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { BotApiFake } from '../fakes/bot-api.ts';
import { GatewayProcess } from '../gateway/process.ts';
import { hasTerminal, launcher, until } from './cli-fixture.ts';

let gateway: GatewayProcess;
let bot: BotApiFake;

beforeEach(async () => {
  bot = await BotApiFake.start();
});

afterEach(async () => {
  await gateway.close();
  await bot.close();
});

function open(telegram: object | null = null): void {
  gateway = new GatewayProcess({
    model: { provider: 'offline' },
    ...(telegram === null ? {} : { platforms: { telegram } }),
  });
}

const read = (name: string): string => readFileSync(join(gateway.home, name), 'utf8');

async function jsonOf(...args: string[]) {
  return JSON.parse((await gateway.moirai('platforms', ...args, '--json')).output) as Record<string, unknown>;
}

describe('moirai platforms list', () => {
  test('says how each account stands, with and without a gateway, and what lacks something', async () => {
    open({ token: bot.token, api_root: bot.url, accounts: { spare: {}, wrong: { token: '1:x', api_root: bot.url } } });
    const still = { phase: 'stopped', last_success_at: null };
    const spare = { name: 'telegram', account: 'spare', ...still, problem: 'configured without token, so it is off' };
    expect(await jsonOf('list')).toEqual({
      data: [
        { name: 'telegram', account: null, ...still, problem: null },
        { name: 'telegram', account: 'wrong', ...still, problem: null },
        spare,
      ],
      next: null,
    });
    await gateway.start();
    for (;;) {
      const { data } = (await jsonOf('list')) as {
        data: { phase: string; problem: string; last_success_at: string }[];
      };
      if (data[0]?.phase !== 'connected' || data[1]?.phase !== 'failed') continue;
      expect(data[0].last_success_at).toMatch(/^\d{4}-/);
      expect(data[1].problem).toContain('does not know the token');
      expect(data[2]).toEqual(spare);
      break;
    }
    const { output } = await gateway.moirai('platforms', 'list');
    expect(output).toMatch(/^telegram +- +connected +\S.* +-$/m);
    expect(output).toMatch(/^telegram +wrong +failed/m);
  });
});

describe('moirai platforms list, of a gateway that runs', () => {
  test('names what was configured after its start, and how it gets there', async () => {
    open();
    await gateway.start();
    await jsonOf('add', 'telegram', '--set', `token=${bot.token}`, '--set', `api_root=${bot.url}`);
    const problem = 'configured since the gateway started; moirai gateway restart connects it';
    expect(await jsonOf('list')).toMatchObject({
      data: [{ name: 'telegram', account: null, phase: 'stopped', problem, last_success_at: null }],
    });
  });
});

describe('moirai platforms test', () => {
  test('tries all of them, also behind one that is refused, and says which', async () => {
    open({ token: '1:wrong', api_root: bot.url, accounts: { two: { token: bot.token } } });
    const { code, output } = await gateway.moirai('platforms', 'test');
    expect(code).toBe(1);
    expect(output).toMatch(/^telegram: .*Unauthorized \[platform_refused\]$/m);
    expect(output).toMatch(/^telegram@two is @moirai_bot \(777\)\.$/m);
    const asJson = await gateway.moirai('platforms', 'test', '--json');
    expect([asJson.code, JSON.parse(asJson.output)]).toMatchObject([
      1,
      { data: [{ name: 'telegram', problem: { code: 'platform_refused' } }, { name: 'telegram@two' }] },
    ]);
  });
});

describe('moirai platforms add', () => {
  test('writes no secret into the configuration, whether or not it is one that is asked for', async () => {
    open();
    const webhook = ['mode=webhook', 'webhook_url=https://gateway.test/platforms/telegram', 'webhook_secret=4711'];
    const set = [`token=${bot.token}`, `api_root=${bot.url}`, ...webhook].flatMap((pair) => ['--set', pair]);
    expect(await jsonOf('add', 'telegram', ...set)).toMatchObject({ name: 'telegram' });
    expect(read('.env')).toBe(`TELEGRAM_BOT_TOKEN=${bot.token}\nTELEGRAM_WEBHOOK_SECRET=4711\n`);
    expect(read('config.yaml')).toContain('TELEGRAM_WEBHOOK_SECRET}');
    expect(read('config.yaml')).not.toContain('4711');
    expect((await gateway.moirai('config', 'check')).output).toContain('The configuration is valid.');
  });

  test('tries the credential, writes secrets and settings apart, and leaves the rest of the file as it is', async () => {
    open();
    writeFileSync(
      join(gateway.home, 'config.yaml'),
      '# mine\nmodel: { provider: offline } # canned\ngateway: { port: 0 }\n',
    );
    writeFileSync(join(gateway.home, '.env'), 'OTHER=1\n');
    const added = await jsonOf('add', 'telegram', '--set', `token=${bot.token}`, '--set', `api_root=${bot.url}`);
    expect(added).toMatchObject({ name: 'telegram', identity: '@moirai_bot (777)' });
    expect(read('.env')).toBe(`OTHER=1\nTELEGRAM_BOT_TOKEN=${bot.token}\n`);
    expect(read('config.yaml')).toContain('# mine');
    expect(read('config.yaml')).toContain('# canned');
    expect(read('config.yaml')).not.toContain('secret-of-the-bot');
    for (const name of ['.env', 'config.yaml']) expect(statSync(join(gateway.home, name)).mode & 0o077).toBe(0);
    expect((await gateway.moirai('config', 'check')).output).toContain('The configuration is valid.');
    expect(await jsonOf('test', 'telegram')).toEqual({ data: [{ name: 'telegram', identity: '@moirai_bot (777)' }] });
    await gateway.start();
    expect(gateway.started).toMatchObject({ platforms: ['web', 'api', 'telegram'] });
  });

  test('keeps the secrets of an account under variables of its own', async () => {
    open();
    const set = ['--set', `token=${bot.token}`, '--set', `api_root=${bot.url}`, '--set', 'allow=[42]'];
    expect(await jsonOf('add', 'telegram', '--account', 'two-b', ...set)).toMatchObject({ name: 'telegram@two-b' });
    expect(read('.env')).toBe(`TELEGRAM_BOT_TOKEN_TWO_B=${bot.token}\n`);
    expect(await jsonOf('test')).toMatchObject({ data: [{ name: 'telegram@two-b' }] });
  });

  test('writes nothing that the server does not take, unless told to', async () => {
    open();
    const before = read('config.yaml');
    const set = ['--set', 'token=1:wrong', '--set', `api_root=${bot.url}`];
    const refused = await gateway.moirai('platforms', 'add', 'telegram', ...set);
    expect(refused).toMatchObject({ code: 1, output: '' });
    expect(refused.errors).toContain('[platform_refused]');
    expect([read('config.yaml'), existsSync(join(gateway.home, '.env'))]).toEqual([before, false]);
    await bot.close();
    const away = await gateway.moirai('platforms', 'add', 'telegram', ...set);
    expect(away.errors).toContain('[platform_unreachable]');
    const forced = await gateway.moirai('platforms', 'add', 'telegram', ...set, '--force');
    expect(forced).toMatchObject({ code: 0 });
    expect(forced.output).toContain('without being tried');
    expect(read('.env')).toBe('TELEGRAM_BOT_TOKEN=1:wrong\n');
    bot = await BotApiFake.start();
  });

  test.runIf(hasTerminal())('says what to click and asks in a terminal, hiding what is typed', async () => {
    open();
    const line = `stty cols 100 rows 40; exec env MOIRAI_HOME='${gateway.home}' '${process.execPath}' '${launcher}' platforms add telegram --set api_root=${bot.url}`;
    const child = spawn('script', ['-qfec', line, '/dev/null'], { env: { ...process.env, TERM: 'xterm' } });
    let shown = '';
    child.stdout.on('data', (bytes) => {
      shown += bytes;
    });
    await until('the question', () => shown.includes('The token of the bot'), 10_000);
    expect(shown).toContain('@BotFather');
    child.stdin.write(`${bot.token}\r`);
    await until('the end', () => shown.includes('telegram is @moirai_bot (777).'), 10_000);
    expect(shown).not.toContain('secret-of-the-bot');
    expect(read('.env')).toBe(`TELEGRAM_BOT_TOKEN=${bot.token}\n`);
  });

  test.each([
    [['add', 'nope'], 'there is no platform nope'],
    [['add', 'telegram'], 'moirai platforms add telegram --set token=...'],
    [['add', 'slack', '--set', 'token=x'], 'platforms add slack --set app_token=... ['],
    [['add', 'slack', '--set', 'token=x', '--set', 'mode=http'], 'platforms add slack --set signing_secret=... ['],
    [['add', 'telegram', '--set', 'tokn=1'], 'Telegram has no setting tokn'],
    [['add', 'telegram', '--set', 'token'], '--set takes key=value'],
    [['add', 'telegram', '--set', 'token=x'], 'not of the form 123:abc'],
    [['add', 'telegram', '--account', 'A B', '--set', 'token=1:a'], 'no name for an account'],
    [['test', 'telegram'], 'telegram is not configured'],
    [['test'], 'no platform is configured'],
  ])('refuses %j in words', async (args, words) => {
    open();
    const { code, errors } = await gateway.moirai('platforms', ...args);
    expect(code).not.toBe(0);
    expect(errors).toContain(words);
  });
});

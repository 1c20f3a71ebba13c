import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { closeHome, openEntries } from '../../src/cli/private-home.ts';
import { GatewayProcess } from '../gateway/process.ts';

const modeOf = (path: string): string => (statSync(path).mode & 0o777).toString(8).padStart(4, '0');

describe('the home of a gateway', () => {
  let home: string;
  beforeEach(() => {
    home = mkdtempSync(join(tmpdir(), 'moirai-home-'));
  });
  afterEach(() => rmSync(home, { recursive: true }));

  const write = (name: string, mode: number): void => {
    writeFileSync(join(home, name), 'x');
    chmodSync(join(home, name), mode);
  };

  test('is closed to others, with all that is in it, and what was open is told', () => {
    for (const folder of ['logs', 'memory', 'hooks']) mkdirSync(join(home, folder));
    write('.env', 0o644);
    write('state.db', 0o664);
    write('run.sh', 0o755);
    write('closed', 0o600);
    write('logs/gateway.log', 0o640);
    chmodSync(home, 0o755);
    const told = closeHome(home, process.getuid?.() ?? null);
    expect(told).toContainEqual({ path: join(home, 'state.db'), mode: '0664', problem: null });
    expect(told).toContainEqual({ path: home, mode: '0755', problem: null });
    expect(told.map(({ path }) => path)).not.toContain(join(home, 'closed'));
    expect(
      ['', '.env', 'state.db', 'run.sh', 'logs/gateway.log', 'hooks'].map((name) => modeOf(join(home, name))),
    ).toEqual([...['0700', '0600', '0600', '0700', '0600', '0700']]);
    expect(closeHome(home, process.getuid?.() ?? null)).toEqual([]);
  });

  test('leaves alone what a link in it leads to', () => {
    const outside = mkdtempSync(join(tmpdir(), 'moirai-outside-'));
    chmodSync(outside, 0o755);
    symlinkSync(outside, join(home, 'logs'));
    chmodSync(home, 0o700);
    expect(openEntries(home)).toEqual([]);
    closeHome(home, process.getuid?.() ?? null);
    expect(modeOf(outside)).toBe('0755');
    rmSync(outside, { recursive: true });
  });

  test('is refused when it, or what is trusted in it, belongs to another user', () => {
    const { uid } = statSync(home);
    // What is root's is trusted by everybody; only root can give a file away.
    if (uid === 0) chownSync(home, 12_345, 12_345);
    const owner = statSync(home).uid;
    expect(() => closeHome(home, owner + 1)).toThrow(/belongs to another user/);
    expect(() => closeHome(home, owner)).not.toThrow();
    expect(() => closeHome(home, 0)).not.toThrow();
    expect(() => closeHome(home, null)).not.toThrow();
  });
});

describe('a gateway', () => {
  let gateway: GatewayProcess;
  afterEach(() => gateway.close());

  test('closes an open home at its start, says so, and makes nothing that others can read', async () => {
    gateway = new GatewayProcess({ model: { provider: 'offline' } });
    chmodSync(gateway.home, 0o755);
    await gateway.start();
    expect(await gateway.chat({ text: 'hello', conversation: 'c' })).toMatchObject({ status: 200 });
    expect(gateway.log).toMatch(/home was open to other users/);
    expect(readdirSync(gateway.home)).toEqual(expect.arrayContaining(['state.db', 'state.db-wal', 'state.db-shm']));
    expect(openEntries(gateway.home)).toEqual([]);
  });
});

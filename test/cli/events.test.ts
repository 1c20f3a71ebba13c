import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CliFixture, chat, converse, finish, type Process, until } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

describe('events', () => {
  test('are the whole log, one JSON object a line, numbered in order', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'hello', 'hi'));
    await cli.moirai('sessions', 'end', id);
    const events = await cli.events();
    expect(events.map(({ type }) => type)).toEqual(['session:start', 'agent:start', 'agent:end', 'session:end']);
    expect(events.map(({ session_seq }) => session_seq)).toEqual([1, 2, 3, 4]);
    const numbers = events.map(({ seq }) => seq);
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
    expect(events[3]).toEqual({
      ...{ id: `${id}:4`, seq: numbers[3], session_seq: 4, type: 'session:end', at: expect.any(String) },
      ...{ session_id: id, session_key: 'agent:main:telegram:dm:1', platform: 'telegram', user_id: 'user-1' },
      ...{ kind: 'chat', instance: expect.stringMatching(/^ins_/) },
      ...{ reason: 'admin_close', cause: null, trigger: 'cli', duration_ms: expect.any(Number) },
      ...{ message_count: 2, successor_id: null },
    });
  });

  test('are chosen by number, type, session and count', async () => {
    const [first, second] = await cli.live(async (engine) => [
      await converse(engine, chat(1), 'a', 'b'),
      await converse(engine, chat(2), 'a', 'b'),
    ]);
    const types = async (...flags: string[]) => (await cli.events(...flags)).map(({ type }) => type);
    const all = await cli.events();
    expect(await cli.events('--after', String(all[3].seq))).toEqual(all.slice(4));
    expect(await cli.events('--after', 'now')).toEqual([]);
    expect(await cli.events('--limit', '2')).toEqual(all.slice(0, 2));
    expect(await types('--types', 'session:*')).toEqual(['session:start', 'session:start']);
    expect(await types('--types', 'session:start,agent:end', '--session', second ?? '')).toEqual([
      ...['session:start', 'agent:end'],
    ]);
    const ofFirst = await cli.events('--session', first ?? '');
    expect(new Set(ofFirst.map(({ session_id }) => session_id))).toEqual(new Set([first]));
  });

  test('are readable for people', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'hello', 'hi'));
    const lines = (await cli.moirai('events')).output.trimEnd().split('\n');
    expect(lines).toHaveLength(3);
    expect(lines[0]).toMatch(new RegExp(`^ +\\d+ {2}\\d{4}-.*Z {2}session:start +${id}`));
  });

  test('go on behind a page', async () => {
    await cli.live(async (engine) => {
      const { session } = await engine.receive({
        conversation: chat(1),
        text: 'x',
        originRef: null,
        by: 'user',
        begin: false,
      });
      for (let n = 0; n < 1200; n++) await engine.setTitle(session.id, `title ${n}`);
    });
    const events = await cli.events('--types', 'session:title');
    expect(events.map(({ title }) => title)).toEqual(Array.from({ length: 1200 }, (_, n) => `title ${n}`));
  });

  test('end quietly when nobody reads on', async () => {
    await cli.live(async (engine) => {
      const { session } = await engine.receive({
        conversation: chat(1),
        text: 'x',
        originRef: null,
        by: 'user',
        begin: false,
      });
      for (let n = 0; n < 3000; n++) await engine.setTitle(session.id, `${'long '.repeat(20)}${n}`);
    });
    const child = cli.start(['events', '--json']);
    await once(child.stdout, 'data');
    child.stdout.destroy();
    const [code] = await once(child, 'exit');
    expect({ code, errors: String(child.stderr.read() ?? '') }).toEqual({ code: 0, errors: '' });
  });
});

describe('events --follow', () => {
  test.each(['SIGINT', 'SIGTERM'] as const)('shows what happens, as it happens, until %s', async (signal) => {
    await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
    const follower = cli.start(['events', '--follow', '--json', '--after', 'now', '--types', 'session:*']);
    const seen = follow(follower);
    await ready(cli, follower, seen);
    const id = await cli.live((engine) => converse(engine, chat(2), 'a', 'b'));
    await cli.moirai('sessions', 'end', id);
    await until('the end is seen', () =>
      seen.some(({ type, session_id }) => type === 'session:end' && session_id === id),
    );
    follower.kill(signal);
    expect(await finish(follower)).toMatchObject({ code: 0, signal: null, errors: '' });
    const mine = seen.filter(({ session_id }) => session_id === id);
    expect(mine.map(({ type }) => type)).toEqual(['session:start', 'session:end']);
    expect(seen.some(({ session_key }) => session_key === 'agent:main:telegram:dm:1')).toBe(false);
  });

  test('stops after so many, and when its reader is gone', async () => {
    await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
    expect(await cli.events('--follow', '--limit', '2')).toHaveLength(2);
    const follower = cli.start(['events', '-f']);
    await once(follower.stdout, 'data');
    follower.stdout.destroy();
    const exit = once(follower, 'exit');
    await cli.live((engine) => converse(engine, chat(2), 'a', 'b'));
    expect((await exit)[0]).toBe(0);
  });

  test('finds dead processes by itself, without any other command', async () => {
    const { wrapper } = await cli.startRun('exec sleep 600');
    const follower = cli.start(['events', '--follow', '--json', '--types', 'session:end']);
    const seen = follow(follower);
    wrapper.kill('SIGKILL');
    await until('the death is seen', () => seen.some(({ reason }) => reason === 'reaped'));
    const { checks } = await cli.json('doctor');
    const { details } = checks.find((each: { check: string }) => each.check === 'instances');
    expect(details.map(({ state }: { state: string }) => state)).toEqual(['dead']);
  });
});

// biome-ignore lint/suspicious/noExplicitAny: events of every type
function follow(follower: Process): any[] {
  // biome-ignore lint/suspicious/noExplicitAny: events of every type
  const seen: any[] = [];
  createInterface(follower.stdout).on('line', (line) => seen.push(JSON.parse(line)));
  return seen;
}

/** Makes sessions until the follower shows one: then it follows. */
async function ready(there: CliFixture, follower: Process, seen: readonly unknown[]): Promise<void> {
  await until('the follower follows', async () => {
    if (follower.exitCode !== null) throw new Error('the follower ended');
    await there.live((engine) => engine.reset(chat('probe')));
    return seen.length > 0;
  });
}

import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CliFixture, chat, converse } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

describe('sessions list', () => {
  test('has nothing to show at first', async () => {
    expect(await cli.json('sessions', 'list')).toEqual({ data: [], next: null });
    expect((await cli.moirai('sessions', 'list')).output).toContain('--kind all shows every kind');
  });

  test('shows every field of a session, times in ISO 8601', async () => {
    const id = await cli.live((engine) => converse(engine, chat(42), 'hello', 'hi'));
    const iso = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    expect(await cli.json('sessions', 'list')).toEqual({
      data: [
        {
          id,
          key: 'agent:main:telegram:dm:42',
          kind: 'chat',
          platform: 'telegram',
          user_id: 'user-42',
          title: null,
          state: 'open',
          started_at: iso,
          last_activity_at: iso,
          expires_at: iso,
          ended_at: null,
          end_reason: null,
          end_cause: null,
          parent_id: null,
          lineage: null,
          message_count: 2,
          owner: null,
          last_heartbeat_at: iso,
          resume_reason: null,
          suspend_reason: null,
          tokens: { input: 3, output: 5 },
        },
      ],
      next: null,
    });
  });

  test('filters by kind, state, platform, key, user, reason, time and text, with commas', async () => {
    await cli.live(async (engine) => {
      await converse(engine, chat(1), 'a', 'b');
      const second = await converse(engine, chat(2, 'discord'), 'a', 'b');
      await engine.end(second, { reason: 'admin_close', trigger: 'cli' });
      const third = await converse(engine, chat(3, 'slack'), 'a', 'b');
      await engine.setTitle(third, 'Quarterly Report');
    });
    await cli.moirai('run', '--', 'true');
    const users = async (...flags: string[]): Promise<(string | null)[]> => {
      const { data } = await cli.json('sessions', 'list', ...flags);
      return data.map((session: { user_id: string | null }) => session.user_id);
    };
    expect(await users()).toEqual(['user-3', 'user-2', 'user-1']);
    expect(await users('--kind', 'all')).toEqual([null, 'user-3', 'user-2', 'user-1']);
    expect(await users('--kind', 'batch')).toEqual([null]);
    expect(await users('--kind', 'batch,chat', '--limit', '2')).toEqual([null, 'user-3']);
    expect(await users('--state', 'open')).toEqual(['user-3', 'user-1']);
    expect(await users('--state', 'ended,suspended')).toEqual(['user-2']);
    expect(await users('--platform', 'discord,slack')).toEqual(['user-3', 'user-2']);
    expect(await users('--key', 'agent:main:telegram:dm:1')).toEqual(['user-1']);
    expect(await users('--user', 'user-2')).toEqual(['user-2']);
    expect(await users('--reason', 'admin_close')).toEqual(['user-2']);
    expect(await users('--reason', 'batch_complete', '--kind', 'all')).toEqual([null]);
    expect(await users('--q', 'quarterly')).toEqual(['user-3']);
    expect(await users('--since', '1h')).toHaveLength(3);
    expect(await users('--since', new Date(Date.now() + 60_000).toISOString())).toEqual([]);
    const batch = await cli.json('sessions', 'list', '--kind', 'batch');
    expect((await cli.json('sessions', 'list', '--key', batch.data[0].key)).data).toEqual(batch.data);
  });

  test('goes on behind its cursor until there is no more', async () => {
    await cli.live(async (engine) => {
      for (let n = 1; n <= 5; n++)
        await engine.receive({ conversation: chat(n), text: 'x', originRef: null, by: 'user' });
    });
    const seen: string[] = [];
    for (let cursor: string | null = ''; cursor !== null; ) {
      const page: { data: { user_id: string }[]; next: string | null } = await cli.json(
        ...['sessions', 'list', '--limit', '2', ...(cursor === '' ? [] : ['--cursor', cursor])],
      );
      seen.push(...page.data.map((session) => session.user_id));
      cursor = page.next;
    }
    expect(seen).toEqual(['user-5', 'user-4', 'user-3', 'user-2', 'user-1']);
    expect((await cli.moirai('sessions', 'list', '--limit', '2')).output).toContain('There are more: add --cursor ');
  });

  test('shows people full ids, the state, when and why it ended', async () => {
    const id = await cli.live((engine) => converse(engine, chat(42), 'hello', 'hi'));
    await cli.moirai('sessions', 'end', id);
    const [headings, row] = (await cli.moirai('sessions', 'list')).output.split('\n');
    expect(headings).toMatch(/^ID +KIND +PLATFORM +STATE +STARTED +ENDED +REASON +MESSAGES +TITLE$/);
    expect(row?.split(/ {2,}/)).toEqual([
      ...[id, 'chat', 'telegram', 'ended'],
      ...[expect.stringMatching(/now|ago/), expect.stringMatching(/now|ago/), 'admin_close', '2'],
      '(agent:main:telegram:dm:42)',
    ]);
  });
});

test('hostile titles, users and messages are shown as text, one line each', async () => {
  const hostile = '\u001b]0;owned\u0007\u001b[2J\u202egnp.exe\nses_forged  chat\r\u0000\u200b\u{e0041}';
  const shown = '\\x1b]0;owned\\u{7}\\x1b[2J\\u{202e}gnp.exe\\nses_forged  chat\\r';
  const id = await cli.live(async (engine) => {
    const session = await converse(engine, { ...chat(1), userId: hostile }, hostile, hostile);
    await engine.setTitle(session, hostile);
    return session;
  });
  for (const args of [
    ['sessions', 'list'],
    ['sessions', 'show', id],
    ['sessions', 'messages', id],
    ['sessions', 'search', 'owned'],
    ['events'],
  ]) {
    const { code, output } = await cli.moirai(...args);
    expect(code).toBe(0);
    // biome-ignore lint/suspicious/noControlCharactersInRegex: that none is there is the point
    expect(output).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u200b\u202a-\u202e\u{e0041}]/u);
    expect(output.split('\n').some((line) => line.startsWith('ses_forged'))).toBe(false);
  }
  expect((await cli.moirai('sessions', 'list')).output).toContain(shown.slice(0, 40));
  expect((await cli.json('sessions', 'list')).data[0].title).toContain('\u001b]0;owned');
});

describe('sessions show', () => {
  test('shows one session by its id or a unique beginning, with its last events', async () => {
    const id = await cli.live((engine) => converse(engine, chat(7), 'hello', 'hi'));
    const one = await cli.json('sessions', 'show', id);
    expect(one).toMatchObject({ id, key: 'agent:main:telegram:dm:7', state: 'open', message_count: 2 });
    expect(await cli.json('sessions', 'show', id.slice(0, -4))).toEqual(one);
    const { output } = await cli.moirai('sessions', 'show', id);
    expect(output).toMatch(/^id +ses_/);
    expect(output).toMatch(/session:start[\s\S]*agent:start[\s\S]*agent:end/);
  });

  test('names the sessions it continues', async () => {
    const [first, second] = await cli.live(async (engine) => {
      const old = await converse(engine, chat(7), 'hello', 'hi');
      await engine.end(old, { reason: 'admin_close', trigger: 'cli' });
      const { session } = await engine.continueFrom(old, 'resume', { trigger: 'cli' });
      return [old, session.id];
    });
    const { output } = await cli.moirai('sessions', 'show', second);
    expect(output).toMatch(new RegExp(`parent +${first} \\(resume\\)`));
    expect(output).toMatch(new RegExp(`continues +${first}`));
  });

  test('refuses an id that is unknown or not unique', async () => {
    await cli.live(async (engine) => {
      await converse(engine, chat(1), 'a', 'b');
      await converse(engine, chat(2), 'a', 'b');
    });
    expect(await cli.moirai('sessions', 'show', 'ses_')).toMatchObject({
      code: 1,
      errors: expect.stringContaining('[session_ambiguous]'),
    });
    expect(await cli.moirai('sessions', 'show', 'nobody')).toMatchObject({
      code: 1,
      errors: expect.stringContaining('[session_not_found]'),
    });
  });
});

describe('sessions messages', () => {
  test('shows the transcript, oldest first, page by page', async () => {
    const id = await cli.live(async (engine) => {
      await converse(engine, chat(1), 'first question', 'first answer');
      return converse(engine, chat(1), 'second question', 'second\nanswer');
    });
    const page = await cli.json('sessions', 'messages', id, '--limit', '3');
    expect(page.data.map((message: { text: string }) => message.text)).toEqual([
      ...['first question', 'first answer', 'second question'],
    ]);
    expect(page.data[0]).toMatchObject({
      role: 'user',
      turn_id: expect.stringMatching(/^trn_/),
      at: expect.any(String),
    });
    const rest = await cli.json('sessions', 'messages', id, '--cursor', page.next);
    expect(rest).toMatchObject({ data: [{ role: 'assistant', text: 'second\nanswer' }], next: null });
    expect((await cli.moirai('sessions', 'messages', id)).output).toContain('assistant: second\n    answer\n');
  });

  test('refuses an unknown session', async () => {
    expect(await cli.moirai('sessions', 'messages', 'nobody')).toMatchObject({ code: 1 });
  });
});

test('sessions search finds what was written a moment ago, by all its words', async () => {
  const id = await cli.live(async (engine) => {
    await converse(engine, chat(1), 'where is the harbour', 'in the north');
    return converse(engine, chat(2), 'where is the market', 'beside the harbour and the bridge');
  });
  const found = await cli.json('sessions', 'search', 'bridge', 'harbour');
  expect(found).toMatchObject({ data: [{ session_id: id, role: 'assistant' }], next: null });
  expect((await cli.json('sessions', 'search', 'harbour', '--limit', '1')).data).toHaveLength(1);
  expect(await cli.json('sessions', 'search', 'cathedral')).toEqual({ data: [], next: null });
});

describe('sessions end', () => {
  test('ends a session as admin_close, by the command line', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
    const { code, output } = await cli.moirai('sessions', 'end', id.slice(0, -2));
    expect({ code, output }).toEqual({ code: 0, output: `Ended ${id}: admin_close\n` });
    expect(await cli.json('sessions', 'show', id)).toMatchObject({ state: 'ended', end_reason: 'admin_close' });
    expect(await cli.events('--types', 'session:end')).toMatchObject([
      { session_id: id, reason: 'admin_close', trigger: 'cli', message_count: 2 },
    ]);
  });

  test('ends it as api_close when asked, and says so when it had ended before', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
    const first = await cli.json('sessions', 'end', id, '--reason', 'api_close');
    expect(first).toMatchObject({ id, state: 'ended', end_reason: 'api_close' });
    expect(await cli.json('sessions', 'end', id)).toEqual(first);
    const again = await cli.moirai('sessions', 'end', id);
    expect(again).toMatchObject({
      code: 0,
      output: expect.stringMatching(/had ended before: api_close, (now|.* ago)\n$/),
    });
    expect(await cli.events('--types', 'session:end')).toHaveLength(1);
  });

  test('leaves no instance behind', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
    await cli.moirai('sessions', 'end', id);
    const { checks } = await cli.json('doctor');
    expect(checks.find((each: { check: string }) => each.check === 'instances').details).toEqual([]);
  });
});

test('sessions stats counts all, open, and ended by reason', async () => {
  const empty = { total: 0, open: 0, open_owned: 0, open_unowned: 0, ended: {} };
  expect(await cli.json('sessions', 'stats')).toEqual(empty);
  await cli.live(async (engine) => {
    await converse(engine, chat(1), 'a', 'b');
    const id = await converse(engine, chat(2), 'a', 'b');
    await engine.end(id, { reason: 'admin_close', trigger: 'cli' });
  });
  await cli.moirai('run', '--', 'false');
  expect(await cli.json('sessions', 'stats')).toEqual({
    ...{ total: 3, open: 1, open_owned: 1, open_unowned: 0 },
    ended: { admin_close: 1, batch_failed: 1 },
  });
  expect((await cli.moirai('sessions', 'stats')).output).toMatch(/without a live owner +0\n/);
});

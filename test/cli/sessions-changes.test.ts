import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { CliFixture, chat, converse } from './cli-fixture.ts';

let cli: CliFixture;

beforeEach(() => {
  cli = new CliFixture();
});

afterEach(() => cli.remove());

describe('sessions resume', () => {
  test('starts a session that sees the transcript, and ends the open one', async () => {
    const first = await cli.live(async (engine) => {
      const id = await converse(engine, chat(1), 'where is the harbour', 'in the north');
      await engine.reset(chat(1));
      return id;
    });
    const resumed = await cli.json('sessions', 'resume', first);
    expect(resumed).toMatchObject({ parent_id: first, lineage: 'resume', state: 'open', user_id: 'user-1' });
    const { data } = await cli.json('sessions', 'list', '--reason', 'switched');
    expect(data).toHaveLength(1);
    const { messages } = await cli.json('sessions', 'export', resumed.id);
    expect(messages.map(({ text }: { text: string }) => text)).toEqual(['where is the harbour', 'in the north']);
  });

  test('shows an open one as it is, and says so', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
    expect(await cli.json('sessions', 'resume', id)).toMatchObject({ id, parent_id: null });
    expect((await cli.moirai('sessions', 'resume', id)).output).toContain(`${id} is open already.\n`);
  });

  test('leaves a session that no process owns, also after one that had an owner', async () => {
    await cli.moirai('run', '--', 'true');
    const [batch] = (await cli.json('sessions', 'list', '--kind', 'batch')).data;
    const resumed = await cli.json('sessions', 'resume', batch.id);
    expect(resumed).toMatchObject({ kind: 'batch', state: 'open', owner: null });
    expect(await cli.json('sessions', 'stats')).toMatchObject({
      open: 1,
      open_unowned: 0,
      ended: { batch_complete: 1 },
    });
  });
});

test('sessions suspend parks a session, show says why and what to do, and release opens it again', async () => {
  const id = await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
  const { code, output } = await cli.moirai('sessions', 'suspend', id);
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining(`moirai sessions release ${id}`) });
  expect((await cli.moirai('sessions', 'show', id)).output).toMatch(
    /parked +by an operator; what is said waits until: moirai sessions release/,
  );
  expect(await cli.json('sessions', 'suspend', id)).toMatchObject({ state: 'suspended', suspend_reason: 'operator' });
  expect(await cli.json('sessions', 'release', id)).toMatchObject({ state: 'open', suspend_reason: null });
});

test('sessions show says of a session that is stuck why it is parked and what to do', async () => {
  const id = await cli.live(async (engine) => {
    const { session, turn } = await engine.receive({ conversation: chat(1), text: 'a', originRef: null, by: 'user' });
    for (let cut = 1; ; cut++) {
      const [hold] = engine.holds;
      if (hold === undefined) throw new TypeError('nothing is held');
      await engine.interrupt(hold, 'crash');
      if (cut === 3) return session.id;
      await engine.begin(session.id, turn.id);
    }
  });
  expect((await cli.moirai('sessions', 'show', id)).output).toMatch(
    /parked +its turn was interrupted too often in a row; the next message starts a new session, or: moirai sessions release/,
  );
  expect(await cli.json('sessions', 'release', id)).toMatchObject({ state: 'open' });
});

test('sessions branch starts another one beside it, with a title', async () => {
  const id = await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
  const { code, output } = await cli.moirai('sessions', 'branch', id, '--title', 'another way');
  expect({ code, output }).toMatchObject({ code: 0, output: expect.stringContaining(`which continues ${id}.\n`) });
  expect(output).toContain(`Ended ${id}: branched.\n`);
  const { data } = await cli.json('sessions', 'list', '--state', 'open');
  expect(data).toMatchObject([{ parent_id: id, lineage: 'branch', title: 'another way' }]);
});

test('sessions title gives a title and takes it away, but not after the end', async () => {
  const id = await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
  expect(await cli.json('sessions', 'title', id, 'Finding', 'the harbour')).toMatchObject({
    title: 'Finding the harbour',
  });
  expect((await cli.moirai('sessions', 'title', id, '')).output).toBe(`${id}: no title\n`);
  await cli.moirai('sessions', 'end', id);
  const { code, errors } = await cli.moirai('sessions', 'title', id, 'late');
  expect({ code, errors }).toMatchObject({ code: 1, errors: expect.stringContaining('[session_ended]') });
});

describe('sessions export', () => {
  test('writes the whole session as JSON', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'a\nb "c"', 'd'));
    const exported = await cli.json('sessions', 'export', id);
    expect(exported).toMatchObject({
      session: { id, message_count: 2 },
      lineage: [id],
      messages: [
        { role: 'user', text: 'a\nb "c"', session_id: id, position: 1 },
        { role: 'assistant', text: 'd' },
      ],
    });
    const empty = await cli.live((engine) => engine.start(chat(2)));
    expect(await cli.json('sessions', 'export', empty.id)).toMatchObject({ messages: [] });
  });

  test('writes Markdown to a file of its owner', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'where?', 'In the north:\n\n- behind the bridge'));
    const file = join(cli.home, 'harbour.md');
    const { code, output } = await cli.moirai('sessions', 'export', id, '--format', 'md', '--output', file);
    expect({ code, output }).toEqual({ code: 0, output: `Wrote ${id} to ${file}\n` });
    expect(statSync(file).mode & 0o777).toBe(0o600);
    const text = readFileSync(file, 'utf8');
    expect(text).toMatch(/^# agent:main:telegram:dm:1\n\n- id: ses_/);
    expect(text).toMatch(
      /\n## user, \d{4}-\S+Z\n\nwhere\?\n\n## assistant, \S+\n\nIn the north:\n\n- behind the bridge\n$/,
    );
  });

  test('knows its formats, and says when a file cannot be written', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
    const wrong = await cli.moirai('sessions', 'export', id, '--format', 'xml');
    expect(wrong).toMatchObject({ code: 2, errors: expect.stringContaining('--format has no "xml"') });
    const nowhere = await cli.moirai('sessions', 'export', id, '--output', join(cli.home, 'no/such/file'));
    expect(nowhere).toMatchObject({ code: 2, errors: expect.stringContaining('cannot be written') });
  });
});

describe('sessions delete', () => {
  test('ends an open session and removes it; the log stays', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'the harbour', 'b'));
    expect(await cli.json('sessions', 'delete', id.slice(0, -1))).toEqual({ id, deleted: true, ended: true });
    expect(await cli.moirai('sessions', 'show', id)).toMatchObject({ code: 1 });
    expect(await cli.json('sessions', 'search', 'harbour')).toEqual({ data: [], next: null });
    const ends = await cli.events('--types', 'session:end', '--session', id);
    expect(ends).toMatchObject([{ session_id: id, reason: 'deleted', trigger: 'cli' }]);
    expect(await cli.json('sessions', 'stats')).toMatchObject({ total: 0 });
    expect(await cli.json('doctor')).toMatchObject({ ok: true });
  });

  test('refuses what another session continues', async () => {
    const id = await cli.live((engine) => converse(engine, chat(1), 'a', 'b'));
    const branched = await cli.json('sessions', 'branch', id);
    const { code, errors } = await cli.moirai('sessions', 'delete', id);
    expect(code).toBe(1);
    expect(errors).toContain(`session ${id} is continued by ${branched.id} [session_continued]`);
    expect((await cli.moirai('sessions', 'delete', branched.id)).output).toBe(`Ended and deleted ${branched.id}\n`);
    expect((await cli.moirai('sessions', 'delete', id)).output).toBe(`Deleted ${id}\n`);
  });
});

describe('sessions prune', () => {
  test('removes what ended long enough ago, of the kinds that are named', async () => {
    await cli.live(async (engine) => {
      for (const n of [1, 2]) {
        const id = await converse(engine, chat(n), 'a', 'b');
        await engine.end(id, { reason: 'admin_close', trigger: 'cli' });
      }
      await converse(engine, chat(3), 'a', 'b');
    });
    await cli.moirai('run', '--', 'true');
    const prune = (...args: string[]) => cli.json('sessions', 'prune', ...args);
    expect(await prune()).toEqual({ dry_run: false, removed: 0, by_kind: {} });
    expect(await prune('--older-than', '1h')).toMatchObject({ removed: 0 });
    expect(await prune('--older-than', '0s', '--dry-run')).toEqual({
      ...{ dry_run: true, removed: 3, by_kind: { batch: 1, chat: 2 } },
    });
    expect(await prune('--older-than', '0s', '--kind', 'batch,cron')).toMatchObject({ by_kind: { batch: 1 } });
    const { output } = await cli.moirai('sessions', 'prune', '--older-than', '0s');
    expect(output).toBe('Removed 2 sessions.\n  chat  2\n');
    expect(await cli.json('sessions', 'stats')).toMatchObject({ total: 1, open: 1, ended: {} });
    expect(await cli.json('doctor')).toMatchObject({ ok: true });
  });

  test('refuses ages and kinds it does not know', async () => {
    expect(await cli.moirai('sessions', 'prune', '--older-than', 'soon')).toMatchObject({ code: 2 });
    expect(await cli.moirai('sessions', 'prune', '--kind', 'chats')).toMatchObject({ code: 2 });
  });
});

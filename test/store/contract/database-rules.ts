import { describe, expect } from 'vitest';
import { postgresDialect } from '../../../src/store/postgres/dialect.ts';
import { sqliteDialect } from '../../../src/store/sqlite/dialect.ts';
import type { Param } from '../../../src/store/transaction.ts';
import { saveSessions } from '../../../src/store/transactions/rows.ts';
import { type Open, type Scene, sceneTests } from './scene.ts';

/** What the database itself refuses, whatever the code above it does. */
export function databaseRulesContract(open: Open): void {
  const test = sceneTests(open);

  describe('the database refuses', () => {
    test('a second open session of a conversation', async (scene) => {
      const { key } = await scene.start('1');
      await refused(scene, insertSession, 'ses-2', key, 'open');
      await refused(scene, insertSession, 'ses-2', key, 'suspended');
      await scene.raw(insertSession, 'ses-2', 'agent:main:telegram:dm:2', 'open');
    });

    test('a session id that exists', async (scene) => {
      const { id } = await scene.start('1');
      await refused(scene, insertSession, id, 'agent:main:telegram:dm:2', 'open');
    });

    test('a session that was changed since it was read, alone and among others', async (scene) => {
      const dialect = scene.store.engine === 'sqlite' ? sqliteDialect : postgresDialect;
      const read = await scene.start('1');
      const other = await scene.start('2');
      await scene.raw('UPDATE sessions SET version = version + 1 WHERE id = ?', read.id);
      const changes = [read, other].map((before) => ({
        before,
        after: { ...before, title: 'late', version: before.version + 1 },
      }));
      const late = [saveSessions(dialect, changes.slice(0, 1))[0], saveSessions(dialect, changes)[0]];
      for (const save of late) await refused(scene, save?.sql ?? '', ...(save?.params ?? []));
      expect(await scene.session(read.id)).toEqual({ ...read, version: read.version + 1 });
      expect(await scene.session(other.id)).toEqual(other);
    });

    test('a second start and a second end of a session', async (scene) => {
      const { id, key } = await scene.start('1');
      await scene.end(id);
      const insert = `INSERT INTO events (session_id, session_seq, session_key, type, at, body) VALUES (?, 9, ?, ?, 0, '{}')`;
      await refused(scene, insert, id, key, 'session:start');
      await refused(scene, insert, id, key, 'session:end');
      await scene.raw(insert, id, key, 'session:title');
    });

    test('to reopen what has ended, or to change when and why it ended', async (scene) => {
      const { id } = await scene.start('1');
      const { session } = await scene.end(id, 'api_close');
      const changes = [
        "state = 'open', ended_at = NULL, end_reason = NULL",
        "state = 'suspended', ended_at = NULL, end_reason = NULL",
        "state = 'open'",
        "end_reason = 'deleted'",
        'end_reason = NULL',
        "end_cause = 'idle'",
        'ended_at = ended_at + 1',
        'ended_at = NULL',
      ];
      for (const change of changes) await refused(scene, `UPDATE sessions SET ${change} WHERE id = ?`, id);
      expect(await scene.session(id)).toEqual(session);
      await scene.raw("UPDATE sessions SET title = 'still allowed' WHERE id = ?", id);
    });

    test('an end without its reason, a reason without its end, and an ended session with an owner', async (scene) => {
      const { id } = await scene.start('1');
      const changes = [
        "state = 'ended'",
        "state = 'ended', ended_at = 1",
        "state = 'ended', end_reason = 'deleted'",
        "end_reason = 'deleted'",
        'ended_at = 1',
        "state = 'ended', ended_at = 1, end_reason = 'deleted', expires_at = NULL, owner = 'one'",
        "state = 'ended', ended_at = 1, end_reason = 'deleted', owner = NULL, expires_at = 5",
      ];
      for (const change of changes) await refused(scene, `UPDATE sessions SET ${change} WHERE id = ?`, id);
    });

    test('words that are not in the tables of the lifecycle', async (scene) => {
      const { session, turn } = await scene.say('1', 'hello');
      const changes = [
        "state = 'closed'",
        "kind = 'dream'",
        "lineage = 'cousin'",
        "resume_reason = 'bored'",
        'attached = 2',
      ];
      for (const change of changes) await refused(scene, `UPDATE sessions SET ${change} WHERE id = ?`, session.id);
      const end =
        "UPDATE sessions SET state = 'ended', ended_at = 1, expires_at = NULL, end_reason = 'tired' WHERE id = ?";
      await refused(scene, end, session.id);
      for (const change of ["state = 'lost'", "by_actor = 'god'", "state = 'over'", "outcome = 'done'"]) {
        await refused(scene, `UPDATE turns SET ${change} WHERE id = ?`, turn.id);
      }
    });

    test('a second turn for one message of a platform', async (scene) => {
      await scene.say('1', 'hello', { originRef: 'telegram:1:1' });
      const insert = `INSERT INTO turns (id, session_id, origin_ref, by_actor, state, text, created_at, cuts)
        VALUES ('trn-2', 'ses', ?, 'user', 'queued', '', 0, 0)`;
      await refused(scene, insert, 'telegram:1:1');
      await scene.raw(insert, 'telegram:1:2');
    });

    test('two messages in one place of a transcript', async (scene) => {
      const { id } = await scene.start('1');
      const insert = "INSERT INTO messages (session_id, position, role, text, at) VALUES (?, 1, 'user', '', 0)";
      await scene.raw(insert, id);
      await refused(scene, insert, id);
    });
  });
}

const insertSession = `INSERT INTO sessions (id, key, kind, platform, attached, started_at, state, last_activity_at,
    message_count, tokens_in, tokens_out, epoch, cuts, background, seq, version, recent_commands)
  VALUES (?, ?, 'chat', 'telegram', 0, 0, ?, 0, 0, 0, 0, 0, 0, 0, 0, 0, '')`;

async function refused(scene: Scene, sql: string, ...params: Param[]): Promise<void> {
  await expect(scene.raw(sql, ...params), sql).rejects.toThrow(/constraint|final|unique/i);
}

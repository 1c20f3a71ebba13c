import type { Mutant } from './mutants.ts';

const TROUBLE = 'test/store/postgres-trouble.test.ts';
const UPGRADES = 'test/store/postgres-upgrades.test.ts';
const URL = 'test/store/postgres-url.test.ts';
const STATES = 'src/store/postgres/errors.test.ts';
const FILE = 'test/store/sqlite-file-trouble.test.ts';
const HEALTH = 'test/scenarios/store-health.test.ts';
const SQLITE = 'test/store/sqlite.contract.test.ts';
const POSTGRES = 'test/store/postgres.contract.test.ts';

/** Deliberate bugs in a store in trouble. */
export const STORE_MUTANTS: readonly Mutant[] = [
  {
    name: 'writes that wait for one conversation hold a connection each',
    file: 'src/store/postgres/store.ts',
    find: 'if (key === null) return',
    replace: "if (key !== '') return",
    layer: { file: TROUBLE, titles: 'wait for one conversation' },
  },
  {
    name: 'reads wait behind writes that wait for a lock',
    file: 'src/store/postgres/plan.ts',
    find: "kind === 'write' ? 'writes' : 'reads'",
    replace: "kind === 'write' ? 'writes' : 'writes'",
    layer: { file: TROUBLE, titles: 'wait for many conversations' },
  },
  {
    name: 'a heartbeat waits for a session that another transaction holds',
    file: 'src/store/transactions/liveness.ts',
    find: 'ctx.dialect.skipLocked',
    replace: 'ctx.dialect.forUpdate',
    layer: { file: TROUBLE, titles: 'session that is locked' },
  },
  {
    name: 'a conversation that stays locked is an internal error',
    file: 'src/store/postgres/errors.ts',
    find: "  [CONFLICTS, 'store_locked'],",
    replace: "  [CONFLICTS, 'internal'],",
    layer: { file: STATES, titles: 'what the server reports' },
  },
  {
    name: 'nothing that is sent to PostgreSQL has a time limit',
    file: 'src/store/postgres/deadlines.ts',
    find: `    late = true;
    client.connection.stream.destroy();`,
    replace: '    late = false;',
    layer: { file: TROUBLE, titles: 'a heartbeat that a silent network swallows' },
  },
  {
    name: 'an attempt to connect to PostgreSQL has no time limit',
    file: 'src/store/postgres/connection.ts',
    find: 'connectionTimeoutMillis: deadlines.tryMs,',
    replace: '',
    layer: { file: TROUBLE, titles: 'not opened through a silent network' },
  },
  {
    name: 'a store that is opened waits for ever for who serves its connection',
    file: 'src/store/postgres/pooler.ts',
    find: "await answeredWithin(ms, client, () => ask(client, 'SELECT pg_backend_pid() AS pid'));",
    replace: "await ask(client, 'SELECT pg_backend_pid() AS pid');",
    layer: { file: TROUBLE, titles: 'at pg_backend_pid' },
  },
  {
    name: 'a statement that the server cancelled is an internal error',
    file: 'src/store/postgres/errors.ts',
    find: "[/^57014/, 'store_timeout'],",
    replace: "[/^57014/, 'internal'],",
    layer: { file: STATES, titles: 'what the server reports' },
  },
  {
    name: 'a broken connection is known by a list of names',
    file: 'src/store/postgres/errors.ts',
    find: '  return new ConnectionLost(reasonOf(thrown), { cause: thrown });',
    replace: `  const names = ['ECONNRESET', 'ECONNREFUSED', 'EPIPE', 'ETIMEDOUT'];
  if (!names.includes(String((thrown as NodeJS.ErrnoException).code))) return thrown as ConnectionLost;
  return new ConnectionLost(reasonOf(thrown), { cause: thrown });`,
    layer: { file: STATES, titles: 'whatever the system calls it' },
  },
  {
    name: 'what fails after a commit is answered as if nothing had happened',
    file: 'src/store/sqlite/writer.ts',
    find: "progress === 'committed' || (progress",
    replace: '(progress',
    layer: { file: 'test/store/bad-files.test.ts', titles: 'shut while its store is open' },
  },
  {
    name: 'after a failed sync the store writes on behind what may be lost',
    file: 'src/store/sqlite/writer.ts',
    find: "if (error.code === 'store_io' || progress === 'committed') this.#trouble",
    replace: "if (progress === 'committed') this.#trouble",
    layer: { file: FILE, titles: 'could not sync its log' },
  },
  {
    name: 'a page of a transcript is as long as its messages',
    file: 'src/store/transactions/messages.ts',
    find: ') sizes WHERE before < ',
    replace: ') sizes WHERE before >= 0 OR before < ',
    layer: { file: FILE, titles: 'only escapes can express' },
  },
  {
    name: 'an answer that is too large to be sent kills its thread',
    file: 'src/store/sqlite/worker.ts',
    find: `  } catch {
    // Together`,
    replace: `  } catch (thrown) {
    if (thrown !== null) throw thrown;
    // Together`,
    layer: { file: FILE, titles: 'together longer than any text' },
  },
  {
    name: 'a reader thread that died is never replaced',
    file: 'src/store/sqlite/store.ts',
    find: 'if (!reader.dead) return reader;',
    replace: 'if (reader !== null) return reader;',
    layer: { file: FILE, titles: 'while it reads is replaced' },
  },
  {
    name: 'a writer thread that died is never replaced',
    file: 'src/store/sqlite/store.ts',
    find: 'this.#writer.dead ? this.#writeAnew(name, args) :',
    replace: '',
    layer: { file: FILE, titles: 'while it writes is replaced' },
  },
  {
    name: 'a notification that is no JSON ends the gateway',
    file: 'src/store/postgres/hints.ts',
    find: `  } catch {
    return null;
  }`,
    replace: `  } catch (thrown) {
    throw thrown;
  }`,
    layer: { file: TROUBLE, titles: 'a notification that no store has sent' },
  },
  {
    name: 'options in the URL replace those of the store',
    file: 'src/store/postgres/connection.ts',
    find: '  const settings: Readonly<Record<string, string>> = {',
    replace: `  if ((client as unknown as { connectionParameters: pg.ClientConfig }).connectionParameters.options) return;
  const settings: Readonly<Record<string, string>> = {`,
    layer: { file: URL, titles: 'never instead of them' },
  },
  {
    name: 'options in the URL take the time limits from the server',
    file: 'src/store/postgres/connection.ts',
    find: '    lock_timeout: String(Math.round(tryMs * 0.8)),',
    replace: '',
    layer: { file: URL, titles: 'leave the server its time limits' },
  },
  {
    name: 'a pooler that shares connections is not noticed',
    file: 'src/store/postgres/store.ts',
    find: 'await assertOwnConnection(client, this.#connecting, this.#deadlines);',
    replace: '',
    layer: { file: URL, titles: "is refused when it does not.*'transaction' }" },
  },
  {
    name: 'a new subscriber waits for a dump, and all writers for it',
    file: 'src/store/postgres/dialect.ts',
    find: 'yield* query(`SELECT pg_advisory_xact_lock(',
    replace: `yield* query('LOCK TABLE subscribers IN ACCESS EXCLUSIVE MODE');
    yield* query(\`SELECT pg_advisory_xact_lock(`,
    layer: { file: UPGRADES, titles: 'registered while a dump' },
  },
  {
    name: 'a new subscriber that waits for a stuck writer stops all writers',
    file: 'src/store/postgres/dialect.ts',
    find: 'const HOLD_WRITERS_MS = 500;',
    replace: 'const HOLD_WRITERS_MS = 50_000;',
    layer: { file: UPGRADES, titles: 'waits for a stuck writer' },
  },
  {
    name: 'a table that changed spoils prepared statements for ever',
    file: 'src/store/postgres/errors.ts',
    find: '/^(0A000|26000|42P05)/',
    replace: '/^(26000|42P05)/',
    layer: { file: UPGRADES, titles: 'spoils no prepared statement' },
  },
  {
    name: 'a statement that the server forgot is asked for under its name for ever',
    file: 'src/store/postgres/errors.ts',
    find: '/^(0A000|26000|42P05)/',
    replace: '/^(0A000|42P05)/',
    layer: { file: UPGRADES, titles: 'its connection has forgotten' },
  },
  {
    name: 'statements that do not fit their tables are not prepared anew',
    file: 'src/store/postgres/store.ts',
    find: 'if (reprepare) forgetPrepared();',
    replace: '',
    layer: { file: UPGRADES, titles: 'spoils no prepared statement' },
  },
  {
    name: 'an open store on PostgreSQL writes on after its schema was raised',
    file: 'src/store/postgres/transact.ts',
    find: 'if (this.#writes) assertNotNewer(Number(row?.schema ?? 0));',
    replace: '',
    layer: { file: POSTGRES, titles: 'newer program' },
  },
  {
    name: 'a raised schema is not looked at when it refuses a write',
    file: 'src/engine/store-health.ts',
    find: " || hasCode(error, 'store_newer')",
    replace: '',
    layer: { file: HEALTH, titles: 'a newer program has raised' },
  },
  {
    name: 'only the last four commands are known when they come again',
    file: 'src/lifecycle/session.ts',
    find: 'REMEMBERED_COMMANDS = 64',
    replace: 'REMEMBERED_COMMANDS = 4',
    layer: { file: SQLITE, titles: 'a command is known until' },
  },
  {
    name: 'a child that starts under an ended parent stays open',
    file: 'src/store/transactions/session-commands.ts',
    find: "if (conversation.kind === 'child' && facts.parentId) yield* assertOpen(ctx, facts.parentId);",
    replace: '',
    layer: { file: SQLITE, titles: 'a child cannot start under' },
  },
  {
    name: 'a child that starts while its parent ends stays open',
    file: 'src/store/transactions/session-commands.ts',
    find: 'ctx.dialect.forUpdate',
    replace: "''",
    layer: { file: POSTGRES, titles: 'a child that starts while' },
  },
  {
    name: 'a backup of SQLite begins anew whenever somebody writes',
    file: 'src/store/sqlite/backup.ts',
    find: "source.exec('BEGIN');",
    replace: '',
    layer: { file: 'test/store/backup.test.ts', titles: 'whatever is written meanwhile' },
  },
  {
    name: 'a backup of PostgreSQL is of as many moments as it has tables',
    file: 'src/store/postgres/backup.ts',
    find: 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
    replace: 'BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY',
    layer: { file: 'test/store/backup.test.ts', titles: 'of one moment' },
  },
  {
    name: 'a store is restored under a process that uses it',
    file: 'src/cli/commands/restore.ts',
    find: 'if (live !== undefined) {',
    replace: 'if (live === null) {',
    layer: { file: 'test/cli/backup.test.ts', titles: 'another process takes part' },
  },
  {
    name: 'another file at the path is taken for the one that is open',
    file: 'src/store/sqlite/database-file.ts',
    find: 'if (identityOf(database) !== this.#database || !this.#isOurs(changeOf(database)))',
    replace: 'if (!this.#isOurs(this.#changed))',
    layer: { file: FILE, titles: 'that is moved away' },
  },
  {
    name: 'what went into a file that was swapped is answered as kept',
    file: 'src/store/sqlite/writer.ts',
    find: "if (verdict === 'same' || (verdict === 'log' && this.#rescueLog())) {",
    replace: 'if (verdict !== null) {',
    layer: { file: FILE, titles: 'that is replaced by an older copy' },
  },
  {
    name: 'a log that was removed takes with it what was accepted',
    file: 'src/store/sqlite/writer.ts',
    find: "(verdict === 'log' && this.#rescueLog())",
    replace: "verdict === 'log'",
    layer: { file: FILE, titles: 'that lost its log' },
  },
  {
    name: 'a file that was swapped is still read',
    file: 'src/store/sqlite/writer.ts',
    find: 'this.#signal.replaced = true;',
    replace: '',
    layer: { file: FILE, titles: 'that is moved away' },
  },
  {
    name: 'a store that does not answer counts as well for longer than 2 s',
    file: 'src/engine/store-health.ts',
    find: 'const SLOW_MS = 1500;',
    replace: 'const SLOW_MS = 15_000;',
    layer: { file: HEALTH, titles: 'is bad after 1.5 s' },
  },
  {
    name: 'a store that takes no writes is not looked at',
    file: 'src/engine/store-health.ts',
    find: '          (thrown: unknown) => MoiraiError.wrap(thrown),',
    replace: '          () => null,',
    layer: { file: HEALTH, titles: 'is its code while no write is taken' },
  },
  {
    name: 'new work is accepted while nothing can be kept',
    file: 'src/turns/conversations.ts',
    find: 'this.#deps.health.assertWritable();',
    replace: '',
    layer: { file: 'test/gateway/api-backend.test.ts', titles: 'while the store takes no writes' },
  },
  {
    name: 'a store whose file was swapped is an internal error to clients',
    file: 'src/api/error-answer.ts',
    find: 'store_replaced: 503,',
    replace: '',
    layer: { file: 'src/api/error-answer.test.ts', titles: 'what a store in trouble says' },
  },
  {
    name: 'a gateway is ready whatever its store says',
    file: 'src/cli/gateway/host.ts',
    find: "state: state === 'ready' && problem !== null ? 'refusing' : state,",
    replace: 'state,',
    layer: { file: 'test/gateway/store-trouble.test.ts', titles: 'its database file is back after 5 s' },
  },
  {
    name: 'whether the store takes writes is found out by a read',
    file: 'src/engine/store-health.ts',
    find: ".write('probe', { instance })",
    replace: ".read('lastSeq', {})",
    layer: { file: HEALTH, titles: 'is its code while no write is taken' },
  },
  {
    name: 'a lost lease ends the process',
    file: 'src/cli/gateway/run-gateway.ts',
    find: "      end('again');",
    replace: "      end('restart');",
    layer: { file: 'test/gateway/process.test.ts', titles: 'a lease that ran out' },
  },
  {
    name: 'a gateway whose store is in trouble when it begins again gives up',
    file: 'src/cli/gateway/run-gateway.ts',
    find: 'if (kept.port === null || !isStoreTrouble(error)) throw error;',
    replace: 'if (kept.port !== null || !isStoreTrouble(error)) throw error;',
    layer: { file: 'test/gateway/process.test.ts', titles: 'silent while that begins' },
  },
  {
    name: 'what a gone process runs is not counted',
    file: 'src/engine/instance.ts',
    find: "(state === 'dead' || expired)",
    replace: "state === 'dead' && !expired",
    layer: { file: 'test/api/watching.test.ts', titles: 'in the store and in no process' },
  },
  {
    name: 'claims that no process knows of are not counted',
    file: 'src/engine/instance.ts',
    find: 'strays.length + claims.length);',
    replace: 'strays.length);',
    layer: { file: 'test/api/watching.test.ts', titles: 'in the store and in no process' },
  },
  {
    name: 'a lost lease ends the gateway while nothing can be written',
    file: 'src/engine/store-health.ts',
    find: 'while (!this.#stopped && (await this.check()) !== null) {',
    replace: 'while (this.#stopped) {',
    layer: { file: HEALTH, titles: 'keeps a lost lease waiting' },
  },
  {
    name: 'the log is kept for ever, whatever the retention says',
    file: 'src/engine/upkeep.ts',
    find: 'const olderThanMs = this.#options.retention?.events ?? null;',
    replace: 'const olderThanMs: number | null = null;',
    layer: { file: 'test/scenarios/retention.test.ts', titles: 'on sqlite.*older than the log goes back' },
  },
  {
    name: 'doctor does not know of the last backup',
    file: 'src/store/transactions/backups.ts',
    find: "SELECT value FROM meta WHERE name = 'backup'",
    replace: "SELECT value FROM meta WHERE name = 'none'",
    layer: { file: 'test/cli/backup.test.ts', titles: 'doctor names the last backup' },
  },
  {
    name: 'the age of the oldest reply is not shown',
    file: 'src/api/metrics.ts',
    find: "(await this.#parts.engine.store.read('oldestDelivery', {})) ?? 0",
    replace: '0',
    layer: { file: 'test/api/watching.test.ts', titles: 'how long the oldest reply' },
  },
  {
    name: 'the age of the oldest reply is that of the newest',
    file: 'src/store/transactions/deliveries.ts',
    find: '"SELECT min(created_at) FROM deliveries WHERE state = \'queued\'"',
    replace: '"SELECT max(created_at) FROM deliveries WHERE state = \'queued\'"',
    layer: { file: SQLITE, titles: 'has the age of the oldest' },
  },
  {
    name: 'a process that is frozen while it waits to write keeps everybody from writing',
    file: 'src/store/sqlite/turnstile.ts',
    find: 'worksWithin(this.#passedBy ? 0 : TURN_MS,',
    replace: 'worksWithin(this.#maxWaitMs,',
    layer: { file: 'src/store/sqlite/turnstile.test.ts', titles: 'frozen in it' },
  },
];

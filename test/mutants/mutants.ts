/** A test that failed, by its title: a file that does not load has found nothing. */
const FAILED_TEST = /^ *FAIL .* > /m;

/** The layers of proof, each as a command that must fail when the code is wrong, and how its finding looks. */
export const LAYERS = {
  model: { args: ['test/simulation/main.ts', '--seeds', '0', '--commands', '25000'], finding: /Property failed/ },
  simulation: {
    args: ['test/simulation/main.ts', '--seeds', '250', '--commands', '0', '--jobs', '1', '--stop'],
    finding: /^seed \d+:/m,
  },
  'power cut': {
    args: ['test/power-cut/main.ts', '--workload', 'store', '--points', '25', '--commits', '800'],
    finding: /crash points with violations\n\s+e\.g\./,
  },
  'event sequence': {
    args: ['VITEST', 'run', 'test/store/event-sequence.test.ts', '-t', 'PostgreSQL'],
    finding: FAILED_TEST,
  },
  deletion: {
    args: ['VITEST', 'run', 'test/store/sqlite.contract.test.ts', '-t', 'deleted|pruning|open session without a row'],
    finding: FAILED_TEST,
  },
  memory: {
    args: ['VITEST', 'run', 'test/gateway/memory.test.ts', 'test/gateway/memory-review.test.ts'],
    finding: FAILED_TEST,
  },
  jobs: {
    args: ['VITEST', 'run', 'test/store/sqlite.contract.test.ts', '-t', 'a due tick|told from outside'],
    finding: FAILED_TEST,
  },
  queue: {
    args: ['VITEST', 'run', 'test/scenarios/store-trouble.test.ts'],
    finding: FAILED_TEST,
  },
  'postgres trouble': {
    args: ['VITEST', 'run', 'test/store/postgres-trouble.test.ts', '-t', 'unknown outcome|wait for many conversations'],
    finding: FAILED_TEST,
  },
  'newer schema': {
    args: ['VITEST', 'run', 'test/store/sqlite.contract.test.ts', '-t', 'newer program'],
    finding: FAILED_TEST,
  },
  replies: {
    args: ['VITEST', 'run', 'test/store/sqlite.contract.test.ts', '-t', 'a reply'],
    finding: FAILED_TEST,
  },
  backups: {
    args: ['VITEST', 'run', 'test/store/backup.test.ts', '-t', 'sqlite restored into postgres'],
    finding: FAILED_TEST,
  },
  erasure: {
    args: ['VITEST', 'run', 'test/store/erasure.test.ts', '-t', 'sqlite'],
    finding: FAILED_TEST,
  },
  speakers: {
    args: ['VITEST', 'run', 'test/gateway/speakers.test.ts', '-t', 'shut out while it waits'],
    finding: FAILED_TEST,
  },
  access: {
    args: ['VITEST', 'run', 'src/people/access.test.ts'],
    finding: FAILED_TEST,
  },
  'api keys': {
    args: ['VITEST', 'run', 'test/api/keys.test.ts', '-t', 'a key with the scope chat'],
    finding: FAILED_TEST,
  },
  commands: {
    args: ['VITEST', 'run', 'src/config/command-pattern.test.ts'],
    finding: FAILED_TEST,
  },
  'closed gates': {
    args: ['VITEST', 'run', 'test/plugins/gates.test.ts', '-t', 'has to be declared'],
    finding: FAILED_TEST,
  },
  cron: {
    args: ['VITEST', 'run', 'test/gateway/cron.test.ts'],
    finding: FAILED_TEST,
  },
  sentences: {
    args: [
      ...[
        'VITEST',
        'run',
        'test/gateway/parked.test.ts',
        'test/gateway/turns.test.ts',
        'test/gateway/commands.test.ts',
      ],
      ...['-t', 'longer ago|background is told'],
    ],
    finding: FAILED_TEST,
  },
  acceptance: {
    args: ['VITEST', 'run', 'test/gateway/api-backend.test.ts'],
    finding: FAILED_TEST,
  },
  approvals: {
    args: ['VITEST', 'run', 'test/store/sqlite.contract.test.ts', '-t', 'what agents ask people'],
    finding: FAILED_TEST,
  },
  'two gateways': {
    args: ['VITEST', 'run', 'test/gateway/two-gateways.test.ts', '-t', 'SQLite.*(stopped by a command|/undo spares)'],
    finding: FAILED_TEST,
  },
  'database file': {
    args: ['VITEST', 'run', 'test/store/sqlite-file-trouble.test.ts', '-t', 'under an open store'],
    finding: FAILED_TEST,
  },
  observers: {
    args: ['VITEST', 'run', 'test/gateway/observers.test.ts', 'src/log/logger.test.ts'],
    finding: FAILED_TEST,
  },
  formatting: {
    args: ['VITEST', 'run', 'test/fuzz/fuzz.test.ts', '-t', 'cannot be formatted'],
    finding: FAILED_TEST,
  },
  expressions: {
    args: ['VITEST', 'run', 'test/fuzz/expressions.test.ts', '-t', 'every regular expression'],
    finding: FAILED_TEST,
  },
} as const;

export type Layer = keyof typeof LAYERS;

/** One deliberate bug: the text of one place, replaced. */
export interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly find: string;
  readonly replace: string;
  /** Who must catch it: a layer of the default run, or the tests of one file whose titles match. */
  readonly layer: Layer | TestsOf;
}

interface TestsOf {
  readonly file: string;
  readonly titles: string;
}

/** What to run to catch a mutant, and how a finding looks. */
export function layerOf({ layer }: Mutant): { args: readonly string[]; finding: RegExp } {
  const { args, finding } =
    typeof layer === 'string'
      ? LAYERS[layer]
      : { args: ['VITEST', 'run', layer.file, '-t', layer.titles], finding: FAILED_TEST };
  // One failure is enough.
  return { args: args[0] === 'VITEST' ? [...args, '--bail', '1'] : args, finding };
}

export const CENTRE_MUTANTS: readonly Mutant[] = [
  {
    name: 'no fence check',
    file: 'src/lifecycle/transition.ts',
    find: "if (!('epoch' in command) || command.epoch === null) return;",
    replace: 'if (command !== null) return;',
    layer: 'model',
  },
  {
    name: 'no lease check',
    file: 'src/store/transactions/sessions.ts',
    find: "lease?.data !== 'up' || (lease.leaseUntil ?? 0) <= ctx.leaseNow",
    replace: "lease?.data === 'nobody'",
    layer: 'simulation',
  },
  {
    name: 'a lease that ran out can be renewed',
    file: 'src/store/transactions/liveness.ts',
    find: "WHERE id = ? AND state = 'up' AND lease_until > ? RETURNING id`",
    replace: "WHERE id = ? AND state = 'up' AND lease_until > ? - 1000000000 RETURNING id`",
    layer: 'model',
  },
  {
    name: 'takeover without a new epoch',
    file: 'src/lifecycle/steps.ts',
    find: `      owner: context.instance,
      epoch: session.epoch + 1,`,
    replace: `      owner: context.instance,
      epoch: session.epoch,`,
    layer: 'model',
  },
  {
    name: 'acknowledge before deliver',
    file: 'src/events/event-delivery.ts',
    find: '    const replayed: number[] = [];\n',
    replace: `    const replayed: number[] = [];
    await this.#acknowledge(lane, work, { upTo: lane.upTo, replayed });
`,
    layer: 'simulation',
  },
  {
    name: 'an end without its lane',
    file: 'src/store/transactions/record.ts',
    find: 'except !== subscriber.name && listens(subscriber, draft.type);',
    replace: "draft.type !== 'session:end' && except !== subscriber.name && listens(subscriber, draft.type);",
    layer: 'model',
  },
  {
    name: 'no re-adoption after a lost reply',
    file: 'src/engine/instance.ts',
    find: 'if (strays.length + claims.length === 0) return 0;',
    replace: 'if (strays.length + claims.length >= 0) return 0;',
    layer: 'simulation',
  },
  {
    name: 'a turn begun by a lost reply in a session held otherwise',
    file: 'src/engine/holdings.ts',
    find: '(running ? this.#begun.get(id) !== epoch : !this.#held.has(id))',
    replace: '!this.#held.has(id)',
    layer: 'queue',
  },
  {
    name: 'a row that names this instance counts as begun by it',
    file: 'src/engine/holdings.ts',
    find: 'if (begun && session.owner === this.#instance)',
    replace: 'if (session.owner === this.#instance)',
    layer: 'queue',
  },
  {
    name: 'a turn that another process ended takes its attached session along',
    file: 'src/engine/engine.ts',
    find: '? !(await this.#owns(hold).catch(() => true))',
    replace: '? true',
    layer: 'queue',
  },
  {
    name: 'NORMAL instead of FULL',
    file: 'src/store/sqlite/connection.ts',
    find: "if (mode === 'wal' && synchronous === 2) return;",
    replace: "db.exec('PRAGMA synchronous = NORMAL');\n  if (mode === 'wal' && synchronous === 2) return;",
    layer: 'power cut',
  },
  {
    name: 'after a commit that may be lost all others may be',
    file: 'src/store/sqlite/connection.ts',
    find: 'if (synced === this.#synced) return;',
    replace: 'if (synced) return;',
    layer: 'power cut',
  },
  {
    name: "the reaper takes a living owner's sessions",
    file: 'src/store/transactions/reaping.ts',
    find: "WHERE i.id IS NULL OR i.state = 'dead' ORDER BY",
    replace: "WHERE i.id IS NULL OR i.state = 'dead' OR i.state = 'up' ORDER BY",
    layer: 'model',
  },
  {
    name: 'attached sessions of the dead are only released',
    file: 'src/store/transactions/reaping.ts',
    find: 'if (loaded.session.attached) {',
    replace: 'if (loaded.session.attached && loaded.turns.length > 1000) {',
    layer: 'model',
  },
  {
    name: 'a running turn does not hold the deadline',
    file: 'src/lifecycle/deadline.ts',
    find: "turn.state === 'queued' || turn.state === 'running'",
    replace: "turn.state === 'queued'",
    layer: 'model',
  },
  {
    name: 'system activity moves the deadline',
    file: 'src/lifecycle/steps.ts',
    find: "if (by === 'user') return { lastActivityAt",
    replace: "if (by === 'user' || by === 'system') return { lastActivityAt",
    layer: 'model',
  },
  {
    name: 'a redelivered message is a second turn',
    file: 'src/store/transactions/conversations.ts',
    find: 'if (known !== undefined) return known;',
    replace: 'if (known !== undefined && !known.duplicate) return known;',
    layer: 'model',
  },
  {
    name: 'messages that wait are dropped at a reset',
    file: 'src/lifecycle/steps.ts',
    find: "if (turn.state === 'queued' && successorId !== null) return",
    replace: "if (turn.state === 'queued' && successorId === '') return",
    layer: 'model',
  },
  {
    name: 'a stuck turn is resumed for ever',
    file: 'src/lifecycle/steps.ts',
    find: 'const stuck = cuts >= context.stuckAfter;',
    replace: 'const stuck = cuts >= context.stuckAfter + 1000;',
    layer: 'model',
  },
  {
    name: 'a message to a session another instance holds is refused',
    file: 'src/store/transactions/conversations.ts',
    find: '&& owner === args.context.instanceId;',
    replace: '&& owner !== null;',
    layer: 'model',
  },
  {
    name: 'a lost claim is forgotten',
    file: 'src/queue/queue-worker.ts',
    find: 'const again = this.#claimToken !== null;',
    replace: 'const again = this.#claimToken === undefined;',
    layer: 'queue',
  },
  {
    name: 'the claims of the dead are not released',
    file: 'src/store/transactions/queue.ts',
    find: '  yield* query(RELEASE, instanceId);',
    replace: "  yield* query(RELEASE, instanceId.concat('-'));",
    layer: 'model',
  },
  {
    name: 'a claim of replies without a token',
    file: 'src/store/transactions/queue.ts',
    find: 'SELECT key FROM lanes WHERE queue = ? AND key = ? AND token = ? ${',
    replace: 'SELECT key FROM lanes WHERE queue = ? AND key = ? AND (token = ? OR token IS NOT NULL) ${',
    layer: 'replies',
  },
  {
    name: 'a settlement is not repeated',
    file: 'src/queue/retry-until-known.ts',
    find: 'if (deps.stopped() || hopeless || !isStoreTrouble(error)) throw error;',
    replace: 'if (!deps.stopped() || hopeless || !isStoreTrouble(error)) throw error;',
    layer: 'queue',
  },
  {
    name: 'a claim that its process lost track of is not released',
    file: 'src/engine/instance.ts',
    find: 'rows.claims.filter((claim) => !this.claims.knows(claim))',
    replace: 'rows.claims.filter((claim) => this.claims.knows(claim) && claim.token === null)',
    layer: 'queue',
  },
  {
    name: 'a platform that cannot be reached counts as one that refuses',
    file: 'src/outbound/outbox.ts',
    find: 'const counts = !isUnreachable(thrown);',
    replace: 'const counts = !isUnreachable(thrown) || waits >= 0;',
    layer: 'queue',
  },
  {
    name: 'two instances take the same lane',
    file: 'src/store/transactions/queue.ts',
    find: "const FREE = 'WHERE queue = ? AND token IS NULL AND';",
    replace: "const FREE = 'WHERE queue = ? AND';",
    layer: 'queue',
  },
  {
    name: 'a turn whose end the store refuses stays running',
    file: 'src/engine/engine.ts',
    find: 'return await this.settle(write);',
    replace: 'return await write(this.commandContext());',
    layer: 'queue',
  },
  {
    name: 'a commit without an answer counts as not done',
    file: 'src/store/postgres/errors.ts',
    find: "return state === '' || ENDED.test(state)",
    replace: 'return ENDED.test(state)',
    layer: 'postgres trouble',
  },
  {
    name: 'a heartbeat waits behind work',
    file: 'src/store/postgres/plan.ts',
    find: "connections: 'heartbeats', tryMs: ms",
    replace: 'connections, tryMs: ms',
    layer: 'postgres trouble',
  },
  {
    name: 'an open store writes on after its schema was raised',
    file: 'src/store/sqlite/writer.ts',
    find: 'this.#connection.run(refuseNewer());',
    replace: '',
    layer: 'newer schema',
  },
  {
    name: 'the log is read in the order of writing, not of commits',
    file: 'src/store/postgres/dialect.ts',
    find: "seqColumn: 'seq'",
    replace: "seqColumn: 'no'",
    layer: 'event sequence',
  },
  {
    name: 'pruning what another session continues',
    file: 'src/store/transactions/deletion.ts',
    find: 'WHERE c.parent_id = s.id AND',
    replace: 'WHERE c.parent_id = s.key AND',
    layer: 'deletion',
  },
  {
    name: 'the number of the newest transcript row is used again',
    file: 'src/store/sqlite/dialect.ts',
    find: 'AND no < (SELECT max(no) FROM messages)',
    replace: 'AND no <= (SELECT max(no) FROM messages)',
    layer: 'deletion',
  },
  {
    name: 'an open session is removed without its end',
    file: 'src/store/transactions/deletion.ts',
    find: "yield* apply(ctx, scope, yield* withTurns(loaded, 'all'), [end]);",
    replace: 'if (end === null) yield* apply(ctx, scope, loaded, [end]);',
    layer: 'deletion',
  },
  {
    name: 'memory: pruning what nobody was told of',
    file: 'src/store/transactions/deletion.ts',
    find: 'AND l.key = s.key AND e.session_id = s.id',
    replace: 'AND l.key = s.key AND e.session_id = s.key',
    layer: 'deletion',
  },
  {
    name: 'memory: what a session was told is not kept',
    file: 'src/memory/session-memory.ts',
    find: 'if (block !== null) await keep(',
    replace: "if (block === '') await keep(",
    layer: 'memory',
  },
  {
    name: 'memory: a review that found the model down counts as done',
    file: 'src/memory/memory-review.ts',
    find: 'if (!isModelDown(thrown)) throw thrown;',
    replace: 'if (!isModelDown(thrown)) throw thrown;\n    if (thrown !== null) return null;',
    layer: 'memory',
  },
  {
    name: 'memory: a terminal does not register who is to hear of its end',
    file: 'src/memory/memory-manager.ts',
    find: 'dispatcher.register(subscriber)',
    replace: 'undefined',
    layer: 'memory',
  },
  {
    name: 'cron: a tick is taken by everybody who finds it due',
    file: 'src/cron/job-store.ts',
    find: 'if (!(yield* moveOn(ctx, args)) || run !== undefined) return null;',
    replace: 'if (!(yield* moveOn(ctx, args)) && run === null) return null;',
    layer: 'jobs',
  },
  {
    name: 'cron: a run joins the one before it',
    file: 'src/cron/job-store.ts',
    find: "if (open !== undefined) return { type: 'busy', sessionId: open };",
    replace: "if (open === null) return { type: 'busy', sessionId: '' };",
    layer: 'jobs',
  },
  {
    name: 'cron: what was told is forgotten when the session ends',
    file: 'src/store/transactions/external-notes.ts',
    find: 'at > answeredAt',
    replace: 'at < 0',
    layer: 'jobs',
  },
  {
    name: 'cron: every time that was missed is made up for',
    file: 'src/cron/scheduler.ts',
    find: 'nextAt: nextTickOf(job, now),',
    replace: 'nextAt: nextTickOf(job, tickAt),',
    layer: 'cron',
  },
  {
    name: 'cron: a run that failed is complete',
    file: 'src/cron/job-runs.ts',
    find: "(await over)?.outcome === 'done'",
    replace: "(await over)?.outcome !== 'timeout'",
    layer: 'cron',
  },
  {
    name: 'cron: a gateway that drains begins jobs',
    file: 'src/gateway/gateway.ts',
    find: 'await this.cron.pause();',
    replace: '',
    layer: 'cron',
  },
  {
    name: 'cron: a run makes jobs',
    file: 'src/cron/schedule-port.ts',
    find: "if (session.kind === 'cron') throw",
    replace: "if (session.kind === 'batch') throw",
    layer: 'cron',
  },
  {
    name: 'who observes can break what is observed',
    file: 'src/turns/observer.ts',
    find: "log.warn('an observer failed', { error });",
    replace: 'throw error;',
    layer: 'observers',
  },
  {
    name: "a person's words in a span",
    file: 'src/tracing/turn-traces.ts',
    find: "'moirai.platform': platform, 'moirai.kind': kind },",
    replace: "'moirai.platform': platform, 'moirai.kind': kind, text: turn.text },",
    layer: 'observers',
  },
  {
    name: 'a reply outside the trace of its message',
    file: 'src/tracing/turn-traces.ts',
    find: '...at(turnId ?? id), ...elapsed },',
    replace: '...at(id), ...elapsed },',
    layer: 'observers',
  },
  {
    name: 'marks of direction pass into the log',
    file: 'src/log/logger.ts',
    find: '\\u2028\\u2029]|\\p{Cf}/gu',
    replace: '\\u2028\\u2029]/gu',
    layer: 'observers',
  },
  {
    name: 'a long text is shortened before its secrets are hidden',
    file: 'src/log/redact.ts',
    find: 'rest.replaceAll(secret, HIDDEN), text);',
    replace: 'rest.replaceAll(secret, HIDDEN), shortened(text));',
    layer: 'observers',
  },
  {
    name: 'a command that comes again is done again',
    file: 'src/turns/conversations.ts',
    find: 'if (known !== null) return this.#repeat(message, known);',
    replace: "if (known?.ref === '') return this.#repeat(message, known);",
    layer: 'acceptance',
  },
  {
    name: 'the key of a message is remembered for ever',
    file: 'src/store/transactions/conversations.ts',
    find: 'turn.createdAt < ctx.now - args.refTtlMs',
    replace: 'turn.createdAt < args.refTtlMs - ctx.now',
    layer: 'acceptance',
  },
  {
    name: 'a reply that arrived is forgotten with the lease',
    file: 'src/outbound/outbox.ts',
    find: 'this.#options.arrived.note(delivery.id, messageId);',
    replace: '',
    layer: 'queue',
  },
  {
    name: 'the processes of a restored store count as alive',
    file: 'src/store/transactions/restoring.ts',
    find: "lost_at = ? WHERE state = 'up'",
    replace: "lost_at = ? WHERE state = 'nowhere'",
    layer: 'backups',
  },
  {
    name: 'a heading is read by an expression that backtracks',
    file: 'src/markdown/lines.ts',
    find: '/^ {0,3}(#{1,6})(?=\\s)/',
    replace: '/^ {0,3}(#{1,6})\\s+(?:.*?)(?:\\s+#+)?\\s*$/',
    layer: 'expressions',
  },
  {
    name: 'the log keeps the words of a deleted session',
    file: 'src/store/transactions/erasure.ts',
    find: 'const silent = withoutWords(event);',
    replace: 'const silent = event;',
    layer: 'erasure',
  },
  {
    name: 'an older copy over the database is taken for it',
    file: 'src/store/sqlite/database-file.ts',
    find: 'marks === null || marks.heartbeats < this.#inFile ||',
    replace: 'marks === null ||',
    layer: 'database file',
  },
  {
    name: 'a commit that could not be synced is answered as if nothing had happened',
    file: 'src/store/sqlite/writer.ts',
    find: "(progress === 'committing' && error.code === 'store_io')",
    replace: "(progress === 'committing' && error.code === 'store_url')",
    layer: 'database file',
  },
  {
    name: 'an API key sees the conversations of others',
    file: 'src/api/key-scope.ts',
    find: "access === 'see' && caller.scopes.includes('read')",
    replace: "access === 'see'",
    layer: 'api keys',
  },
  {
    name: 'an option is taken for an argument of an allowed command',
    file: 'src/config/command-pattern.ts',
    find: "return !word.startsWith('-');",
    replace: "return word !== '-';",
    layer: 'commands',
  },
  {
    name: 'a closed gate need not be declared',
    file: 'src/extensions/plugins/live-plugin.ts',
    find: 'if (missing === undefined) return;',
    replace: "if (missing !== '') return;",
    layer: 'closed gates',
  },
  {
    name: 'a message takes a parked session away from its operator',
    file: 'src/lifecycle/arrival.ts',
    find: 'if (isParked(session)) return null;',
    replace: '',
    layer: 'model',
  },
  {
    name: 'what was interrupted too long ago is dropped without a word',
    file: 'src/turns/resumed-turn.ts',
    find: 'deliveries: notice(session,',
    replace: 'deliveries: ((..._: unknown[]) => [])(session,',
    layer: 'sentences',
  },
  {
    name: 'background work ends with the session that asked for it',
    file: 'src/store/transactions/apply.ts',
    find: 'outlivesParent(loaded.session) &&',
    replace: 'false &&',
    layer: 'sentences',
  },
  {
    name: 'a later answer to a question of an agent counts too',
    file: 'src/people/approval-store.ts',
    find: 'if (asked.decision !== null) return {',
    replace: "if (asked.decision === 'expired') return {",
    layer: 'approvals',
  },
  {
    name: 'a turn that another gateway runs cannot be stopped',
    file: 'src/turns/turn-control.ts',
    find: "if (kind === 'stop' && isToldBy(value))",
    replace: "if (kind === 'halt' && isToldBy(value))",
    layer: 'two gateways',
  },
  {
    name: '/undo takes back what was said after it',
    file: 'src/commands/turn-commands.ts',
    find: 'const to = newer === undefined ? rows.at(-1)?.position : newer.position - 1;',
    replace: 'const to = newer?.position;',
    layer: 'two gateways',
  },
  {
    name: 'the session of a one-shot request stays open after its turn',
    file: 'src/store/transactions/turns.ts',
    find: "isOneShot(session) ? 'api_close' :",
    replace: 'isOneShot(session) ? null :',
    layer: 'acceptance',
  },
  {
    name: 'one damaged row keeps all others from being read',
    file: 'src/store/table.ts',
    find: '    return otherwise;\n',
    replace: '    throw new SyntaxError(text);\n',
    layer: 'replies',
  },
  {
    name: 'the processes that died with a reply are not counted',
    file: 'src/store/transactions/queue.ts',
    find: 'interrupted = interrupted + 1 ',
    replace: 'interrupted = interrupted ',
    layer: 'replies',
  },
  {
    name: 'a reply that cannot be formatted is not sent',
    file: 'src/platforms/telegram/send.ts',
    find: "  } catch {\n    return '';\n  }",
    replace: '  } catch (thrown) {\n    throw thrown;\n  }',
    layer: 'formatting',
  },
  {
    name: 'whoever started a shared session decides whether the others may talk',
    file: 'src/turns/next-turn.ts',
    find: 'deps.admits(session, next)',
    replace: 'deps.admits(session, { ...next, userId: session.userId })',
    layer: 'speakers',
  },
  {
    name: 'who asks for a command may allow it, admin or not',
    file: 'src/people/access.ts',
    find: "(approvals === 'asker' && decision !== 'always')",
    replace: "decision !== 'always'",
    layer: 'access',
  },
  {
    name: 'what somebody told in private is recalled in a group',
    file: 'src/memory/scope.ts',
    find: "if (conversation.type !== 'dm') return",
    replace: "if (conversation.type !== 'dm' && conversation.participant === undefined) return",
    layer: 'memory',
  },
];

import type { Mutant } from './mutants.ts';

const POISON = 'test/gateway/poison.test.ts';
const SET_ASIDE = 'test/gateway/set-aside.test.ts';
const RUNAWAYS = 'test/extensions/runaways.test.ts';

/** Deliberate bugs in texts, rows and files that cannot be processed. */
export const POISON_MUTANTS: readonly Mutant[] = [
  {
    name: 'a row of a table is read by an expression that backtracks',
    file: 'src/markdown/lines.ts',
    find: `  const [first = '', ...others] = line.trim().replace(/^\\|/, '').split('|');
  return /^:?-+:?$/.test(first.trim()) && others.every((cell) => /^:?-*:?$/.test(cell.trim()));`,
    replace: '  return /^\\s*\\|?\\s*:?-+:?\\s*(\\|\\s*:?-*:?\\s*)*$/.test(line);',
    layer: { file: 'src/platforms/telegram/render.test.ts', titles: 'a row of a table' },
  },
  {
    name: 'a comment of a page is looked for by an expression that backtracks',
    file: 'src/agent/tools/page-text.ts',
    find: 'const text = linesOf(decoded(withoutTags(html)));',
    replace: "const text = linesOf(decoded(withoutTags(html.replace(/<!--[\\s\\S]*?-->/g, ''))));",
    layer: { file: 'test/agent/tools-web.test.ts', titles: 'made to take long' },
  },
  {
    name: 'a message that can never be taken is brought for ever',
    file: 'src/inbound/reception.ts',
    find: "if (error.code === 'bad_input') return true;",
    replace: '',
    layer: { file: POISON, titles: 'messages that can never be taken' },
  },
  {
    name: 'a message that a gate empties is brought for ever',
    file: 'src/inbound/reception.ts',
    find: 'if (!this.#isHopeless(message.id, error)) throw thrown;',
    replace: "if (message.text.trim() !== '' || !this.#isHopeless(message.id, error)) throw thrown;",
    layer: { file: POISON, titles: 'a gate rewrites to nothing' },
  },
  {
    name: 'a message of any length is read',
    file: 'src/inbound/reception.ts',
    find: 'if (message.text.length > LONGEST_MESSAGE) {',
    replace: 'if (message.text.length < 0) {',
    layer: { file: POISON, titles: 'too long to be read' },
  },
  {
    name: 'a message whose taking fails is brought for ever',
    file: 'src/inbound/reception.ts',
    find: 'return failures >= MOST_FAILURES;',
    replace: 'return failures < 0;',
    layer: { file: SET_ASIDE, titles: 'a message of a platform' },
  },
  {
    name: 'files are fetched before their message is durable',
    file: 'src/inbound/reception.ts',
    find: '    const text = messageText(message, isSharedKey(conversation.key));\n',
    replace: `    const text = messageText(message, isSharedKey(conversation.key));
    for (const { ref } of message.files)
      await this.#platform.openFile?.(ref, 20_000_000, AbortSignal.timeout(60_000)).catch(() => undefined);
`,
    layer: { file: POISON, titles: 'a file that is slow to come' },
  },
  {
    name: 'the next messages are asked for when the turns of the last ones are over',
    file: 'src/inbound/reception.ts',
    find: '    await this.#answer(message, result);\n',
    replace: "    await this.#answer(message, result);\n    if (result.type === 'turn') await result.channel.ended;\n",
    layer: { file: POISON, titles: 'a sticker that is slow' },
  },
  {
    name: 'a pipe in the workspace holds a thread until somebody writes to it',
    file: 'src/agent/tools/file-tools.ts',
    find: 'flags | constants.O_NONBLOCK,',
    replace: 'flags,',
    layer: { file: 'test/agent/tools-files.test.ts', titles: 'pipes and sockets' },
  },
  {
    name: 'received files take as much of the disk as people send',
    file: 'src/inbound/received-files.ts',
    find: 'await makeRoom(join(workspace, FOLDER), this.#deps.maxReceivedBytes);',
    replace: '',
    layer: { file: 'test/gateway/workspaces.test.ts', titles: 'makes room' },
  },
  {
    name: 'the newest received file makes room for the oldest ones',
    file: 'src/people/bounded-folder.ts',
    find: 'a.changedMs - b.changedMs',
    replace: 'b.changedMs - a.changedMs',
    layer: { file: 'src/people/bounded-folder.test.ts', titles: 'make room' },
  },
  {
    name: 'a host process that is killed in a reload ends the gateway',
    file: 'src/extensions/hooks/handler-pool.ts',
    find: '    await Promise.all([...this.#busy].map(({ gone }) => gone));',
    replace: `    const reasons = await Promise.all([...this.#busy].map(({ gone }) => gone));
    if (reasons.some((why) => why.includes('lost'))) throw new TypeError('its process is lost');`,
    layer: { file: RUNAWAYS, titles: 'a hook that is at work and plugins go on' },
  },
  {
    name: 'what a hook writes without an end of line is kept whole',
    file: 'src/extensions/host/host-worker.ts',
    find: "tooLong: () => this.kill('wrote 8 MB to its channel without an end of line, and was killed'),",
    replace: '',
    layer: { file: RUNAWAYS, titles: 'to its channel without an end of line' },
  },
  {
    name: 'what a hook started in another session outlives its handler',
    file: 'src/extensions/host/host-worker.ts',
    find: `    killAll([-pid]);
    sweep(this.#number);`,
    replace: '    killAll([-pid]);',
    layer: { file: RUNAWAYS, titles: 'is killed when its handler is done' },
  },
  {
    name: 'what a hook started in another session outlives the gateway',
    file: 'src/extensions/host/process-reaper.ts',
    find: 'victims=$(marked "$1")',
    replace: 'victims=',
    layer: { file: 'test/hooks/trouble.test.ts', titles: 'outlives a gateway that was killed' },
  },
  {
    name: 'the start waits for a plugin that hangs',
    file: 'src/extensions/plugins/plugins.ts',
    find: '    await plugins.#folder.look();\n    return plugins;',
    replace: '    await plugins.#folder.look();\n    await plugins.#firstLoads();\n    return plugins;',
    layer: { file: 'test/gateway/extensions.test.ts', titles: 'while a plugin hangs' },
  },
  {
    name: 'a broken plugin that should bring the memory refuses the start',
    file: 'src/extensions/plugins/plugins.ts',
    find: 'return this.#found.length === 0 ? null :',
    replace: 'return find() === undefined ? null :',
    layer: { file: 'test/gateway/extensions.test.ts', titles: 'starts with a memory whose plugin is broken' },
  },
  {
    name: 'a reply whose row cannot be read is tried for ever',
    file: 'src/outbound/outbox.ts',
    find: 'if (delivery !== undefined && isUnreadable(delivery.target)) {',
    replace: 'if (delivery === undefined) {',
    layer: { file: SET_ASIDE, titles: 'a row that cannot be read .* a reply' },
  },
  {
    name: 'a job whose row cannot be read is run',
    file: 'src/cron/scheduler.ts',
    find: "if (isUnreadable(job.target)) return 'its row';",
    replace: '',
    layer: { file: SET_ASIDE, titles: 'which is paused' },
  },
  {
    name: 'a reply whose markup Telegram refuses is not sent',
    file: 'src/platforms/telegram/send.ts',
    find: "if (form.formatted && isRefusal(thrown, /can't parse|unsupported start tag/i)) return { ...form, formatted: false };",
    replace: '',
    layer: { file: 'test/platforms/telegram/sending.test.ts', titles: 'for its markup goes as it was written' },
  },
  {
    name: 'a reply that our own code cannot send is tried twelve times',
    file: 'src/outbound/outbox.ts',
    find: 'if (isDefect(thrown) && attempts + 1 >= DEFECT_ATTEMPTS) return',
    replace: 'if (isDefect(thrown) && attempts + 1 >= MAX_ATTEMPTS) return',
    layer: { file: SET_ASIDE, titles: 'a reply, whose person is told' },
  },
  {
    name: 'nobody is told of a reply that is passed over',
    file: 'src/outbound/outbox.ts',
    find: 'const outcome = withNotice(settlement.outcome, delivery);',
    replace: 'const { outcome } = settlement;',
    layer: { file: SET_ASIDE, titles: 'a reply, whose person is told' },
  },
  {
    name: 'a turn that cannot be begun is tried for ever',
    file: 'src/turns/turns.ts',
    find: 'const turnId = await this.#failedStarts.note(sessionId, error);',
    replace: 'const turnId = null;',
    layer: { file: SET_ASIDE, titles: 'a turn, whose person is told' },
  },
  {
    name: 'a turn is given up for the failures of the one before it',
    file: 'src/turns/failed-starts.ts',
    find: '    this.#failures.delete(sessionId);\n    return this.#giveUp',
    replace: '    return this.#giveUp',
    layer: { file: SET_ASIDE, titles: 'a turn, whose person is told' },
  },
  {
    name: 'a tick that cannot be started is tried for ever',
    file: 'src/cron/scheduler.ts',
    find: 'if (isDefect(error) && tick.attempts + 1 >= MOST_ATTEMPTS)',
    replace: 'if (isDefect(error) && tick.attempts < 0)',
    layer: { file: SET_ASIDE, titles: 'whose next one is run' },
  },
  {
    name: 'an event that cannot be read is passed over without a trace',
    file: 'src/events/event-delivery.ts',
    find: 'for (const no of lane.unreadable) await this.#passOver(no, work);',
    replace: '',
    layer: { file: SET_ASIDE, titles: 'an event whose row' },
  },
  {
    name: 'a damaged subscriber keeps everybody from writing',
    file: 'src/store/transactions/sessions.ts',
    find: 'const patterns = PATTERNS.decode(json);',
    replace: 'const patterns = JSON.parse(json);',
    layer: { file: 'test/store/sqlite.contract.test.ts', titles: 'keeps nobody from writing' },
  },
  {
    name: 'JSON of another kind is taken for a row that can be read',
    file: 'src/store/table.ts',
    find: 'return isWhole(value) ? value : otherwise;',
    replace: 'return value ?? otherwise;',
    layer: { file: 'test/store/sqlite.contract.test.ts', titles: 'JSON of another kind' },
  },
  {
    name: 'a home channel that cannot be read fails whatever looks for it',
    file: 'src/outbound/home-channel.ts',
    find: 'return HOME.decode(kept);',
    replace: 'return kept === null ? null : (JSON.parse(kept) as HomeChannel);',
    layer: { file: SET_ASIDE, titles: 'a home channel that' },
  },
  {
    name: 'a session whose place cannot be read answers nobody',
    file: 'src/lifecycle/steps.ts',
    find: 'origin: origin ?? command.origin',
    replace: 'origin',
    layer: { file: 'src/lifecycle/transition.test.ts', titles: 'tells a session its place' },
  },
];

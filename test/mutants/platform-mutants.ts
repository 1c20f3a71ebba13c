import type { Mutant } from './mutants.ts';

const CONTRACT = 'test/gateway/platform-contract.test.ts';
const SHARED = 'src/platforms/shared-parts.test.ts';

/** Bugs in what the gateway does with chat platforms. */
export const PLATFORM_MUTANTS: readonly Mutant[] = [
  {
    name: 'a reply that was not answered counts as not sent',
    file: 'src/outbound/outbox.ts',
    find: "if (thrown instanceof SendFailure) return thrown.kind === 'uncertain';",
    replace: 'if (thrown instanceof SendFailure) return false;',
    layer: { file: CONTRACT, titles: 'sent again with a line' },
  },
  {
    name: 'a reply with a key that the platform knows is marked as a repetition',
    file: 'src/outbound/platform-sender.ts',
    find: 'return isLive(shape) || abilitiesAt(platform, place).idempotent === true;',
    replace: 'return isLive(shape);',
    layer: { file: CONTRACT, titles: 'takes a key once' },
  },
  {
    name: 'a reply that may have arrived is not looked for',
    file: 'src/outbound/platform-sender.ts',
    find: '(await platform.findSent?.(place, key, signal)) ??',
    replace: 'null ??',
    layer: { file: CONTRACT, titles: 'where it is found' },
  },
  {
    name: 'a reply that came too late is never sent',
    file: 'src/inbound/reception.ts',
    find: "if ((await engine.store.read('countHeld', { platform, sessionKey })) === 0) return;",
    replace: 'if (sessionKey !== null) return;',
    layer: { file: CONTRACT, titles: 'comes too late' },
  },
  {
    name: 'what an answer needs is not kept with its turn',
    file: 'src/store/transactions/conversations.ts',
    find: 'reply === undefined ? null : JSON.stringify(reply),',
    replace: 'null,',
    layer: { file: CONTRACT, titles: 'comes back with the reply' },
  },
  {
    name: 'a reply whose message is past its time does not use a newer one',
    file: 'src/outbound/platform-sender.ts',
    find: 'return latest !== null && isGood(latest) ? { ...own, reply: latest } : own;',
    replace: 'return latest === null ? own : own;',
    layer: { file: CONTRACT, titles: 'of the newest message' },
  },
  {
    name: 'where a reply grows is not kept',
    file: 'src/outbound/live-reply.ts',
    find: 'if (JSON.stringify(before) !== JSON.stringify(handle)) await',
    replace: 'if (before !== before) await',
    layer: { file: 'test/platforms/telegram/gateway.test.ts', titles: 'finished in the same message' },
  },
  {
    name: 'a stream of a stopped turn stays open',
    file: 'src/outbound/presentation.ts',
    find: 'if (handle === null || outcome === null || shown.replaced) return;',
    replace: 'if (handle !== undefined) return;',
    layer: { file: CONTRACT, titles: 'when its turn is stopped' },
  },
  {
    name: 'a stream that a dead process left stays open',
    file: 'src/gateway/chat-platforms.ts',
    find: 'this.#live.sweep(platform).catch(',
    replace: 'Promise.resolve().catch(',
    layer: { file: CONTRACT, titles: 'ended by the next one' },
  },
  {
    name: 'what happens where nobody has talked to the agent is written',
    file: 'src/inbound/platform-events.ts',
    find: 'if (!(await places.isKnown(name, event.place))) return;',
    replace: '',
    layer: { file: CONTRACT, titles: 'and nowhere else' },
  },
  {
    name: 'a message that was deleted before its turn is answered',
    file: 'src/inbound/platform-events.ts',
    find: "if (turn === null || turn.state !== 'queued') return;",
    replace: 'if (turn !== undefined) return;',
    layer: { file: CONTRACT, titles: 'when it is deleted' },
  },
  {
    name: 'two accounts of a platform share conversations',
    file: 'src/lifecycle/session-key.ts',
    find: 'const named = account === undefined ? {} : { account };',
    replace: 'const named = account === undefined ? {} : {};',
    layer: { file: 'test/gateway/accounts.test.ts', titles: 'conversations of their own' },
  },
  {
    name: 'the low-water mark passes what is not done',
    file: 'src/platforms/low-water.ts',
    find: 'while (this.#open[0]?.done) {',
    replace: 'while (this.#open.length > 0) {',
    layer: { file: SHARED, titles: 'nothing open before it' },
  },
  {
    name: 'a request that was cut counts as not sent',
    file: 'src/platforms/http.ts',
    find: 'const isUnsent = code !== null && UNSENT.has(code);',
    replace: 'const isUnsent = code !== null;',
    layer: { file: SHARED, titles: 'is uncertain' },
  },
  {
    name: 'a signature of last week is good',
    file: 'src/platforms/signatures.ts',
    find: 'return Math.abs(Number(seconds) * 1000 - now) <= ageMs;',
    replace: 'return ageMs > 0 || now > 0;',
    layer: { file: SHARED, titles: 'too old' },
  },
  {
    name: 'the post that a message opened is not known',
    file: 'src/outbound/platform-sender.ts',
    find: 'if (sent.place !== undefined) await deps.opened(request, sent.place);',
    replace: '',
    layer: { file: CONTRACT, titles: 'a post can be opened' },
  },
  {
    name: 'nobody learns that something was not sent elsewhere',
    file: 'src/outbound/notices.ts',
    find: 'const sent = sentIn(String(delivery));',
    replace: 'const sent = null as string | null;',
    layer: { file: CONTRACT, titles: 'sent elsewhere and the platform refused' },
  },
  {
    name: 'a command that nobody answers keeps its place',
    file: 'src/inbound/reception.ts',
    find: 'if (!isHeard) unanswered?.();',
    replace: '',
    layer: { file: CONTRACT, titles: 'of a stranger is told to be' },
  },
];

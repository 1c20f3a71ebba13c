import type { Mutant } from '../../mutants/mutants.ts';

const CONTRACT = 'test/platforms/webhook/contract.test.ts';

/** Bugs in what the ways in for programs promise. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'a webhook without the right signature is taken',
    file: 'src/platforms/webhook/platform.ts',
    find: 'if (!isFromSender(request, route, this.#runtime.now())) {',
    replace: 'if (!isFromSender(request, route, this.#runtime.now()) && request.body.length === 0) {',
    layer: { file: CONTRACT, titles: 'refused, whatever it says' },
  },
  {
    name: 'a webhook of Stripe that was kept for a day is taken',
    file: 'src/platforms/webhook/verify.ts',
    find: 'if (!isFresh(at, now)) return false;\n    const right = hmacSha256(',
    replace: 'if (!isFresh(at, now, 90_000_000)) return false;\n    const right = hmacSha256(',
    layer: { file: CONTRACT, titles: 'Stripe.*stale' },
  },
  {
    name: 'a webhook is acknowledged before the inbox has it',
    file: 'src/platforms/webhook/platform.ts',
    find: 'const receipt = await submitted;',
    replace: 'const receipt = { sessionId: null, turnId: null, duplicate: false };',
    layer: { file: CONTRACT, titles: 'only when the inbox has it' },
  },
  {
    name: 'a prompt is filled in with what no sender has sent',
    file: 'src/platforms/webhook/render.ts',
    find: '!Object.hasOwn(value, name)',
    replace: '!(name in value)',
    layer: { file: 'test/platforms/webhook/parse.test.ts', titles: 'nothing that was not sent' },
  },
];

import type { Mutant } from '../../mutants/mutants.ts';

const at = (file: string): string => `test/platforms/dingtalk/${file}.test.ts`;

/** Bugs in what DingTalk alone promises. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'DingTalk is told that a message is taken before it is',
    file: 'src/platforms/dingtalk/reception.ts',
    find: 'await this.#hand(parsed);\n        for',
    replace: 'void this.#hand(parsed).catch(() => undefined);\n        for',
    layer: { file: at('contract'), titles: 'acknowledged only when the inbox has it' },
  },
  {
    name: 'an answer on DingTalk that may have arrived is sent by the API as well',
    file: 'src/platforms/dingtalk/send.ts',
    find: 'if (!(thrown instanceof Refusal) || thrown.status >= 500) return false;',
    replace: 'if (!(thrown instanceof Refusal)) return true;',
    layer: { file: at('sending'), titles: 'is not sent by the API as well' },
  },
  {
    name: 'a card on DingTalk gets another id at each attempt',
    file: 'src/platforms/dingtalk/cards.ts',
    find: 'digest(this.#api.app.robotCode, place.chat, key)',
    replace: 'digest(this.#api.app.robotCode, place.chat, key, String(this.#api.app.runtime.random()))',
    layer: { file: at('cards'), titles: 'under the same key is the same card' },
  },
  {
    name: 'a link on DingTalk may act for who presses it',
    file: 'src/platforms/dingtalk/render.ts',
    find: "isHarmless(all, at + 2) ? link : '] ('",
    replace: "isHarmless(all, at + 2) ? link : ']('",
    layer: { file: at('render'), titles: 'nothing in it that acts for its reader' },
  },
];

import type { Mutant } from '../../mutants/mutants.ts';

const HERE = 'test/platforms/whatsapp';

/** Bugs in what WhatsApp promises. */
export const MUTANTS: readonly Mutant[] = [
  {
    name: 'a kept request of WhatsApp is good for ever',
    file: 'src/platforms/whatsapp/webhook.ts',
    find: 'return newestAt !== null && now() - newestAt > OLDEST_MS;',
    replace: 'return newestAt !== null && now() < 0;',
    layer: { file: `${HERE}/webhook.test.ts`, titles: 'longer ago than Meta keeps anything' },
  },
  {
    name: 'a message of WhatsApp overtakes one that was not taken',
    file: 'src/platforms/whatsapp/waiting.ts',
    find: 'return first !== undefined && first.id !== id;',
    replace: "return first !== undefined && first.id === '';",
    layer: { file: `${HERE}/webhook.test.ts`, titles: 'waits for that one' },
  },
  {
    name: 'a message of WhatsApp that has arrived is sent again',
    file: 'src/platforms/whatsapp/send.ts',
    find: 'if (arrived !== undefined) return arrived;',
    replace: '',
    layer: { file: `${HERE}/sending.test.ts`, titles: 'told that it arrived' },
  },
  {
    name: 'a late answer of WhatsApp whose template failed afterwards is lost',
    file: 'src/platforms/whatsapp/failures.ts',
    find: "if (byTemplate) return MEANINGS.get(code ?? 0)?.kind !== 'gone';",
    replace: '',
    layer: { file: `${HERE}/statuses.test.ts`, titles: 'a template was not sent' },
  },
];

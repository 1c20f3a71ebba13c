/** Writes one entry over another until it is killed. */
import { MemoryFile } from '../../../src/memory/providers/memory-file.ts';

const file = new MemoryFile(process.argv[2] ?? '', 100_000);
const words = ['a', 'b'].map((letter) => letter.repeat(50_000));
if ((await file.text()) === '') await file.add(words[0] ?? '');
console.log('writing');
for (let i = (await file.text()).startsWith('- a') ? 1 : 0; ; i = 1 - i) {
  await file.replace((words[1 - i] ?? '').slice(0, 9), words[i] ?? '');
}

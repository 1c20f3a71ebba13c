import { expect, test } from 'vitest';
import { factsIn } from './memory-review.ts';

test('an answer is one fact per line, however it is written, and NONE is none', () => {
  expect(factsIn('Here they are:\n- a b\n* c d\n1. e f\n\n2) g h\na b\n')).toEqual(['a b', 'c d', 'e f', 'g h']);
  for (const none of ['NONE', ' none. ', '- None', '**NONE**', '']) expect(factsIn(none)).toEqual([]);
  expect(factsIn(`${'long '.repeat(100)}\nshort`)).toEqual(['short']);
  expect(factsIn(Array.from({ length: 50 }, (_, i) => `fact ${i}`).join('\n'))).toHaveLength(8);
});

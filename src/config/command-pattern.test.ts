import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matchesCommand, patternFault } from './command-pattern.ts';

describe('a pattern of a command', () => {
  test.each([
    ['git status', 'git status'],
    ['git status', '  git \t status '],
    ['git log *', 'git log main'],
    ['cat *', 'cat notes/größe.txt'],
    ['cat ...', 'cat'],
    ['cat ...', 'cat a b c'],
    ['npm run * -- ...', 'npm run build -- x'],
    ['ls **', 'ls -la --color=never docs'],
    ['ls **', 'ls'],
  ])('"%s" is the command "%s"', (pattern, command) => {
    expect(matchesCommand([pattern], command)).toBe(true);
  });

  test.each([
    ['git', 'git status'],
    ['git', "git -c alias.x='!id' x"],
    ['git *', 'git -c alias.x=!id x'],
    ['git *', 'git -h'],
    ['git ...', 'git --exec-path=/tmp status'],
    ['git log *', 'git log'],
    ['git log *', 'git log a b'],
    ['git log *', 'git -p log a'],
    ['git log', 'git logs'],
    ['find ...', 'find . -exec rm x'],
    ['env', 'env rm x'],
    ['make', 'MAKE=x make'],
  ])('"%s" is not the command "%s"', (pattern, command) => {
    expect(matchesCommand([pattern], command)).toBe(false);
  });

  test('never is a command that a shell reads as more than plain words', () => {
    const signs = [...';&|<>()$`\\"\'*?[]{}#~!^\n\r\v\f\0\u00a0\u2028'];
    const word = fc.stringMatching(/^[a-z./-]{0,5}$/);
    fc.assert(
      fc.property(fc.constantFrom(...signs), word, word, (sign, before, after) => {
        for (const command of [`ls ${before}${sign}${after}`, `ls ${sign} ${after}`, `ls${sign}${after}`]) {
          expect(matchesCommand(['ls **', 'ls ...', 'ls *', 'ls'], command)).toBe(false);
        }
      }),
    );
  });

  test.each([
    ['', 'empty'],
    ['* status', 'begins with the name of a program'],
    ['** x', 'begins with the name of a program'],
    ['git ... x', 'stands at its end'],
    ['git ** x', 'stands at its end'],
    ['ls | sh', 'sign of the shell'],
    ['cat "a b"', 'sign of the shell'],
    ['ls a*', 'sign of the shell'],
  ])('"%s" is refused: %s', (pattern, fault) => {
    expect(patternFault(pattern)).toContain(fault);
    expect(matchesCommand([pattern], pattern)).toBe(false);
  });
});

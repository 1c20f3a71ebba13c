import { expect, test } from 'vitest';
import { beginningOf, matching, parseHelp } from './commands.ts';

const HELP = `/new, /reset [title] - end this session and begin a fresh one
/stop - stop what is being done; the session stays
/queue TEXT - say something - later
/my-own - brought by a plugin
not a command`;

test('every name that /help tells is a command', () => {
  expect(parseHelp(HELP)).toEqual([
    { name: 'new', takes: '[title]', summary: 'end this session and begin a fresh one' },
    { name: 'reset', takes: '[title]', summary: 'end this session and begin a fresh one' },
    { name: 'stop', takes: '', summary: 'stop what is being done; the session stays' },
    { name: 'queue', takes: 'TEXT', summary: 'say something - later' },
    { name: 'my-own', takes: '', summary: 'brought by a plugin' },
  ]);
});

test('a name is looked for as long as it is being typed', () => {
  expect(['/', '/Ne', '/new ', 'x/', '/a/b'].map(beginningOf)).toEqual(['', 'ne', null, null, null]);
});

test('what begins so comes before what contains it', () => {
  const names = (beginning: string): string[] => matching(parseHelp(HELP), beginning).map(({ name }) => name);
  expect(names('')).toHaveLength(5);
  expect(names('s')).toEqual(['stop']);
  expect(names('ue')).toEqual(['queue']);
  expect(names('re')).toEqual(['reset']);
});

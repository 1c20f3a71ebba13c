import { readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import {
  ATTACHED_BY_DEFAULT,
  END_REASONS,
  LINEAGES,
  MOVES,
  RESUME_REASONS,
  SESSION_KINDS,
  SESSION_STATES,
  TRIGGERS,
  TURN_OUTCOMES,
  TURN_STATES,
} from './states.ts';

const page = readFileSync(new URL('../../docs/lifecycle.md', import.meta.url), 'utf8');

/** Every arrow of the first drawing, as `from command to`. */
function drawnArrows(text: string): string[] {
  const drawing = /## States and moves[\s\S]*?```\n([\s\S]*?)```/.exec(text)?.[1] ?? '';
  const arrows: string[] = [];
  let from = '';
  for (const line of drawing.split('\n')) {
    const [, state] = /^(\S+)$/.exec(line) ?? [];
    if (state !== undefined) from = state === '(none)' ? 'none' : state;
    const [, commands = '', to] = /^ {2}[├└]─ (.+) ──▶ (\S+)$/.exec(line) ?? [];
    if (to !== undefined) arrows.push(...commands.split(', ').map((command) => `${from} ${command} ${to}`));
  }
  return arrows;
}

function codedArrows(): string[] {
  return Object.entries(MOVES).flatMap(([from, moves]) =>
    Object.entries(moves).map(([command, to]) => `${from} ${command} ${to}`),
  );
}

/** The first column of the table with this heading, without its back quotes. */
function column(heading: string, nth = 0): string[] {
  const lines = page.split('\n');
  const head = lines.findIndex((line) => line.startsWith(`| ${heading} |`));
  const rows = lines.slice(head + 2, lines.indexOf('', head));
  return rows.map((row) => (row.split(' | ')[nth] ?? '').replace(/[|`]/g, '').trim());
}

describe('docs/lifecycle.md', () => {
  test('draws every move of the table, each once, and no other', () => {
    const drawn = drawnArrows(page);
    expect(new Set(drawn).size).toBe(drawn.length);
    expect(drawn.toSorted()).toEqual(codedArrows().toSorted());
  });

  test('draws every state, also those that nothing leads out of', () => {
    const states = [...page.matchAll(/^(\S+)\n {2}[├└(]/gm)].map(([, state]) => state);
    expect(states).toEqual(['(none)', ...SESSION_STATES]);
  });

  test('one arrow changed is noticed', () => {
    for (const [, arrow = ''] of page.matchAll(/^( {2}[├└]─ .+ ──▶ \S+)$/gm)) {
      const target = arrow.endsWith(' suspended') ? 'open' : 'suspended';
      const changed = page.replace(arrow, arrow.replace(/\S+$/, target));
      expect(drawnArrows(changed).toSorted()).not.toEqual(codedArrows().toSorted());
      const renamed = page.replace(arrow, arrow.replace(/─ \w+/, '─ wander'));
      expect(drawnArrows(renamed).toSorted()).not.toEqual(codedArrows().toSorted());
    }
  });

  test.each([
    ['state', SESSION_STATES],
    ['command', [...new Set(Object.values(MOVES).flatMap((moves) => Object.keys(moves)))]],
    ['kind', SESSION_KINDS],
    ['turn state', TURN_STATES],
    ['reason', END_REASONS],
    ['trigger', TRIGGERS],
    ['lineage', LINEAGES],
  ] as const)('lists every %s and nothing else', (heading, words) => {
    expect(column(heading).toSorted()).toEqual([...words].toSorted());
  });

  test('says of each kind whether it is attached', () => {
    const said = Object.fromEntries(column('kind').map((kind, i) => [kind, column('kind', 1)[i] === 'attached']));
    expect(said).toEqual(ATTACHED_BY_DEFAULT);
  });

  test('names the outcomes of a turn and the reasons of a cut', () => {
    const words = (sentence: string) => [...sentence.matchAll(/`(\w+)`/g)].map(([, word]) => word);
    expect(words(/^Outcomes: .*$/m.exec(page)?.[0] ?? '')).toEqual([...TURN_OUTCOMES]);
    expect(words(/^- After a cut \(.*?\)/m.exec(page)?.[0] ?? '')).toEqual([...RESUME_REASONS]);
  });

  test('shows what holds a deadline off by the states that turns have', () => {
    const list = /hold the deadline off altogether:\n\n([\s\S]*?)\n\n/.exec(page)?.[1] ?? '';
    expect(list.split('\n')).toEqual([
      '- a `queued` turn',
      '- a `running` turn',
      '- a background process',
      '- an operator who parked the session; its release counts as activity',
    ]);
  });
});

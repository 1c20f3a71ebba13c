import { expect, test } from 'vitest';
import type { ApprovalAnswer } from '../lifecycle/states.ts';
import { mayAnswer } from './access.ts';

const ASKER = { name: 'telegram:1', userId: '1', admin: false };
const ANOTHER = { name: 'telegram:2', userId: '2', admin: false };
const ADMIN = { name: 'telegram:3', userId: '3', admin: true };
const NAMELESS = { name: 'telegram', userId: null, admin: false };

function rights(by: typeof ASKER | typeof NAMELESS, rule: 'admins' | 'asker', askedOf: string | null = '1'): string[] {
  return (['once', 'session', 'always', 'deny'] satisfies ApprovalAnswer[]).map((answer) =>
    mayAnswer(by, askedOf, answer, rule),
  );
}

test('an admin answers everything', () => {
  for (const rule of ['admins', 'asker'] as const) expect(rights(ADMIN, rule)).toEqual(['yes', 'yes', 'yes', 'yes']);
});

test('who asked may refuse, and allow only where askers may, but never for good', () => {
  const no = 'admins only';
  expect(rights(ASKER, 'admins')).toEqual([no, no, no, 'yes']);
  expect(rights(ASKER, 'asker')).toEqual(['yes', 'yes', no, 'yes']);
});

test('nobody else answers, nor does anybody without a name', () => {
  const no = 'not yours';
  for (const rule of ['admins', 'asker'] as const) {
    expect(rights(ANOTHER, rule)).toEqual([no, no, no, no]);
    expect(rights(NAMELESS, rule, null)).toEqual([no, no, no, no]);
  }
});

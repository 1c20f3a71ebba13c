import { expect, test } from 'vitest';
import type { ApprovalAnswer } from '../lifecycle/states.ts';
import { type Answerer, mayAnswer } from './access.ts';

const ASKER = { name: 'telegram:1', person: 'telegram:1', admin: false };
const ANOTHER = { name: 'telegram:2', person: 'telegram:2', admin: false };
const SAME_ID_ELSEWHERE = { name: 'matrix:1', person: 'matrix:1', admin: false };
const ADMIN = { name: 'telegram:3', person: 'telegram:3', admin: true };
const NAMELESS = { name: 'telegram', person: null, admin: false };

function rights(by: Answerer, rule: 'admins' | 'asker', askedOf: string | null = 'telegram:1'): string[] {
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
    for (const by of [ANOTHER, SAME_ID_ELSEWHERE]) expect(rights(by, rule)).toEqual([no, no, no, no]);
    expect(rights(NAMELESS, rule, null)).toEqual([no, no, no, no]);
  }
});

import { expect, test } from 'vitest';
import { ERROR_HINTS, type ErrorCode } from '../errors/codes.ts';
import { statusOf } from './error-answer.ts';

/** What is said while a store is opened or restored, and never of one that is in use. */
const AT_THE_START = ['store_url', 'store_not_database', 'store_unsafe', 'store_in_use', 'store_not_empty'];
const inUse = Object.keys(ERROR_HINTS).filter((code) => code.startsWith('store_') && !AT_THE_START.includes(code));

test.each(inUse as ErrorCode[])('what a store in trouble says is for the client to ask again later: %s', (code) => {
  expect(statusOf(code)).toBe(503);
});

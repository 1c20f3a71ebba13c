import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { fromDriver, isAway, leavesCommitUnknown, wrapPostgres } from './errors.ts';

function fromServer(state: string): pg.DatabaseError {
  return Object.assign(new pg.DatabaseError('it says why', 0, 'error'), { code: state });
}

function fromSystem(code: string): Error {
  return fromDriver(Object.assign(new Error(`connect ${code}`), { code }));
}

describe('a commit that failed', () => {
  test.each([
    ...['ECONNRESET', 'EHOSTUNREACH', 'ENETUNREACH', 'ENETDOWN', 'ECONNABORTED', 'EPIPE', 'a name of tomorrow'],
  ])('may have been done when the server said nothing, whatever the system calls it: %s', (code) => {
    expect(leavesCommitUnknown(fromSystem(code))).toBe(true);
    expect(isAway(fromSystem(code))).toBe(true);
  });

  test.each(['08006', '08P01', '57P01', '57P02', '25P03', '40003'])(
    'may have been done when the connection was ended, by the server or by a pooler: %s',
    (state) => {
      expect(leavesCommitUnknown(fromServer(state))).toBe(true);
    },
  );

  test.each(['23505', '40001', '40P01', '53100', '57014', '58030', 'XX000'])(
    'was not done when the server refused it: %s',
    (state) => {
      expect(leavesCommitUnknown(fromServer(state))).toBe(false);
    },
  );
});

test.each([
  ['08006', 'store_unreachable'],
  ['0A000', 'store_refused'],
  ['22021', 'bad_input'],
  ['23505', 'internal'],
  ['25006', 'store_read_only'],
  ['26000', 'store_refused'],
  ['28P01', 'store_unreachable'],
  ['3D000', 'store_unreachable'],
  ['40001', 'store_locked'],
  ['40P01', 'store_locked'],
  ['42501', 'store_refused'],
  ['42601', 'internal'],
  ['42P01', 'store_refused'],
  ['53100', 'store_full'],
  ['53200', 'store_refused'],
  ['53300', 'store_unreachable'],
  ['54000', 'bad_input'],
  ['55P03', 'store_locked'],
  ['55000', 'store_refused'],
  ['57014', 'store_timeout'],
  ['57P03', 'store_unreachable'],
  ['58030', 'store_io'],
  ['XX001', 'store_io'],
])('what the server reports as %s is %s', (state, code) => {
  expect(wrapPostgres(fromServer(state), 'here').code).toBe(code);
});

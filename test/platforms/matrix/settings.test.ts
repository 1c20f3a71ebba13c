import { describe, expect, test } from 'vitest';
import { descriptor } from '../../../src/platforms/matrix/descriptor.ts';
import { readSettings } from '../../../src/settings/read-settings.ts';
import { MatrixFake } from '../../fakes/matrix-server.ts';
import { never, testRuntime } from '../contract/scene.ts';

const read = (written: object, variables: Readonly<Record<string, string>> = {}) =>
  readSettings(descriptor.settings, written, { home: '', variable: (name) => variables[name] ?? null });

describe('the settings of Matrix', () => {
  test('that are missing are named, and `api_root` is a homeserver, too', () => {
    expect(descriptor.missing(read({}).value)).toEqual(['homeserver', 'token']);
    const variables = { MATRIX_ACCESS_TOKEN: 'token' };
    expect(descriptor.missing(read({ api_root: 'http://127.0.0.1:1' }, variables).value)).toEqual([]);
    expect(descriptor.missing(read({ homeserver: 'http://127.0.0.1:1' }, variables).value)).toEqual([]);
  });

  test('let the people in `allow` and those of its own server invite the agent', () => {
    expect(read({}).value).toMatchObject({ invites: ['allow', 'server'] });
    expect(read({ invites: [] }).value).toMatchObject({ invites: [] });
  });

  test.each([
    [{ homeserver: 'matrix.example.org' }],
    [{ homeserver: 'https://matrix.example.org/path' }],
    [{ user_id: 'agent' }],
    [{ invites: ['everybody'] }],
  ])('that mean nothing are refused: %j', (written) => {
    expect(read(written).issues).toHaveLength(1);
  });

  test('lead everything to the homeserver, and to `api_root` where that is given', async () => {
    await using one = await MatrixFake.start();
    await using other = await MatrixFake.start();
    const identify = async (written: object): Promise<void> => {
      const { value, issues } = read({ token: one.token, ...written });
      expect(issues).toEqual([]);
      await (await descriptor.make(value, testRuntime('matrix'))).identify?.(never);
    };
    await identify({ homeserver: one.url });
    expect([one.calls.length, other.calls.length]).toEqual([1, 0]);
    await identify({ homeserver: one.url, api_root: other.url });
    expect([one.calls.length, other.calls.length]).toEqual([1, 1]);
  });
});

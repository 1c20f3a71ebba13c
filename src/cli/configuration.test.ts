import { afterEach, beforeEach, expect, test } from 'vitest';
import { ConfigHome } from '../../test/support/config-home.ts';
import { storeSettingsOf } from './configuration.ts';

let home: ConfigHome;

beforeEach(() => {
  home = new ConfigHome();
});

afterEach(() => home.remove());

test('a home without files is opened as an empty configuration would have it', async () => {
  const given = { home: home.path, storeUrl: null, json: false };
  const withoutFiles = await storeSettingsOf(given);
  home.write('config.yaml', 'sessions: { reset: { timezone: UTC } }');
  expect(await storeSettingsOf(given)).toMatchObject(withoutFiles);
});

test('the command line says which store, the configuration says the rest', async () => {
  home.write(
    'config.yaml',
    'store: { url: "sqlite:a.db" }\nsessions: { heartbeat: 1s, lease_ttl: 5s, stuck_after: 7 }',
  );
  expect(await storeSettingsOf({ home: home.path, storeUrl: 'sqlite:b.db', json: false })).toMatchObject({
    ...{ url: 'sqlite:b.db', heartbeatMs: 1000, leaseTtlMs: 5000, rules: { stuckAfter: 7 } },
  });
});

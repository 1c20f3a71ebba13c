import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { Engine } from '../../src/engine/engine.ts';
import { describeThisProcess } from '../../src/engine/host.ts';
import { timeSortedIds } from '../../src/engine/ids.ts';
import { DEFAULT_RESET_RULES } from '../../src/lifecycle/reset-policy.ts';
import type { Logger } from '../../src/log/logger.ts';
import type { Timers } from '../../src/queue/timers.ts';
import { openStore } from '../../src/store/open-store.ts';
import type { Store } from '../../src/store/port.ts';
import { EndedSessions } from '../../src/turns/ended-sessions.ts';

const log: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => log,
};

test('the log is read once however much is said while nobody ends, and every end is heard', async () => {
  const home = mkdtempSync(join(tmpdir(), 'moirai-ended-'));
  const real = await openStore('sqlite:state.db', home, DEFAULT_RESET_RULES, { inline: true });
  const from: number[] = [];
  const store: Store = {
    ...{ engine: real.engine, location: real.location },
    write: (name, args) => real.write(name, args),
    read: (name, args) => {
      if (name === 'listEvents') from.push((args as { after: number }).after);
      return real.read(name, args);
    },
    onCommit: (listener) => real.onCommit(listener),
    useRules: (rules) => real.useRules(rules),
    close: () => real.close(),
  };
  const ids = timeSortedIds(Date.now, Math.random);
  const instance = { id: 'ins_1', name: null, version: '0', ...describeThisProcess() };
  const engine = await Engine.boot({ store: real, ids, instance, leaseTtlMs: 60_000 });
  const party = { key: 'agent:main:api:dm:1', kind: 'api', platform: 'api', userId: null, origin: null } as const;
  const session = await engine.start({ ...party, attached: false });

  let again: () => void = () => undefined;
  let looked = Promise.withResolvers<void>();
  const timers: Timers = {
    elapsed: () => 0,
    after: (_, callback) => {
      again = callback;
      looked.resolve();
      return () => undefined;
    },
  };
  const look = async (): Promise<void> => {
    looked = Promise.withResolvers();
    again();
    await looked.promise;
  };
  const heard: string[] = [];
  const ended = new EndedSessions(store, timers, log, (id) => heard.push(id));
  try {
    ended.start();
    await looked.promise;
    for (let i = 0; i < 10; i++) await engine.setTitle(session.id, `title ${i}`);
    await look();
    const last = await real.read('lastSeq', {});
    await look();
    expect(from.at(-1)).toBe(last);
    await engine.end(session.id, { reason: 'api_close', trigger: 'api' });
    await look();
    expect(heard).toEqual([session.id]);
  } finally {
    ended.stop();
    await engine.stop();
    await real.close();
    rmSync(home, { recursive: true });
  }
});

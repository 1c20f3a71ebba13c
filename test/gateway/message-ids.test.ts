import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/load-config.ts';
import { Gateway } from '../../src/gateway/gateway.ts';
import { createLogger } from '../../src/log/logger.ts';
import type { Inbox, Incoming, Platform } from '../../src/platforms/platform.ts';
import { machineClock } from '../../src/store/clock.ts';
import { InlineSqliteStore } from '../../src/store/sqlite/store.ts';
import { until } from '../hooks/scene.ts';
import { HTTP_ABILITIES } from '../platforms/http-driver.ts';
import { ScriptedRunner } from './scripted-runner.ts';

/** A platform whose chats and messages are numbered from 1, as everybody else's. */
class Numbered implements Platform {
  readonly name: string;
  readonly abilities = HTTP_ABILITIES;
  readonly state = { phase: 'connected', problem: null, lastSuccessAt: null } as const;
  readonly sent: string[] = [];
  inbox: Inbox | null = null;

  constructor(name: string) {
    this.name = name;
  }

  async start(inbox: Inbox): Promise<void> {
    this.inbox = inbox;
    inbox.changed();
  }

  async stop(): Promise<void> {}

  async send(_: unknown, { text }: { readonly text: string }): Promise<{ messageId: string }> {
    this.sent.push(text);
    return { messageId: '1' };
  }
}

test('messages of two platforms with the same ids are two messages, and each is one when it comes again', async () => {
  const home = mkdtempSync(join(tmpdir(), 'moirai-gateway-'));
  writeFileSync(join(home, 'config.yaml'), JSON.stringify({ access: { allow: ['*'] } }));
  const config = loadConfig({ home, env: {} });
  const store = new InlineSqliteStore(join(home, 'state.db'), machineClock, config.sessions);
  const platforms = [new Numbered('loom'), new Numbered('spindle')];
  const gateway = await Gateway.start({
    ...{ config, store, version: 'test', platforms: [], primary: true, restart: null },
    environment: { PATH: process.env.PATH },
    log: createLogger({ level: 'silent', format: 'json' }),
    makeRunner: () => new ScriptedRunner(),
    chat: platforms.map((platform) => ({
      name: platform.name,
      credential: platform.name,
      make: async () => platform,
    })),
    lost: () => undefined,
  });
  await until('both listen', () => platforms.every(({ inbox }) => inbox !== null));
  const message: Incoming = {
    ...{ id: '1:1', messageId: '1', place: { type: 'dm', chat: '1' }, from: { id: '1', name: null, bot: false } },
    ...{ text: 'hello', files: [], repliesTo: null, addressed: true, edited: false, group: null, at: Date.now() },
  };
  for (const { inbox } of [...platforms, ...platforms]) await inbox?.receive(message);
  expect(await store.read('stats', {})).toMatchObject({ total: 2 });
  await until('both are answered', () => platforms.every(({ sent }) => sent.length > 0), 20_000);
  for (const { inbox } of platforms) await inbox?.receive(message);
  await gateway.stop('shutdown');
  await store.close();
  rmSync(home, { recursive: true });
  expect(platforms.map(({ sent }) => sent)).toEqual([['did: hello'], ['did: hello']]);
});

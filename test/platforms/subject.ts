import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { settingsOfAccount } from '../../src/platforms/chat-settings.ts';
import type { PlatformDescriptor } from '../../src/platforms/descriptor.ts';
import type { Platform, PlatformRuntime } from '../../src/platforms/platform.ts';
import type { Section } from '../../src/settings/declaration.ts';
import { readSettings } from '../../src/settings/read-settings.ts';
import { type Driver, type Plays, testRuntime, type Where, type World, webhookRequest } from './contract/scene.ts';

/** A platform as all suites know it. */
export interface PlatformSubject {
  readonly descriptor: PlatformDescriptor<string, Section>;
  /** The ways in which it can be connected; the first is the usual one. */
  readonly modes: readonly PlatformMode[];
  /** The session keys of what the first person says, behind `agent:main:`. */
  readonly keys: Readonly<Partial<Record<Where, string>>>;
  /** Samples of what the server brings, for payloads that are no such thing. */
  readonly samples: readonly Record<string, unknown>[];
}

export interface PlatformMode {
  readonly title: string;
  readonly plays: Plays;
  open(): Promise<World>;
}

/** Makes a platform from settings as they stand in the file, as often as asked, and keeps what it warns of. */
export function makerOf(
  { name, settings: declared, make }: PlatformSubject['descriptor'],
  written: World['settings'],
  speed: number,
): { readonly make: () => Promise<Platform>; readonly warnings: readonly string[] } {
  const { value, issues } = readSettings(declared, written, { home: '', variable: () => null });
  if (issues.length > 0) throw new TypeError(JSON.stringify(issues));
  const settings = settingsOfAccount(declared, value, null) as never;
  const state = new Map<string, string>();
  const warnings: string[] = [];
  const warn: PlatformRuntime['warn'] = (...words) => void warnings.push(JSON.stringify(words));
  return { make: () => make(settings, { ...testRuntime(name, speed, state), warn }), warnings };
}

/** A platform made from its settings, in a world of its own. Its time runs `speed` times as fast. */
export async function driverIn(world: World, { descriptor }: PlatformSubject, speed = 100): Promise<Driver> {
  const { name } = descriptor;
  const { make, warnings } = makerOf(descriptor, world.settings, speed);
  let platform = await make();
  const door = await openDoor(() => platform);
  world.bringTo?.(`${door.url}/platforms/${name}`);
  const first = platform;
  return new Proxy(world, {
    get: (_, key) => {
      if (key === 'platform') return first;
      if (key === 'warnings') return warnings;
      if (key === 'restart') return async () => (platform = await make());
      if (key === Symbol.asyncDispose) {
        return async () => {
          await platform.stop();
          await door.close();
          await world[Symbol.asyncDispose]();
        };
      }
      const value: unknown = Reflect.get(world, key, world);
      return typeof value === 'function' ? value.bind(world) : value;
    },
  }) as unknown as Driver;
}

/** Whoever owns the port that a server brings messages to. */
export async function openDoor(platform: () => Platform): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const answer = await platform().receiveWebhook?.(webhookRequest(request, Buffer.concat(chunks)));
    response.writeHead(answer?.status ?? 404, answer?.headers).end(answer?.body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}

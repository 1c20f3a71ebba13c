import { descriptor } from '../../../src/platforms/qq/descriptor.ts';
import { Qq } from '../../../src/platforms/qq/platform.ts';
import { type KeptState, TestInbox, testRuntime, until } from '../contract/scene.ts';
import { type QqMode, QqWorld } from './world.ts';

/** A platform at a world; `state` is what processes of the same account share. */
export function qqAt(world: QqWorld, mode: QqMode = 'websocket', state: KeptState = new Map(), speed = 100) {
  const runtime = testRuntime(descriptor.name, speed, state);
  world.setClock(runtime.now);
  const { appId, secret: clientSecret, url } = world.server;
  const platform = new Qq({ appId, clientSecret, mode, tokenRoot: url, apiRoot: url, mediaRoot: url, runtime });
  return { platform, runtime, warnings: runtime.warnings };
}

/** A platform that is connected, with an inbox. */
export async function openScene(
  mode: QqMode = 'websocket',
  prepare: (world: QqWorld) => void = () => undefined,
  speed = 100,
) {
  const world = await QqWorld.open(mode);
  prepare(world);
  const state: KeptState = new Map();
  const { platform, warnings } = qqAt(world, mode, state, speed);
  const inbox = new TestInbox();
  await platform.start(inbox);
  await until(() => platform.state.phase === 'connected', 'connected');
  const close = async (): Promise<void> => {
    await platform.stop();
    await world[Symbol.asyncDispose]();
  };
  return { world, platform, warnings, inbox, state, [Symbol.asyncDispose]: close };
}

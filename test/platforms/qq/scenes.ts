import type { Outgoing, Place, SendFailure } from '../../../src/platforms/platform.ts';
import { descriptor } from '../../../src/platforms/qq/descriptor.ts';
import { Qq } from '../../../src/platforms/qq/platform.ts';
import { answerable, type KeptState, never, TestInbox, testRuntime, until } from '../contract/scene.ts';
import { GROUP, personId, type QqMode, QqWorld } from './world.ts';

export const DM: Place = { type: 'dm', chat: personId(0) };
const IN_GROUP: Place = { type: 'group', chat: GROUP };

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

/** Somebody has written, and what is sent answers that. */
export async function openAnswering(where: 'dm' | 'group' = 'dm') {
  const scene = await openScene();
  const { reply } = await answerable({ driver: scene.world as never, inbox: scene.inbox }, where);
  const place = where === 'dm' ? DM : IN_GROUP;
  const { messages } = scene.world.server;
  const send = (message: Outgoing) => scene.platform.send(place, { reply, ...message }, never);
  const failureOf = (message: Outgoing) =>
    send(message).then(
      () => null,
      (thrown: unknown) => thrown as SendFailure,
    );
  return { ...scene, reply, messages, send, failureOf, [Symbol.asyncDispose]: () => scene[Symbol.asyncDispose]() };
}

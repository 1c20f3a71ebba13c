import type { SendFailure } from '../../../src/platforms/platform.ts';
import type { SlackServer } from '../../fakes/slack-server.ts';
import { TestInbox, until } from '../contract/scene.ts';
import { driverIn } from '../subject.ts';
import { subject } from './subject.ts';
import { SlackWorld } from './world.ts';

/** What a call fails with; throws if it does not. */
export async function failureOf(work: Promise<unknown>): Promise<SendFailure> {
  const thrown = await work.then(
    () => null,
    (reason: SendFailure) => reason,
  );
  if (thrown === null) throw new RangeError('it did not fail');
  return thrown;
}

interface SceneOptions {
  readonly mode?: 'socket' | 'http';
  /** How fast the platform's time runs. */
  readonly speed?: number;
  /** What is different about the server before the platform starts. */
  readonly before?: (fake: SlackServer) => void;
  /** Whether the platform is connected before the test begins. */
  readonly connected?: boolean;
}

/** A platform in a world of its own, started. */
export async function openSlack({ mode = 'socket', speed = 100, before, connected = true }: SceneOptions = {}) {
  const world = await SlackWorld.open(mode);
  before?.(world.fake);
  const driver = await driverIn(world, subject, speed);
  const inbox = new TestInbox();
  const { platform, warnings } = driver;
  await platform.start(inbox);
  if (connected) await until(() => platform.state.phase === 'connected', 'connected');
  const close = async () => {
    await platform.stop();
    await driver[Symbol.asyncDispose]();
  };
  return { world, fake: world.fake, driver, inbox, platform, warnings, [Symbol.asyncDispose]: close };
}

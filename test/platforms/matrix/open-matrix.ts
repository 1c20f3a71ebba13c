import { Matrix } from '../../../src/platforms/matrix/platform.ts';
import { type KeptState, TestInbox, testRuntime, until } from '../contract/scene.ts';
import { MatrixWorld } from './world.ts';

export interface OpenOptions {
  readonly userId?: string | null;
  readonly invites?: readonly string[];
  readonly allow?: readonly string[];
  /** How many times as fast its time runs. */
  readonly speed?: number;
}

/** A platform in a world, what it keeps, and the processes that follow it. */
export async function openMatrix(options: OpenOptions = {}) {
  const world = await MatrixWorld.open();
  const state: KeptState = new Map();
  const warnings: string[] = [];
  const opened: Matrix[] = [];
  /** The same account, as the next process has it. */
  const make = (): Matrix => {
    const runtime = testRuntime('matrix', options.speed ?? 100, state);
    const { userId = null, invites = ['allow', 'server'], allow = [] } = options;
    const platform = new Matrix({
      ...{ homeserver: world.fake.url, token: world.fake.token, userId },
      invites: { rules: invites, allow },
      runtime: { ...runtime, warn: (...words) => void warnings.push(JSON.stringify(words)) },
    });
    opened.push(platform);
    return platform;
  };
  const begin = async (platform = make(), inbox = new TestInbox()) => {
    await platform.start(inbox);
    await until(() => platform.state.phase === 'connected', 'connected');
    return { platform, inbox };
  };
  const close = async (): Promise<void> => {
    for (const platform of opened) await platform.stop();
    await world[Symbol.asyncDispose]();
  };
  return { world, fake: world.fake, state, warnings, make, begin, [Symbol.asyncDispose]: close };
}

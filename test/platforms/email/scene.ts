import { accountOf } from '../../../src/platforms/email/account.ts';
import { Email } from '../../../src/platforms/email/platform.ts';
import { type KeptState, never, TestInbox, testRuntime, until } from '../contract/scene.ts';
import { EmailWorld } from './world.ts';

interface SceneOptions {
  readonly authservId?: string | null;
  readonly world?: EmailWorld;
  readonly state?: KeptState;
  /** How many times as fast its time runs. */
  readonly speed?: number;
}

const server = { host: '127.0.0.1', user: null, password: null, tls: false };

/** The platform as its settings make it, at a world. */
export function emailOf(world: EmailWorld, { authservId = null, state = new Map(), speed = 100 }: SceneOptions = {}) {
  const { address, imap, smtpPort } = world.server;
  const [password = ''] = world.secrets;
  const account = accountOf({
    address,
    password,
    imap: { ...server, port: imap.port },
    smtp: { ...server, port: smtpPort },
    authservId,
    apiRoot: null,
  });
  const runtime = testRuntime('email', speed, state);
  return { platform: new Email({ account, runtime, startedAt: Date.now() }), warnings: runtime.warnings };
}

/** A world with the platform in it, connected; senders need no proof unless a server is named that gives it. */
export async function emailAt(options: SceneOptions = {}) {
  const world = options.world ?? (await EmailWorld.open());
  const { platform, warnings } = emailOf(world, options);
  const inbox = new TestInbox();
  await platform.start(inbox);
  await until(() => platform.state.phase === 'connected', 'connected');
  /** Sends as the gateway does, in answer to the newest mail of the thread. */
  const answer = async (text: string, key: string) => {
    const { place, messageId, reply } = inbox.received.at(-1)!;
    return await platform.send(place, { text, key, reply: { messageId, ...reply! } }, never);
  };
  return {
    ...{ world, platform, inbox, warnings, answer },
    [Symbol.asyncDispose]: async () => {
      await platform.stop();
      if (options.world === undefined) await world[Symbol.asyncDispose]();
    },
  };
}

import type { DiscordFake } from '../../fakes/discord.ts';
import { type KeptState, TestInbox, until } from '../contract/scene.ts';
import { DiscordWorld, discordAt } from './world.ts';

/** Discord, a platform there that has not been started, and its inbox. */
export async function openScene(speed = 100) {
  const world = await DiscordWorld.open();
  const { fake } = world;
  const state: KeptState = new Map();
  const inbox = new TestInbox();
  const platforms = [discordAt(fake, speed, state)];
  const [{ platform, warnings }] = platforms as [ReturnType<typeof discordAt>];
  /** The same account, as the next process has it. */
  const restart = () => {
    const next = discordAt(fake, speed, state);
    platforms.push(next);
    return next.platform;
  };
  const connected = async (): Promise<void> => {
    await platform.start(inbox);
    await until(() => platform.state.phase === 'connected', 'connected');
  };
  const close = async (): Promise<void> => {
    for (const each of platforms) await each.platform.stop();
    await world[Symbol.asyncDispose]();
  };
  return { world, fake, state, inbox, platform, warnings, restart, connected, [Symbol.asyncDispose]: close };
}

/** The position at which the next process would go on; null where it would begin anew. */
export function keptPosition(state: KeptState): number | null {
  const { session } = JSON.parse(state.get('session') ?? '{}') as { session?: { position: number } | null };
  return session?.position ?? null;
}

/** Bodies of what was sent to a channel. */
export function sentTo(fake: DiscordFake, channel: string) {
  return fake.callsOf('POST', new RegExp(`^/channels/${channel}/messages$`)).map(({ body }) => body);
}

import { descriptor } from '../../../src/platforms/discord/descriptor.ts';
import { GUILD } from '../../fakes/discord-state.ts';
import { readSamples } from '../samples.ts';
import type { PlatformSubject } from '../subject.ts';
import { CHANNEL, DiscordWorld, dmOf, FORUM, POST, person } from './world.ts';

export const subject: PlatformSubject = {
  descriptor,
  modes: [
    {
      title: 'by gateway',
      plays: {
        ...{ acknowledgement: true, changes: true, echoes: true, repetition: true, groups: true, refusals: true },
        ...{ cuts: true, backfill: true, credential: true, lostAnswers: true },
        happenings: ['added', 'removed', 'deleted', 'reaction', 'joined'],
      },
      open: () => DiscordWorld.open(),
    },
  ],
  keys: {
    dm: `discord:dm:${dmOf()}`,
    group: `discord:channel:${GUILD}:${CHANNEL}:${person().id}`,
    thread: `discord:thread:${GUILD}:${FORUM}:${POST}`,
  },
  samples: readSamples('discord').map(({ payload }) => payload),
};

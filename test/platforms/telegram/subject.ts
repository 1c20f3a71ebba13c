import { descriptor } from '../../../src/platforms/telegram/descriptor.ts';
import type { Plays } from '../contract/scene.ts';
import { readSamples } from '../samples.ts';
import type { PlatformSubject } from '../subject.ts';
import { TelegramWorld } from './world.ts';

const plays: Plays = {
  ...{ acknowledgement: true, changes: true, echoes: true, repetition: true, groups: true, refusals: true, cuts: true },
  ...{ credential: true, lostAnswers: true },
  happenings: ['added', 'removed', 'reaction', 'joined'],
};

export const subject: PlatformSubject = {
  descriptor,
  modes: [
    { title: 'asked for updates', plays, open: () => TelegramWorld.open('polling') },
    {
      title: 'by webhook',
      plays: { ...plays, forgeries: ['unsigned', 'forged'] },
      open: () => TelegramWorld.open('webhook'),
    },
  ],
  keys: { dm: 'telegram:dm:42', group: 'telegram:group:-100:42', thread: 'telegram:thread:-1001:5' },
  samples: readSamples('telegram').map(({ payload }) => payload),
};

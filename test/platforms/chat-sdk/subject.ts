import { descriptor } from '../../../src/platforms/chat-sdk/descriptor.ts';
import { TELEGRAM_ABILITIES } from '../../../src/platforms/telegram/abilities.ts';
import type { Plays } from '../contract/scene.ts';
import { readSamples } from '../samples.ts';
import type { PlatformSubject } from '../subject.ts';
import { TelegramAdapterWorld } from './world.ts';

const plays: Plays = {
  ...{ acknowledgement: true, changes: true, echoes: true, repetition: true, groups: true, refusals: true, cuts: true },
  lostAnswers: true,
  typesByItself: true,
  happenings: ['reaction'],
  forgeries: ['unsigned', 'forged'],
};

/** One adapter stands for all: what its platform can do, the gateway does with it. */
export const subject: PlatformSubject = {
  descriptor: { ...descriptor, abilities: TELEGRAM_ABILITIES },
  modes: [{ title: '`@chat-adapter/telegram`, by webhook', plays, open: () => TelegramAdapterWorld.open() }],
  keys: { dm: 'chat-sdk:dm:42', group: 'chat-sdk:group:-100:42', thread: 'chat-sdk:thread:-1001:5' },
  // The adapter waits a second for the rest of an album, and what comes behind it waits as well.
  samples: readSamples('telegram')
    .map(({ payload }) => payload)
    .filter((payload) => !JSON.stringify(payload).includes('media_group_id')),
};

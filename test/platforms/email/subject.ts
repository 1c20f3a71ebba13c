import { descriptor } from '../../../src/platforms/email/descriptor.ts';
import type { Plays } from '../contract/scene.ts';
import { readSamples } from '../samples.ts';
import type { PlatformSubject } from '../subject.ts';
import { EmailWorld, rootOf } from './world.ts';

const plays: Plays = {
  ...{
    acknowledgement: true,
    changes: false,
    echoes: true,
    repetition: true,
    groups: false,
    refusals: true,
    cuts: true,
  },
  ...{ backfill: true, credential: true, lostAnswers: true, searched: true },
};

export const subject: PlatformSubject = {
  descriptor,
  modes: [
    { title: 'told by IDLE', plays, open: () => EmailWorld.open() },
    { title: 'asked for news', plays, open: () => EmailWorld.open({ idle: false }) },
  ],
  keys: { thread: `email:thread:${rootOf(0)}` },
  samples: readSamples('email').map(({ payload }) => payload),
};

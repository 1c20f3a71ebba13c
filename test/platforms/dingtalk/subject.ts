import { MESSAGE_ABILITIES } from '../../../src/platforms/dingtalk/abilities.ts';
import { descriptor } from '../../../src/platforms/dingtalk/descriptor.ts';
import type { Plays } from '../contract/scene.ts';
import { readSamples } from '../samples.ts';
import type { PlatformSubject } from '../subject.ts';
import { DingtalkWorld } from './world.ts';

const plays: Plays = {
  ...{ acknowledgement: true, changes: false, echoes: true, repetition: true, refusals: true, cuts: true },
  // Only what names the robot is brought.
  groups: false,
  ...{ credential: true, lostAnswers: true },
  happenings: ['removed', 'joined'],
};

export const subject: PlatformSubject = {
  descriptor,
  modes: [
    { title: 'with AI cards', plays, open: () => DingtalkWorld.open({ card: true }) },
    {
      title: 'with messages alone',
      plays,
      abilities: MESSAGE_ABILITIES,
      open: () => DingtalkWorld.open({ card: false }),
    },
  ],
  keys: { dm: 'dingtalk:dm:staff42', group: 'dingtalk:group:cidGroup1==:staff42' },
  samples: readSamples('dingtalk').map(({ payload }) => payload),
};

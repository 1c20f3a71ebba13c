import { descriptor } from '../../../src/platforms/slack/descriptor.ts';
import type { Plays } from '../contract/scene.ts';
import { readSamples } from '../samples.ts';
import type { PlatformSubject } from '../subject.ts';
import { SlackWorld } from './world.ts';

const plays: Plays = {
  ...{ acknowledgement: true, changes: true, echoes: true, repetition: true, groups: true, refusals: true },
  ...{ cuts: true, credential: true, lostAnswers: true, searched: true },
  happenings: ['added', 'removed', 'deleted', 'reaction', 'joined'],
};

export const subject: PlatformSubject = {
  descriptor,
  modes: [
    { title: 'by socket', plays: { ...plays, backfill: true }, open: () => SlackWorld.open('socket') },
    {
      title: 'by signed requests',
      plays: { ...plays, forgeries: ['unsigned', 'forged', 'stale'] },
      open: () => SlackWorld.open('http'),
    },
  ],
  keys: {
    dm: 'slack:dm:T1:D42:1760000000.001100',
    group: 'slack:channel:T1:C1:U42',
    thread: 'slack:thread:T1:C1:1760000000.002100',
  },
  samples: readSamples('slack').map(({ payload }) => payload),
};

import { descriptor } from '../../../src/platforms/matrix/descriptor.ts';
import type { Plays } from '../contract/scene.ts';
import { readSamples } from '../samples.ts';
import type { PlatformSubject } from '../subject.ts';
import { MatrixWorld } from './world.ts';

const plays: Plays = {
  ...{ acknowledgement: true, changes: true, echoes: true, repetition: true, groups: true, refusals: true, cuts: true },
  ...{ backfill: true, credential: true, lostAnswers: true },
  happenings: ['added', 'removed', 'deleted', 'reaction', 'joined'],
};

export const subject: PlatformSubject = {
  descriptor,
  modes: [{ title: 'asked for what is new', plays, open: () => MatrixWorld.open() }],
  keys: {
    dm: 'matrix:dm:!dm0%3Aexample.org',
    group: 'matrix:group:!group%3Aexample.org:@person0%3Aexample.org',
    thread: 'matrix:thread:!forum%3Aexample.org:$root',
  },
  samples: readSamples('matrix').map(({ payload }) => payload),
};

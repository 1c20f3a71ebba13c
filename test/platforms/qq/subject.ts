import { descriptor } from '../../../src/platforms/qq/descriptor.ts';
import type { Plays } from '../contract/scene.ts';
import { readSamples } from '../samples.ts';
import type { PlatformSubject } from '../subject.ts';
import { GROUP, memberId, personId, QqWorld } from './world.ts';

/** There is no history to ask: what is said while QQ knows no session is not brought, so there is no `backfill`. */
const plays: Plays = {
  ...{ acknowledgement: true, changes: false, echoes: true, repetition: true, groups: true, refusals: true },
  ...{ cuts: true, credential: true, lostAnswers: true, window: true },
  happenings: ['added', 'removed'],
};

export const subject: PlatformSubject = {
  descriptor,
  modes: [
    { title: 'by websocket', plays, open: () => QqWorld.open('websocket') },
    {
      title: 'by webhook',
      plays: { ...plays, cuts: false, forgeries: ['unsigned', 'forged', 'stale'] },
      open: () => QqWorld.open('webhook'),
    },
  ],
  keys: { dm: `qq:dm:${personId(0)}`, group: `qq:group:${GROUP}:${memberId(0)}` },
  samples: readSamples('qq').map(({ payload }) => payload),
};

import { descriptor } from '../../../src/platforms/whatsapp/descriptor.ts';
import type { Plays } from '../contract/scene.ts';
import { readSamples } from '../samples.ts';
import type { PlatformSubject } from '../subject.ts';
import { WhatsAppWorld } from './world.ts';

const plays: Plays = {
  ...{ acknowledgement: true, changes: false, echoes: true, repetition: true, groups: false, refusals: true },
  ...{ cuts: true, credential: true, lostAnswers: true, window: true },
  happenings: ['reaction'],
  forgeries: ['unsigned', 'forged', 'stale'],
};

/** The samples are of one day; a server brings nothing that is older than a week. */
function ofToday(payload: Record<string, unknown>): Record<string, unknown> {
  const now = String(Math.floor(Date.now() / 1000));
  return JSON.parse(JSON.stringify(payload).replaceAll(/(?<="timestamp":")\d+/g, now)) as Record<string, unknown>;
}

export const subject: PlatformSubject = {
  descriptor,
  modes: [{ title: 'by webhook', plays, open: () => WhatsAppWorld.open() }],
  keys: { dm: 'whatsapp:dm:106540352242922:15550001000' },
  samples: readSamples('whatsapp').map(({ payload }) => ofToday(payload)),
};

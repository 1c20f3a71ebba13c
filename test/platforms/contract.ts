import { describe } from 'vitest';
import { connectingContract } from './contract/connecting.ts';
import { receivingContract } from './contract/receiving.ts';
import type { PlatformUnderTest } from './contract/scene.ts';
import { sendingContract } from './contract/sending.ts';
import { streamingContract } from './contract/streaming.ts';
import { type SubmissionSubject, submittingContract } from './contract/submitting.ts';
import { driverIn, type PlatformSubject } from './subject.ts';

/** What every platform does, as far as it says that it can. */
export function platformContract(name: string, under: PlatformUnderTest): void {
  describe(`${name}:`, () => {
    connectingContract(under);
    receivingContract(under);
    sendingContract(under);
    streamingContract(under);
  });
}

/** The same in each of the ways in which a platform can be connected. */
export function contractOf(subject: PlatformSubject | SubmissionSubject): void {
  const { label, abilities } = subject.descriptor;
  if ('kind' in subject) {
    for (const mode of subject.modes) submittingContract(subject, mode);
    return;
  }
  for (const { title, plays, open } of subject.modes) {
    const makeDriver = async () => driverIn(await open(), subject);
    platformContract(`${label}, ${title}`, { abilities, plays, makeDriver });
  }
}

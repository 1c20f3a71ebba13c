import { describe } from 'vitest';
import { connectingContract } from './contract/connecting.ts';
import { receivingContract } from './contract/receiving.ts';
import type { PlatformUnderTest } from './contract/scene.ts';
import { sendingContract } from './contract/sending.ts';

/** What every platform does, as far as it says that it can. */
export function platformContract(name: string, under: PlatformUnderTest): void {
  describe(`${name}:`, () => {
    connectingContract(under);
    receivingContract(under);
    sendingContract(under);
  });
}

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, test } from 'vitest';
import type { Incoming } from '../../src/platforms/platform.ts';
import { RUN_ALL } from '../support/share.ts';
import { TestInbox, until } from './contract/scene.ts';
import { oddPayloads } from './odd-payloads.ts';
import { driverIn, type PlatformSubject } from './subject.ts';

const ROUNDS = RUN_ALL ? 100 : 20;
const PER_ROUND = 100;
/** Less than the payloads themselves. */
export const MOST_GROWTH_BYTES = 10_000_000;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

/** What is held, without what only waits to be collected. */
export function liveBytes(): number {
  collectGarbage();
  return process.memoryUsage().heapUsed;
}

/** Whatever came in, this is what the gateway may rely on. */
function isRight({ id, text, place, files }: Incoming): boolean {
  const isText = typeof id === 'string' && typeof place.chat === 'string' && text.isWellFormed();
  return isText && text.length < 40_000 && files.every(({ name }) => name === null || !/[/\\]/.test(name));
}

/** 10,000 payloads that no server of the platform would send come over its own way, through its real library. */
export function fuzzOf(subject: PlatformSubject): void {
  for (const { title, open } of subject.modes) {
    test(`${ROUNDS * PER_ROUND} odd payloads of ${subject.descriptor.label}, ${title}, stop nothing and leave no memory behind`, async () => {
      const world = await open();
      const payload = oddPayloads(subject.samples);
      await using driver = await driverIn(world, subject);
      const inbox = new TestInbox();
      const sane = new Set<string>();
      // What is taken is looked at and let go: the inbox must not be what grows.
      const wrong: Incoming[] = [];
      inbox.receive = async (message) => {
        if (!isRight(message)) wrong.push(message);
        if (message.text.startsWith('sane ')) sane.add(message.text);
      };
      inbox.happened = async () => undefined;
      inbox.press = async () => null;
      await driver.platform.start(inbox);
      await until(() => driver.platform.state.phase === 'connected', 'connected');
      const memory: number[] = [];
      for (let round = 0; round < ROUNDS; round += 1) {
        for (let index = 0; index < PER_ROUND; index += 1) await world.push(payload());
        await world.say({ text: `sane ${round}` });
        await until(() => sane.has(`sane ${round}`), 'the one behind them', 30_000);
        if (round % 5 === 4) memory.push(liveBytes());
      }
      expect(wrong).toEqual([]);
      expect(driver.platform.state.phase).toBe('connected');
      expect(memory.at(-1)! - memory[0]!).toBeLessThan(MOST_GROWTH_BYTES);
      const told = driver.warnings.join('\n');
      for (const secret of world.secrets) expect(told).not.toContain(secret);
    }, 180_000);
  }
}

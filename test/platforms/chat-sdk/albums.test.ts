import { expect, test } from 'vitest';
import { openStarted, until } from '../contract/scene.ts';
import { driverIn } from '../subject.ts';
import { subject } from './subject.ts';
import { TelegramAdapterWorld } from './world.ts';

async function openScene() {
  const [mode] = subject.modes;
  const world = await TelegramAdapterWorld.open();
  // The adapter counts its second by the clock of the machine.
  const makeDriver = () => driverIn(world, subject, 1);
  const scene = await openStarted({ abilities: subject.descriptor.abilities, plays: mode!.plays, makeDriver });
  const photo = (n: number, caption?: string) => {
    const fields = {
      media_group_id: 'album',
      photo: [{ file_id: `p${n}`, file_unique_id: `u${n}`, width: 1, height: 1 }],
    };
    return world.fake.message({ fields: { ...fields, ...(caption === undefined ? {} : { caption }) } });
  };
  const pieces = [photo(1, 'look'), photo(2)];
  let update = 1;
  /** The server brings pieces beside each other, and so does this. */
  const bring = () => Promise.all(pieces.map((message) => world.post({ update_id: update++, message })));
  return { ...scene, bring };
}

test('an album that comes in pieces is one message, and its pieces are acknowledged together or not at all', async () => {
  await using scene = await openScene();
  scene.inbox.refuseNext();
  expect(await scene.bring()).toEqual([503, 503]);
  expect(await scene.bring()).toEqual([200, 200]);
  await until(() => scene.inbox.received.length === 1, 'the album');
  expect(scene.inbox.received).toMatchObject([{ text: 'look', files: [{ kind: 'image' }, { kind: 'image' }] }]);
});

import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { PlatformDescriptor } from '../../../src/platforms/descriptor.ts';
import { SendFailure } from '../../../src/platforms/platform.ts';
import type { Section } from '../../../src/settings/declaration.ts';
import { patience } from '../../support/patience.ts';
import { makerOf, openDoor } from '../subject.ts';
import { never, TestInbox, until } from './scene.ts';

/** How a delivery can be none of the sender's: `changed` is one whose body was changed after it was signed. */
export type SubmissionForgery = 'unsigned' | 'forged' | 'changed' | 'stale';

export interface Answer {
  readonly status: number;
  /** As JSON. */
  readonly body: Readonly<Record<string, unknown>>;
}

/** A program that brings work, on loopback. */
export interface SubmissionWorld {
  /** What stands under `platforms.<name>`; the route sends its results to `home`. */
  readonly settings: Readonly<Record<string, unknown>>;
  readonly secrets: readonly string[];
  readonly route: string;
  /** Where it brings what it has, such as `http://host/platforms/webhook`. */
  bringTo(url: string): void;
  /** One attempt at a delivery that says `text`; returns the answer. */
  bring(text: string, id: string): Promise<Answer>;
  /** The very bytes of the last attempt again. */
  bringAgain(): Promise<Answer>;
  forge(how: SubmissionForgery, text: string): Promise<Answer>;
  /** To a way in that nobody opened. */
  bringElsewhere(text: string): Promise<Answer>;
}

/** A platform on which nobody talks: programs bring work. */
export interface SubmissionSubject {
  readonly kind: 'submissions';
  readonly descriptor: PlatformDescriptor<string, Section>;
  readonly modes: readonly SubmissionMode[];
}

export interface SubmissionMode {
  readonly title: string;
  readonly forgeries: readonly SubmissionForgery[];
  open(): SubmissionWorld;
}

/** What programs bring is what the inbox gets, once it has shown whose it is; in each of the ways to show that. */
export function submittingContract({ descriptor }: SubmissionSubject, mode: SubmissionMode): void {
  const open = () => openScene(descriptor, mode);

  describe(`${descriptor.label}, ${mode.title}:`, () => {
    test('it is stopped, then connected, then stopped, and starts again', async () => {
      await using scene = await open();
      const { platform, inbox, world } = scene;
      expect(platform.abilities).toEqual(descriptor.abilities);
      expect(platform.state).toEqual({ phase: 'connected', problem: null, lastSuccessAt: null });
      await world.bring('hello', 'd1');
      expect(platform.state.lastSuccessAt).not.toBeNull();
      const started = performance.now();
      await platform.stop();
      await platform.stop();
      expect(performance.now() - started).toBeLessThan(patience(2000));
      expect(platform.state.phase).toBe('stopped');
      expect(await world.bring('nobody is there', 'd2')).toMatchObject({ status: 503 });
      await platform.start(inbox);
      expect(await world.bring('nobody is there', 'd2')).toMatchObject({ status: 202 });
      expect(inbox.submissions.map(({ text }) => text)).toEqual(['hello', 'nobody is there']);
      expect(inbox.changes).toBe(3);
    });

    test('a delivery is submitted with its words and its name, and answered with what became of it', async () => {
      await using scene = await open();
      const { status, body } = await scene.world.bring('the disk is full', 'd1');
      const [submission] = scene.inbox.submissions;
      expect(submission).toMatchObject({ route: scene.world.route, text: 'the disk is full', deliver: 'home' });
      expect(submission?.agent).toBe(true);
      const { route, id } = submission!;
      expect([status, body]).toEqual([202, { turn_id: `trn_${route}_${id}`, session_id: `ses_${route}_${id}` }]);
    });

    test('it is answered only when the inbox has it', async () => {
      await using scene = await open();
      const release = scene.inbox.hold();
      const answered = scene.world.bring('precious', 'd1');
      expect(await Promise.race([answered, sleep(100, 'waiting')])).toBe('waiting');
      release();
      expect(await answered).toMatchObject({ status: 202 });
    });

    test('what the inbox could not take is refused so that it is brought again, and is then taken', async () => {
      await using scene = await open();
      scene.inbox.refuseNext();
      const { status, body } = await scene.world.bring('precious', 'd1');
      expect([status, Object.keys(body.error as object)]).toEqual([503, ['code', 'message', 'hint']]);
      expect(JSON.stringify(body)).not.toContain('cannot take it now');
      expect(await scene.world.bring('precious', 'd1')).toMatchObject({ status: 202 });
      expect(scene.inbox.submissions).toHaveLength(1);
    });

    test('what is brought again is answered with what became of it then: signed anew, or the very same bytes', async () => {
      await using scene = await open();
      const first = await scene.world.bring('once', 'd1');
      expect(await scene.world.bring('once', 'd1')).toEqual({ ...first, status: 200 });
      expect(await scene.world.bringAgain()).toEqual({ ...first, status: 200 });
      expect(await scene.world.bring('another', 'd2')).toMatchObject({ status: 202 });
      expect(scene.inbox.submissions.map(({ text }) => text)).toEqual(['once', 'another']);
    });

    for (const how of mode.forgeries) {
      test(`what is not the sender's is refused, whatever it says: ${how}`, async () => {
        await using scene = await open();
        const { status, body } = await scene.world.forge(how, 'forged');
        expect([status, (body.error as { code: string }).code]).toEqual([401, 'webhook_refused']);
        expect(await scene.world.bring('real', 'd1')).toMatchObject({ status: 202 });
        expect(scene.inbox.submissions.map(({ text }) => text)).toEqual(['real']);
      });
    }

    test('a way in that nobody opened is not found', async () => {
      await using scene = await open();
      expect(await scene.world.bringElsewhere('hello')).toMatchObject({
        status: 404,
        body: { error: { code: 'not_found' } },
      });
      expect(scene.inbox.submissions).toEqual([]);
    });

    test('stopping lets the inbox finish what it has', async () => {
      await using scene = await open();
      const release = scene.inbox.hold();
      const answered = scene.world.bring('begun', 'd1');
      await sleep(100);
      const stopped = scene.platform.stop();
      expect(await Promise.race([stopped.then(() => 'stopped'), sleep(50, 'waiting')])).toBe('waiting');
      release();
      await stopped;
      expect(await answered).toMatchObject({ status: 202 });
    });

    test('nothing can be sent there, and trying again has no use', async () => {
      await using scene = await open();
      const place = { type: 'dm', chat: scene.world.route } as const;
      const failure = await scene.platform.send(place, { text: 'hello' }, never).catch((thrown: unknown) => thrown);
      expect(failure).toBeInstanceOf(SendFailure);
      expect((failure as SendFailure).retryAfterMs).toBeNull();
    });

    test('it says where its ways in are, and tells no secret of theirs', async () => {
      await using scene = await open();
      const identity = await scene.platform.identify!(never);
      expect(identity).toContain(`/platforms/${descriptor.name}/${scene.world.route}`);
      scene.inbox.refuseNext();
      const answers = [await scene.world.bring('x', 'd1'), await scene.world.forge('forged', 'x')];
      const told = [identity, JSON.stringify(answers), ...scene.warnings].join('\n');
      for (const secret of scene.world.secrets) expect(told).not.toContain(secret);
    });
  });
}

/** A platform that takes what a sender brings to a port. */
export async function openScene(descriptor: SubmissionSubject['descriptor'], mode: Pick<SubmissionMode, 'open'>) {
  const world = mode.open();
  // Its time is that of the sender, who signs with it.
  const { make, warnings } = makerOf(descriptor, world.settings, 1);
  const platform = await make();
  const door = await openDoor(() => platform);
  world.bringTo(`${door.url}/platforms/${descriptor.name}`);
  const inbox = new TestInbox();
  await platform.start(inbox);
  await until(() => platform.state.phase === 'connected', 'connected');
  const close = async () => {
    await platform.stop();
    await door.close();
  };
  return { world, platform, inbox, warnings, [Symbol.asyncDispose]: close };
}

import { describe, expect, test } from 'vitest';
import type { Abilities } from '../../src/platforms/platform.ts';
import { until } from '../cli/cli-fixture.ts';
import type { HttpFake } from '../fakes/http-fake.ts';
import type { ModelScript } from '../fakes/model-script.ts';
import { startOpenAiServer } from '../fakes/openai-server.ts';
import { GatewayProcess } from '../gateway/process.ts';
import { lastUserLine } from '../gateway/user-lines.ts';
import { RUN_ALL } from '../support/share.ts';
import type { Shown, World } from './contract/scene.ts';
import type { PlatformMode, PlatformSubject } from './subject.ts';

/** What the gateway says behind a reply that it may have sent before. */
const MAYBE_AGAIN = '(This may be a repetition: I was interrupted while sending it.)';
const [CHATS, MESSAGES] = RUN_ALL ? [20, 10] : [5, 4];
const PATIENCE_MS = 120_000;

/** A gateway process with a model that says what it was told, connected to a world. */
export class PlatformScene implements AsyncDisposable {
  readonly world: World;
  readonly model: HttpFake;
  readonly gateway: GatewayProcess;
  readonly #name: string;

  private constructor(subject: PlatformSubject, world: World, model: HttpFake, settings: Record<string, unknown>) {
    this.#name = subject.descriptor.name;
    this.world = world;
    this.model = model;
    const { platform = {}, ...rest } = settings as { platform?: object };
    this.gateway = new GatewayProcess({
      model: { base_url: model.url, name: 'fake-model', api_key: 'key' },
      platforms: { [this.#name]: { ...world.settings, ...platform } },
      ...{ access: { allow: ['*'], admins: ['*'] }, memory: { provider: 'none' }, display: { streaming: false } },
      ...rest,
    });
  }

  static async open(
    subject: PlatformSubject,
    { open }: PlatformMode,
    settings: Record<string, unknown> = {},
    script: ModelScript = ({ body }) => ({ text: `did: ${lastUserLine(body.messages)}` }),
  ): Promise<PlatformScene> {
    const scene = new PlatformScene(subject, await open(), await startOpenAiServer(script), settings);
    await scene.start();
    return scene;
  }

  async start(): Promise<void> {
    await this.gateway.start();
    this.world.bringTo?.(`${this.gateway.url}/platforms/${this.#name}`);
  }

  async kill(): Promise<void> {
    this.world.bringTo?.(null);
    await this.gateway.end('SIGKILL');
  }

  /** What one person sees in their direct chat, oldest first. */
  shownTo(person: number): readonly Shown[] {
    const { chat } = this.world.place('dm', person);
    return this.world.shown().filter((shown) => shown.chat === undefined || shown.chat === chat);
  }

  async until(what: string, condition: () => boolean | Promise<boolean>, ms = 20_000): Promise<void> {
    await until(what, condition, ms).catch((error: unknown) => {
      throw new Error(`${String(error)}\nshown: ${JSON.stringify(this.world.shown())}\nlog: ${this.gateway.log}`);
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.gateway.close();
    await this.world[Symbol.asyncDispose]();
    await this.model.close();
  }
}

/** What the gateway does with a platform, whichever it is. */
export function gatewayOf(subject: PlatformSubject): void {
  const { label } = subject.descriptor;
  const [usual, ...others] = subject.modes;
  if (usual === undefined) throw new TypeError(`${label} has no mode`);
  for (const mode of [usual, ...others.filter(({ abilities }) => abilities !== undefined)]) {
    describe(mode === usual ? `${label} at a gateway:` : `${label}, ${mode.title}, at a gateway:`, () => {
      conversations(subject, mode);
      people(subject, mode);
      growing(subject, mode);
    });
  }
  for (const mode of subject.modes) killed(subject, mode);
}

function abilitiesIn({ descriptor }: PlatformSubject, mode: PlatformMode): Abilities {
  return mode.abilities ?? descriptor.abilities;
}

function conversations(subject: PlatformSubject, mode: PlatformMode): void {
  const abilities = abilitiesIn(subject, mode);

  test.each(Object.entries(subject.keys))('what is said in a %s is a session of the key %s', async (where, key) => {
    await using scene = await PlatformScene.open(subject, mode, { platform: { require_mention: false } });
    await scene.world.say({ text: 'hello', where: where as 'dm' });
    await scene.until('the answer', () => scene.world.shown().some(({ text }) => text.includes('did: hello')));
    const { data } = await scene.gateway.get<{ data: { key: string }[] }>('/v1/sessions');
    expect(data.map((session) => session.key)).toEqual([`agent:main:${key}`]);
    const shown = scene.world.shown().find(({ text }) => text.includes('did: hello'));
    const { thread } = scene.world.place(where as 'dm');
    if (thread !== undefined) expect(shown?.thread).toBe(thread);
  });

  if (abilities.files.in) {
    test('a file is saved for the agent, which is told where', async () => {
      await using scene = await PlatformScene.open(subject, mode);
      const bytes = new TextEncoder().encode('a,b\n1,2\n');
      await scene.world.say({ text: 'look', file: { name: 'table.csv', mime: 'text/csv', bytes } });
      await scene.until('the answer', () => scene.world.shown().some(({ text }) => text.includes('did: look')));
      expect(JSON.stringify(scene.model.requests.at(-1)?.body.messages)).toMatch(
        /A file table\.csv, saved as received/,
      );
    });
  }

  if (abilities.files.out) {
    test('a file that the agent makes and sends arrives, before its reply', async () => {
      const calls: ModelScript = ({ body }) => {
        const done = body.messages.filter(({ role }) => role === 'tool').length;
        if (done === 0) return { toolCalls: [{ name: 'write_file', args: { path: 'table.csv', text: 'a,b\n1,2\n' } }] };
        if (done === 1) return { toolCalls: [{ name: 'send_file', args: { path: 'table.csv', text: 'the table' } }] };
        return { text: `done: ${String(body.messages.at(-1)?.content)}` };
      };
      await using scene = await PlatformScene.open(subject, mode, {}, calls);
      await scene.world.say({ text: 'make a table' });
      await scene.until('the reply', () => scene.world.shown().some(({ text }) => text.includes('done: On its way')));
      const shown = scene.world.shown();
      const at = shown.findIndex(({ files }) => files.length > 0);
      expect(shown[at]?.files.map(({ name, bytes }) => [name, Buffer.from(bytes).toString()])).toEqual([
        ['table.csv', 'a,b\n1,2\n'],
      ]);
      expect(shown.slice(0, at + 1).some(({ text }) => text.includes('the table'))).toBe(true);
      expect(at).toBeLessThan(shown.findIndex(({ text }) => text.includes('done: On its way')));
    });
  }

  if (abilities.reactions) {
    test('a sign at the message says that it is being answered, and then another one that it was', async () => {
      const slow: ModelScript = () => ({ text: 'one two three four five six seven eight', betweenMs: 150 });
      await using scene = await PlatformScene.open(subject, mode, { display: { reactions: true } }, slow);
      const messageId = await scene.world.say({ text: 'hello' });
      const signs = (): readonly string[] => scene.world.reactions!(messageId);
      await scene.until('a sign', () => signs().length === 1);
      const [seen] = signs();
      await scene.until('the other sign', () => signs().length === 1 && signs()[0] !== seen);
      await scene.until('the answer', () => scene.world.shown().some(({ text }) => text.includes('seven eight')));
    });
  }
}

function people(subject: PlatformSubject, mode: PlatformMode): void {
  const { name } = subject.descriptor;
  const abilities = abilitiesIn(subject, mode);
  const isDirect = subject.keys.dm !== undefined;

  test('a stranger is not answered; who was let in by a code is', async () => {
    await using scene = await PlatformScene.open(subject, mode, { access: { allow: [], admins: [] } });
    await scene.world.say({ text: 'let me in' });
    if (!isDirect) {
      // A code is told only where nobody else reads it.
      await scene.until('the refusal', () => scene.gateway.log.includes('turned away'));
      expect(scene.world.shown()).toEqual([]);
      return;
    }
    await scene.until('the code', () => scene.world.shown().length === 1);
    const [, code] = /moirai pairing approve (?:\S+ )?([A-Z0-9]{6,})/.exec(scene.world.shown()[0]?.text ?? '') ?? [];
    const { output } = await scene.gateway.moirai('pairing', 'approve', name, code ?? '');
    expect(output).toContain('may talk to the agent now');
    await scene.world.say({ text: 'hello' });
    await scene.until('the answer', () => scene.world.shown().some(({ text }) => text.includes('did: hello')));
    expect(scene.world.shown().some(({ text }) => text.includes('let me in'))).toBe(false);
  });

  test('what the agent may not do alone is asked, and the answer is obeyed', async () => {
    const script: ModelScript = ({ body }) =>
      body.messages.at(-1)?.role === 'tool'
        ? { text: `done: ${String(body.messages.at(-1)?.content)}` }
        : { toolCalls: [{ name: 'run_command', args: { command: 'echo allowed' } }] };
    await using scene = await PlatformScene.open(subject, mode, {}, script);
    await scene.world.say({ text: 'do it' });
    await scene.until('the question', () => scene.world.shown().some(({ text }) => text.includes('Allow this?')));
    const question = scene.world.shown().find(({ text }) => text.includes('Allow this?'))!;
    if (abilities.buttons) {
      expect(question.buttons.length).toBeGreaterThanOrEqual(2);
      const { data } = await scene.gateway.get<{ data: { id: string }[] }>('/v1/approvals');
      expect(await scene.world.press!(question.messageId, `approval:once:${data[0]?.id}`)).toBe('Allowed.');
    } else {
      expect(question.buttons).toEqual([]);
      await scene.world.say({ text: '/approve' });
    }
    await scene.until('the result', () => scene.world.shown().some(({ text }) => /done: .*allowed/s.test(text)));
  });
}

function growing(subject: PlatformSubject, mode: PlatformMode): void {
  const abilities = abilitiesIn(subject, mode);
  if (!abilities.edit && !abilities.streams) return;
  const words = Array.from({ length: 40 }, (_, word) => `word${word}`).join(' ');
  const slow: ModelScript = () => ({ text: words, betweenMs: 100 });

  test('a reply grows while it is written, and is one message in the end', async () => {
    await using scene = await PlatformScene.open(subject, mode, { display: { streaming: true } }, slow);
    await scene.world.say({ text: 'tell me' });
    await scene.until('a part of it', () => isPart(scene.shownTo(0)[0]?.text, words));
    await scene.until('the whole', () => scene.shownTo(0)[0]?.text === words && isFinished(scene.shownTo(0)[0]));
    expect(scene.shownTo(0)).toHaveLength(1);
  });

  test('a reply that was growing when its process was killed is finished in the same message', async () => {
    await using scene = await PlatformScene.open(subject, mode, { display: { streaming: true } }, slow);
    await scene.world.say({ text: 'tell me' });
    await scene.until('a part of it', () => isPart(scene.shownTo(0)[0]?.text, words));
    // It is changed only once the next process can know of it.
    const first = scene.shownTo(0)[0]?.text;
    await scene.until('more of it', () => scene.shownTo(0)[0]?.text !== first);
    await scene.kill();
    await scene.start();
    await scene.until(
      'the whole',
      () => scene.shownTo(0).some((shown) => shown.text === words && isFinished(shown)),
      60_000,
    );
    expect(scene.shownTo(0)).toHaveLength(1);
  });
}

function isPart(text: string | undefined, whole: string): boolean {
  return text !== undefined && text !== '' && text !== whole && whole.startsWith(text.trim());
}

function isFinished(shown: Shown | undefined): boolean {
  return shown?.stream !== 'open';
}

/**
 * Many people talk while the process is killed: in the middle, and at the very moment the server has taken a reply. What was
 * not acknowledged comes again. Everything is answered, in order; twice at most where the platform cannot know better, and
 * then it says so.
 */
function killed(subject: PlatformSubject, mode: PlatformMode): void {
  const { label } = subject.descriptor;
  const abilities = abilitiesIn(subject, mode);
  const total = CHATS * MESSAGES;

  test(`${label}, ${mode.title}: ${total} messages in ${CHATS} chats through two kills and a cut are answered, in order`, async () => {
    await using scene = await PlatformScene.open(subject, mode);
    const { world } = scene;
    const answered = (): number => {
      return Array.from({ length: CHATS }, (_, chat) => answersIn(scene, chat).length).reduce((sum, n) => sum + n, 0);
    };
    const person = async (chat: number): Promise<void> => {
      for (let n = 0; n < MESSAGES; n += 1) {
        await world.say({ text: textOf(chat, n), person: chat });
        await scene.until(
          `answer ${n} in ${chat}`,
          () => answersIn(scene, chat).includes(`did: ${textOf(chat, n)}`),
          PATIENCE_MS,
        );
      }
    };
    const trouble = async (): Promise<void> => {
      await scene.until('a fifth', () => answered() >= total / 5, PATIENCE_MS);
      await new Promise<void>((resolve) => {
        world.onTaken(() => {
          world.onTaken(null);
          process.kill(scene.gateway.pid, 'SIGKILL');
          resolve();
        });
      });
      await scene.kill();
      await scene.start();
      await scene.until('half', () => answered() >= total / 2, PATIENCE_MS);
      await scene.kill();
      await scene.start();
      await scene.until('most', () => answered() >= (total * 3) / 4, PATIENCE_MS);
      world.cut?.();
    };
    await Promise.all([trouble(), ...Array.from({ length: CHATS }, (_, chat) => person(chat))]);
    for (let chat = 0; chat < CHATS; chat += 1) {
      const expected = Array.from({ length: MESSAGES }, (_, n) => `did: ${textOf(chat, n)}`);
      expect(answersIn(scene, chat)).toEqual(expected);
    }
    const repeated = world.shown().filter(({ text }) => text.includes(MAYBE_AGAIN));
    // What one process was sending when it was killed, each time.
    const knows = abilities.idempotent || mode.plays.searched;
    expect(repeated.length).toBeLessThanOrEqual(knows ? 0 : CHATS * 2);
  }, 300_000);
}

function textOf(chat: number, n: number): string {
  return `message ${n} of ${chat}`;
}

/** What one person was answered, what says that it may be a repetition left out if it is one. */
function answersIn(scene: PlatformScene, person: number): string[] {
  const answers: string[] = [];
  for (const { text } of scene.shownTo(person)) {
    const [words = ''] = text.split(MAYBE_AGAIN);
    const answer = words.trim();
    if (text.includes(MAYBE_AGAIN) && answers.includes(answer)) continue;
    answers.push(answer);
  }
  return answers;
}

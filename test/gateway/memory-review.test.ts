import { afterEach, describe, expect, test } from 'vitest';
import { REVIEW_SUBSCRIBER } from '../../src/memory/memory-review.ts';
import type { MemoryProvider, MemoryScope } from '../../src/memory/provider.ts';
import type { HttpFake, RecordedRequest } from '../fakes/http-fake.ts';
import type { ScriptedReply } from '../fakes/model-script.ts';
import { questions, startOpenAiServer } from '../fakes/openai-server.ts';
import { patience } from '../support/patience.ts';
import { direct, MemoryScene } from './memory-scene.ts';

let scene: MemoryScene;
let model: HttpFake | null = null;

afterEach(async () => {
  await scene.close();
  await model?.close();
  model = null;
});

/** Keeps what it is told, for whom. */
class Notebook implements MemoryProvider {
  readonly name = 'notebook';
  readonly facts: string[] = [];
  readonly scopes: MemoryScope[] = [];
  block = 'they like plums';

  systemPromptBlock(): string {
    return this.block;
  }

  remember(fact: string, scope: MemoryScope): void {
    this.facts.push(fact);
    this.scopes.push(scope);
  }
}

const isReview = ({ body }: RecordedRequest): boolean => String(body.messages.at(-1)?.content).includes('Look over');

const reviews = (): RecordedRequest[] => questions(model!).filter(isReview);
const turns = (): RecordedRequest[] => questions(model!).filter((request) => !isReview(request));

/** Everything of a body up to the end of its last message: what a later one must begin with. */
function readAlready({ raw, body }: RecordedRequest): string {
  const messages = JSON.stringify(body.messages).slice(0, -1);
  return raw.slice(0, raw.indexOf(messages) + messages.length);
}

async function begin(
  reviewed: (index: number) => ScriptedReply,
  { every = 10, window = null }: { every?: number; window?: number | null } = {},
): Promise<Notebook> {
  const notebook = new Notebook();
  let index = 0;
  model = await startOpenAiServer((request) => (isReview(request) ? reviewed(index++) : { text: 'ok' }));
  scene = await MemoryScene.open(
    {
      model: { base_url: model.url, name: 'fake-model', api_key: 'key', context_window: window },
      memory: { provider: 'notebook', review_every: every },
    },
    { real: true, providers: [notebook] },
  );
  return notebook;
}

const idle = async (): Promise<boolean> => (await scene.subscriber(REVIEW_SUBSCRIBER))?.lag === 0;

describe('a conversation is looked over', () => {
  test('after ten turns, after twenty, and at its end, behind the very bytes that were sent before', async () => {
    const notebook = await begin((i) => ({ text: `- learnt ${i}\n- and more ${i}` }));
    const conversation = direct('1');
    for (let i = 1; i <= 23; i += 1) {
      notebook.block = `changed ${i}`;
      await scene.ask(conversation, `question ${i}`);
      if (i % 10 === 0) await scene.until('it was looked over', () => notebook.facts.length === i / 5);
      if (i === 15) {
        await scene.stop();
        await scene.start();
      }
    }
    await scene.end(conversation);
    await scene.until('it was looked over at its end', () => notebook.facts.length === 6);
    await scene.until('all was handed out', idle);
    expect(notebook.facts).toEqual(['learnt 0', 'and more 0', 'learnt 1', 'and more 1', 'learnt 2', 'and more 2']);
    expect(new Set(notebook.scopes.map(({ userId }) => userId))).toEqual(new Set(['1']));
    expect(turns()).toHaveLength(23);
    expect(reviews()).toHaveLength(3);
    for (const [i, turn] of [10, 20, 23].entries()) {
      expect(reviews()[i]!.raw.startsWith(readAlready(turns()[turn - 1]!))).toBe(true);
      expect(reviews()[i]!.body.tools).toEqual(turns()[turn - 1]!.body.tools);
    }
    for (let i = 1; i < 23; i += 1) expect(turns()[i]!.raw.startsWith(readAlready(turns()[i - 1]!))).toBe(true);
    expect(turns()[0]!.raw).toContain('changed 1');
  }, 60_000);

  test('at its end only when something was said since, and never when it is deleted', async () => {
    const notebook = await begin(() => ({ text: 'learnt' }), { every: 2 });
    for (const text of ['one', 'two']) await scene.ask(direct('1'), text);
    await scene.until('after two', () => reviews().length === 1);
    await scene.end(direct('1'));
    await scene.ask(direct('2'), 'one');
    await scene.gateway.engine.delete(await scene.sessionId(direct('2')), 'api');
    await scene.until('all was handed out', idle);
    expect(reviews()).toHaveLength(1);
    expect(notebook.facts).toEqual(['learnt']);
  });

  test('not at all where it is switched off, or where nobody would keep anything', async () => {
    await begin(() => ({ text: 'learnt' }), { every: 0 });
    expect(await scene.subscriber(REVIEW_SUBSCRIBER)).toBeUndefined();
    await scene.stop();
    scene.configure({ memory: { provider: 'none' } });
    await scene.start();
    expect(await scene.subscriber(REVIEW_SUBSCRIBER)).toBeUndefined();
  });

  test('not for jobs, webhooks, children and single requests', async () => {
    await begin(() => ({ text: 'learnt' }), { every: 1 });
    for (const kind of ['cron', 'webhook', 'child', 'api'] as const) {
      const origin = kind === 'api' ? { once: true } : null;
      const conversation = { ...direct(kind), kind, origin, attached: kind === 'child' };
      // A child is started by who wants something done, not by a message.
      if (kind === 'child') await scene.gateway.engine.start(conversation);
      await scene.ask(conversation, 'hello');
      // What was asked once, or brought by a program, ends with its turn.
      if (kind === 'cron' || kind === 'child') await scene.end(conversation);
    }
    await scene.ask({ ...direct('api conversation'), kind: 'api' }, 'hello');
    await scene.until('all was handed out', async () => reviews().length === 1 && (await idle()));
    expect(reviews()[0]!.raw).not.toContain('"role":"tool"');
  });

  test('as it was when the turn ended, without what was taken back since', async () => {
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const notebook = await begin(() => ({ text: 'learnt' }), { every: 2 });
    const { engine } = scene.gateway;
    // Two other conversations are being looked over: this one has to wait for its place.
    const wait = notebook.remember.bind(notebook);
    notebook.remember = (async (fact: string, scope: MemoryScope) => {
      await held;
      wait(fact, scope);
    }) as unknown as Notebook['remember'];
    for (const user of ['a', 'b']) for (const text of ['1', '2']) await scene.ask(direct(user), text);
    await scene.until('both places are taken', () => reviews().length === 2);
    const conversation = direct('c');
    for (const text of ['kept', 'taken back', 'later']) await scene.ask(conversation, text);
    await engine.appendBeside(await scene.sessionId(conversation), [
      { role: 'undo', text: '', turnId: null, data: { from: 4 } },
    ]);
    release();
    await scene.until('the third is looked over', () => reviews().length === 3);
    const said = JSON.stringify(reviews()[2]!.body.messages);
    expect(said).toContain('kept');
    expect(said).not.toContain('taken back');
    expect(said).not.toContain('later');
  });
});

describe('a review', () => {
  test('that hangs delays no reply', async () => {
    await begin(() => ({ text: 'late', beforeMs: 60_000 }), { every: 1 });
    await scene.ask(direct('1'), 'one');
    await scene.until('it is asked', () => reviews().length === 1);
    const began = performance.now();
    for (const text of ['two', 'three', 'four']) expect(await scene.ask(direct('1'), text)).toBe('ok');
    expect(await scene.ask(direct('2'), 'one')).toBe('ok');
    expect(performance.now() - began).toBeLessThan(patience(3000));
    expect(turns()).toHaveLength(5);
  });

  test('that a stop interrupts comes again at the next start, uncounted', async () => {
    let hangs = true;
    const notebook = await begin(() => (hangs ? { text: 'late', beforeMs: 60_000 } : { text: 'learnt' }), { every: 1 });
    await scene.ask(direct('1'), 'one');
    await scene.until('it is asked', () => reviews().length === 1);
    const began = performance.now();
    await scene.stop();
    expect(performance.now() - began).toBeLessThan(patience(1500));
    expect(notebook.facts).toEqual([]);
    hangs = false;
    await scene.start();
    await scene.until('it was looked over', () => notebook.facts.length === 1);
    await scene.until('all was handed out', idle);
    expect(reviews()).toHaveLength(2);
    expect(await scene.subscriber(REVIEW_SUBSCRIBER)).toMatchObject({ failures: 0, deadLetters: 0, lastError: null });
    const { events } = await scene.store.read('listEvents', {
      ...{ after: 0, limit: 500, types: ['hook:failed'], sessionId: null },
    });
    expect(events).toEqual([]);
  });

  test('waits for a model that is down', async () => {
    let status: number | undefined = 503;
    const notebook = await begin(() => (status === undefined ? { text: 'learnt' } : { status }), { every: 1 });
    await scene.ask(direct('1'), 'one');
    await scene.until(
      'it waits',
      async () => ((await scene.subscriber(REVIEW_SUBSCRIBER))?.lastError ?? '').includes('the model cannot be asked'),
      20_000,
    );
    expect(notebook.facts).toEqual([]);
    status = undefined;
    await scene.until('it was looked over', () => notebook.facts.length === 1, 20_000);
  }, 60_000);

  test('calls no tool, writes nothing into the transcript, and is not heard out when it rambles', async () => {
    const ramble = Array.from({ length: 2000 }, (_, i) => `${'x'.repeat(20)} ${i}`).join('\n');
    const notebook = await begin(
      (i) =>
        i === 0
          ? { text: 'learnt', toolCalls: [{ name: 'remember', args: { fact: 'by a tool' } }] }
          : { text: ramble, betweenMs: 0 },
      { every: 1 },
    );
    await scene.ask(direct('1'), 'one');
    await scene.until('it was looked over', () => notebook.facts.length === 1);
    const rows = await scene.messages(await scene.sessionId(direct('1')));
    expect(rows.map(({ role }) => role)).toEqual(['setting', 'user', 'assistant']);
    expect(notebook.facts).toEqual(['learnt']);
    await scene.ask(direct('1'), 'two');
    await scene.until('it was looked over again', async () => notebook.facts.length === 9 && (await idle()));
  });

  test('is left out where the conversation fills the window', async () => {
    const notebook = await begin(() => ({ text: 'learnt' }), { every: 1, window: 4000 });
    await scene.ask(direct('1'), 'x'.repeat(14_000));
    await scene.until('all was handed out', idle);
    expect(reviews()).toEqual([]);
    expect(notebook.facts).toEqual([]);
  });
});

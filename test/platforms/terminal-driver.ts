import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { printable } from '../../src/cli/print.ts';
import type { Abilities, Inbox, Place, Platform, PlatformState } from '../../src/platforms/platform.ts';
import { MAX_TEXT_CHARS } from '../../src/store/limits.ts';
import { CliFixture, finish } from '../cli/cli-fixture.ts';
import type { HttpFake, RecordedRequest } from '../fakes/http-fake.ts';
import { startOpenAiServer } from '../fakes/openai-server.ts';
import { lastUserLine } from '../gateway/user-lines.ts';
import type { Driver, Shown, UserMessage } from './contract/scene.ts';

export const TERMINAL_ABILITIES: Abilities = {
  ...{ maxText: MAX_TEXT_CHARS, counts: 'utf16', markdown: true, edit: false, remove: false, typing: false },
  ...{ reactions: false, threads: false, buttons: false, editEveryMs: 0 },
  files: { in: false, out: false, maxBytes: 0 },
};

const PLACE: Place = { type: 'dm', chat: 'terminal' };
/** What a person asks to be told something: in a terminal everything that is said is an answer. */
const ASKING = 'tell me';

/** `moirai chat` as a platform: real processes, one question each, and a model that is the inbox behind them. */
class Terminal implements Platform {
  readonly name = 'cli';
  readonly abilities = TERMINAL_ABILITIES;
  readonly cli = new CliFixture();
  readonly shown: Shown[] = [];
  readonly #said: string[] = [];
  #model: HttpFake | null = null;
  #inbox: Inbox | null = null;
  #answer = '';
  #lastSuccessAt: number | null = null;
  #talking: Promise<unknown> = Promise.resolve();

  get state(): PlatformState {
    const phase = this.#inbox === null ? 'stopped' : 'connected';
    return { phase, problem: null, lastSuccessAt: this.#lastSuccessAt };
  }

  async start(inbox: Inbox): Promise<void> {
    this.#model ??= await startOpenAiServer((request) => this.#asked(request));
    const model = { base_url: this.#model.url, name: 'fake-model', api_key: 'key' };
    writeFileSync(join(this.cli.home, 'config.yaml'), JSON.stringify({ model, memory: { provider: 'none' } }));
    this.#inbox = inbox;
    this.#lastSuccessAt = Date.now();
    inbox.changed();
  }

  async stop(): Promise<void> {
    await this.#talking;
    this.#inbox = null;
  }

  async close(): Promise<void> {
    await this.#talking;
    await this.#model?.close();
    this.cli.remove();
  }

  /** Somebody types something; one after the other, as in one terminal. */
  type(text: string): string {
    const id = `typed-${this.#said.push(text)}`;
    void this.#chat(text);
    return id;
  }

  async send(_: Place, { text }: { readonly text: string }, signal: AbortSignal): Promise<{ messageId: string }> {
    signal.throwIfAborted();
    await this.#talking;
    this.#answer = text;
    const output = await this.#chat(ASKING);
    const messageId = `shown-${this.shown.length + 1}`;
    this.shown.push({
      messageId,
      text: output.replace(/\n$/, ''),
      thread: null,
      repliesTo: null,
      files: [],
      buttons: [],
    });
    return { messageId };
  }

  #chat(text: string): Promise<string> {
    const chat = this.#talking.then(async () => (await finish(this.cli.start(['chat', '-q', text]))).output);
    this.#talking = chat;
    return chat;
  }

  async #asked({ body }: RecordedRequest): Promise<{ text: string }> {
    const text = lastUserLine(body.messages);
    if (text === ASKING) return { text: this.#answer };
    const id = `typed-${this.#said.indexOf(text) + 1}`;
    await this.#inbox?.receive({
      ...{ id, messageId: id, place: PLACE, from: { id: null, name: null, bot: false }, text, files: [] },
      ...{ repliesTo: null, addressed: true, edited: false, group: null, at: Date.now() },
    });
    return { text: 'Received.' };
  }
}

export async function terminalDriver(): Promise<Driver> {
  const platform = new Terminal();
  return {
    platform,
    warnings: [],
    place: () => PLACE,
    say: async ({ text }: UserMessage) => platform.type(text),
    shown: () => platform.shown,
    // A terminal obeys some signs: they are shown by their names.
    visible: (text) => printable(text),
    [Symbol.asyncDispose]: () => platform.close(),
  };
}

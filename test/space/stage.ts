import { execFileSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { CliFixture, until } from '../cli/cli-fixture.ts';
import type { HttpFake } from '../fakes/http-fake.ts';
import type { ScriptedReply } from '../fakes/model-script.ts';
import { startOpenAiServer } from '../fakes/openai-server.ts';
import { GatewayProcess } from '../gateway/process.ts';
import { freePort } from '../support/free-port.ts';
import { patience } from '../support/patience.ts';

export const NAMES = ['clotho', 'lachesis', 'atropos', 'ananke'] as const;

/** Four gateways with people in them, and a model that does what it is told. */
export class Stage {
  readonly gateways: GatewayProcess[] = [];
  readonly fixture = new CliFixture();
  /** A pipe that the model's tool reads to its end. */
  readonly #toolInput = join(this.fixture.home, 'tool-input');
  #model: HttpFake | null = null;
  #gate: Promise<void> = Promise.resolve();
  #open: () => void = () => undefined;
  space = '';

  async raise(settings: (index: number) => Readonly<Record<string, unknown>> = () => ({}), count = 4): Promise<void> {
    execFileSync('mkfifo', [this.#toolInput]);
    this.#model = await startOpenAiServer(({ body }) => this.#reply(body.messages));
    const model = { base_url: this.#model.url, name: 'fake-model', api_key: 'key' };
    for (const [i, name] of NAMES.slice(0, count).entries()) {
      const port = await freePort();
      const own = settings(i);
      const gateway = { port, name, ...(own.gateway as object | undefined) };
      this.gateways.push(
        new GatewayProcess({ model, log: { level: 'error' }, agent: { allow_commands: ['cat ...'] }, ...own, gateway }),
      );
    }
    await Promise.all(this.gateways.map((gateway) => gateway.start()));
  }

  /** One page over all of them. */
  async openSpace(): Promise<void> {
    const sources = this.gateways.flatMap(({ url }, i) => ['--gateway', `${NAMES[i]}=${url}`]);
    const child = this.fixture.start(['space', '--port', '0', '--json', ...sources]);
    let said = '';
    child.stdout.on('data', (chunk: Buffer) => {
      said += chunk.toString();
    });
    await until('Space is served', () => said.includes('\n'), patience(20_000));
    this.space = (JSON.parse(said) as { url: string }).url;
  }

  /** So many people in each gateway, each with a conversation of their own. */
  async people(each: number): Promise<void> {
    await Promise.all(
      this.gateways.map(async (gateway, g) => {
        for (let i = 0; i < each; i++) {
          const platform = i % 3 === 0 && g !== 0 ? 'web' : 'api';
          const said = { text: 'hello', conversation: `${NAMES[g]}-${i}`, user: `person ${i}`, platform };
          const { status } = await gateway.chat(said);
          if (status !== 200) throw new TypeError(`somebody was answered with ${status}`);
        }
      }),
    );
  }

  /** The model says nothing, or nothing more, until it is let go. */
  hold(): void {
    this.#gate = new Promise((resolve) => {
      this.#open = resolve;
    });
  }

  letGo(): void {
    this.#open();
  }

  /** Lets the tool end that the model has called. */
  async endTool(): Promise<void> {
    await writeFile(this.#toolInput, '');
  }

  /** What the stores say, as the page's table shows it. */
  async truth(which = this.gateways): Promise<Map<string, string>> {
    const all = new Map<string, string>();
    for (const gateway of which) {
      const { sessions } = await gateway.get<{ sessions: { id: string; phase: string }[] }>('/v1/space/activity');
      for (const { id, phase } of sessions) all.set(id, phase);
    }
    return all;
  }

  async close(): Promise<void> {
    this.letGo();
    this.fixture.remove();
    await Promise.all(this.gateways.map((gateway) => gateway.close()));
    await this.#model?.close();
  }

  async #reply(messages: readonly { role: string; content: unknown }[]): Promise<ScriptedReply> {
    const last = messages.at(-1);
    const text = typeof last?.content === 'string' ? last.content : JSON.stringify(last?.content);
    if (last?.role === 'user' && text.includes('phases')) {
      await this.#gate;
      return { toolCalls: [{ name: 'run_command', args: { command: `cat ${this.#toolInput}` } }] };
    }
    if (last?.role === 'user' && text.includes('dig')) {
      return { toolCalls: [{ name: 'run_command', args: { command: 'echo dug' } }] };
    }
    if (last?.role === 'tool' && text.includes('dug')) return { text: 'It is dug.' };
    const pause = { after: 3, until: this.#gate };
    if (last?.role === 'tool') return { text: 'word by word the thread is spun and measured and cut', pause };
    if (text.includes('slowly')) return { text: 'one two three four five six seven eight nine ten', pause };
    if (text.includes('wait')) await this.#gate;
    return { text: 'heard' };
  }
}

/** All rows of the table, whose page is made tall enough for that. */
export async function rowsOf(page: Page): Promise<Map<string, string>> {
  const rows = await page
    .locator('[role=row][data-session]')
    .evaluateAll((found) =>
      found.map((row) => [
        row.getAttribute('data-session') ?? '',
        row.querySelector('.phase')?.getAttribute('data-phase') ?? '',
      ]),
    );
  return new Map(rows as [string, string][]);
}

export async function untilEqual(page: Page, truth: () => Promise<Map<string, string>>, ms: number): Promise<void> {
  let [seen, stored] = [new Map<string, string>(), new Map<string, string>()];
  const equal = async (): Promise<boolean> => {
    [seen, stored] = [await rowsOf(page), await truth()];
    return seen.size === stored.size && [...stored].every(([id, phase]) => seen.get(id) === phase);
  };
  try {
    await until('the page is equal to the stores', equal, ms);
  } catch {
    const wrong = [...stored].filter(([id, phase]) => seen.get(id) !== phase);
    throw new Error(`the page has ${seen.size} of ${stored.size}; wrong: ${JSON.stringify(wrong.slice(0, 5))}`);
  }
}
